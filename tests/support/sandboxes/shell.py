"""Shell scripts in a sandbox."""

from __future__ import annotations

from gumshoe.env.sandboxes.client import WardenSandbox

__all__ = ["sh"]


def sh(sandbox: WardenSandbox, script: str, timeout: float = 30) -> str:
    """What a script prints."""
    return sandbox.run(["sh", "-c", script], timeout=timeout).output
