"""Serves a seeker's report to a coding agent: an MCP server over standard input and output. Runs in a sandbox.

    python __main__.py programs.pack_server PACK TEXT

PACK is the report as JSON (`null`: there is none), TEXT the same report as readable text. The one tool is `report`.
Messages are lines of JSON-RPC 2.0, as in the stdio transport of the Model Context Protocol (modelcontextprotocol.io,
specification, base protocol). An official SDK is not an option: images of repositories have their own old Pythons.
"""

import json
import sys

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
METHOD_NOT_FOUND, INVALID_PARAMS = -32601, -32602
TOOL = {
    "name": "report",
    "description": "What has been found out about the problem: places, evidence from real runs, a hypothesis.",
    "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}


def main(arguments):
    """Answers requests on standard input until it is closed."""
    pack_path, text_path = arguments
    with open(pack_path, encoding="utf-8") as file:
        pack = json.load(file)
    with open(text_path, encoding="utf-8") as file:
        text = file.read()
    # Bytes: a terminal's encoding and line endings do not apply here.
    for line in sys.stdin.buffer:
        request = _read(line)
        if request is not None and request.get("id") is not None and "method" in request:
            reply = dict(_answer(request, pack, text), jsonrpc="2.0", id=request["id"])
            sys.stdout.buffer.write(json.dumps(reply).encode("ascii") + b"\n")
            sys.stdout.buffer.flush()


def _read(line):
    """The message in a line; None if it holds none."""
    try:
        message = json.loads(line.decode("utf-8"))
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def _answer(request, pack, text):
    """The result of a request, or its error."""
    method, params = request["method"], request.get("params")
    params = params if isinstance(params, dict) else {}
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "result": {
                "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "gumshoe", "version": "1"},
            }
        }
    if method == "ping":
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        if params.get("name") != TOOL["name"]:
            return _error(INVALID_PARAMS, "the only tool is {}".format(TOOL["name"]))
        result = {"content": [{"type": "text", "text": text}], "isError": False}
        if pack is not None:
            result["structuredContent"] = pack
        return {"result": result}
    return _error(METHOD_NOT_FOUND, "no such method")


def _error(code, message):
    return {"error": {"code": code, "message": message}}
