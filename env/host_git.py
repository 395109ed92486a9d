"""Runs git on this machine, on repositories that are not trusted."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from gumshoe.errors import TaskError

__all__ = ["run_git"]

TIMEOUT_S = 600.0
# A repository's own hooks and helpers stay unused, and so do a person's settings.
GIT = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false"),
    *("-c", "safe.directory=*"),
)
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:https:http:ssh:git",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LC_ALL": "C",
}
HANDED_ON = ("SSL_CERT_FILE", "GIT_SSL_CAINFO", "HTTPS_PROXY", "HTTP_PROXY", "SSH_AUTH_SOCK")
"""Variables that a clone may need."""


def run_git(*words: str, folder: Path | None = None, input: bytes = b"") -> bytes:
    """What git prints.

    Args:
        words: the command, with options of git before it.
        folder: where it is run, in or below a repository; None where the words name the repository.
        input: what git reads.

    Raises:
        TaskError: git fails, or takes more than 600 s; with the last line that it prints.
    """
    place = () if folder is None else ("-C", str(folder))
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, **ENVIRONMENT}
        environment |= {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        argv = [*GIT, *place, *words]
        try:
            result = subprocess.run(
                argv, input=input, capture_output=True, env=environment, timeout=TIMEOUT_S, check=False
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise _failure(folder, str(error)) from None
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {result.returncode}"]
        raise _failure(folder, lines[-1])
    return result.stdout


def _failure(folder: Path | None, why: str) -> TaskError:
    return TaskError(f"git cannot read {'the repository' if folder is None else folder}: {why}")
