"""Shell scripts in a sandbox, and what programs of sessions print."""

from __future__ import annotations

from gumshoe.env.sandboxes.client import WardenSandbox, WardenSession


def sh(sandbox: WardenSandbox, script: str, timeout: float = 30) -> str:
    """What a script prints."""
    return sandbox.run(["sh", "-c", script], timeout=timeout).output


def wait_for_text(session: WardenSession, text: str) -> str:
    """Waits, at most for a minute, until a program has printed a text; all that it has printed meanwhile."""
    output = ""
    for _ in range(600):
        output += session.wait_message(0.1).output
        if text in output:
            return output
    raise AssertionError(output)
