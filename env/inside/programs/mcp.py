"""Runs an MCP server in a sandbox and carries its messages to the host over the control channel.

The host sends `{"messages": [...]}`, which are written to the server, and gets back `{"message": {...}}`, the next that
the server writes, or `{"ended": why}`. What the server writes to its standard error shows on the terminal. Lines that
are not JSON objects are left out.
"""

import json
import os
import subprocess

from .channel import JsonChannel

MOST_BYTES = 1 << 20
GRACE_S = 2


def start(argv):
    """The server and None, or None and why it did not start."""
    try:
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE), None
    except OSError as error:
        return None, "%s: %s" % (argv[0], error.strerror)


def exchange(server, messages):
    """Writes messages and waits for the next one. Returns what to tell the host."""
    try:
        for message in messages:
            server.stdin.write(json.dumps(message).encode("ascii") + b"\n")
        server.stdin.flush()
    except OSError:
        return ended(server)
    while True:
        line = server.stdout.readline(MOST_BYTES)
        if not line.endswith(b"\n"):
            if len(line) < MOST_BYTES:  # nothing more comes
                return ended(server)
            server.kill()
            return {"ended": "it wrote a line of more than 1 MiB"}
        try:
            message = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            continue
        if isinstance(message, dict):
            return {"message": message}


def ended(server):
    """How a server ended that no longer reads or writes."""
    try:
        return {"ended": "it ended with exit code %d" % server.wait(GRACE_S)}
    except subprocess.TimeoutExpired:
        server.kill()
        return {"ended": "it closed its input or output"}


def main(arguments):
    """Starts the server and carries messages back and forth until the channel is closed."""
    channel = JsonChannel(int(os.environ.pop("GUMSHOE_CONTROL")))
    server, failure = start(arguments)
    while True:
        messages = channel.receive()["messages"]
        channel.send({"ended": failure} if server is None else exchange(server, messages))
