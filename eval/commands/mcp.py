"""`gumshoe mcp PATH`: the sandboxed tools on a repository as an MCP server."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gumshoe.collect.commands.arguments import add_repository_arguments, policy_of, repository_options
from gumshoe.collect.policies.llm import with_llm
from gumshoe.collect.policies.registry import check_policy
from gumshoe.config import apply_overrides, read_yaml, validate
from gumshoe.errors import TaskError

if TYPE_CHECKING:
    from gumshoe.eval.mcp.tool_session import McpConfig

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe mcp .                                                    over standard input and output, for a coding agent
  gumshoe mcp ~/shop --entrypoint "pytest -x"                      what the agent may run and debug
  gumshoe mcp . --model my-seeker --endpoint http://127.0.0.1:8000/v1    a model investigates (see gumshoe serve)
  gumshoe mcp . --http --port 7118                                 over HTTP, for clients on this machine
  gumshoe mcp . -p sandbox.kind=bubblewrap -p tools=[eval,pdb]

A client gets the debugger, suspects, trace, whatif, vary, eval, view, grep and listdir on a copy of PATH in a sandbox,
and `investigate`, which looks for the cause and reports it. Your files are read, never written. docs/mcp.md has the
settings for Claude Code, Codex, Cursor, OpenHands and VS Code.
"""
PORT = 7118


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    add_repository_arguments(parser, entrypoint="command that runs the tests")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file: tools, policy, agent, limits, sandbox")
    parser.add_argument(
        "--model", metavar="NAME", help="model that investigates: an entry of llm.yaml, or a model of the endpoint"
    )
    parser.add_argument("--endpoint", metavar="URL", help="OpenAI-compatible server")
    parser.add_argument(
        "-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override of the config"
    )
    parser.add_argument("--http", action="store_true", help="serve over HTTP instead of standard input and output")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: only this machine)")
    parser.add_argument("--port", type=int, default=PORT, help="port; 0 takes a free one (default: %(default)s)")
    parser.add_argument("--token", help="access token (default: random, if other hosts can connect)")


def run(arguments: argparse.Namespace) -> int:
    """Serves until the client leaves, or until Ctrl-C. Raises GumshoeError."""
    from gumshoe.env.sandboxes.open import close_pools, require_sandbox
    from gumshoe.eval.mcp.server import PATH, http_app, make_server, run_stdio
    from gumshoe.eval.mcp.tool_session import Repository

    config = _config(arguments)
    check_policy(config.policy)
    if not arguments.path.is_dir():
        raise TaskError(f"no folder {arguments.path}: give the folder of a repository")
    repository = Repository(arguments.path.resolve(), repository_options(arguments))
    require_sandbox([repository.task()], config.sandbox, trusted=False)
    server = make_server(repository, config)
    try:
        if arguments.http:
            from gumshoe.eval.web import serve_programs

            app = http_app(server, config)
            serve_programs(app, "MCP", host=arguments.host, port=arguments.port, token=arguments.token, path=PATH)
        else:
            run_stdio(server)
    finally:
        close_pools()
    return 0


def _config(arguments: argparse.Namespace) -> McpConfig:
    from gumshoe.eval.mcp.tool_session import McpConfig

    data = read_yaml(arguments.config) if arguments.config is not None else {}
    policy = policy_of(arguments)
    if policy:
        data = {**data, "policy": {"kind": "openai", **policy}}
    config = validate(McpConfig, apply_overrides(data, arguments.param), origin="gumshoe mcp")
    return config.model_copy(update={"policy": with_llm(config.policy)})
