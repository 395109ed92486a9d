"""Git for untrusted repositories: without anybody's settings, hooks or prompts."""

from __future__ import annotations

import os
import subprocess
import tempfile

from gumshoe.errors import TaskError

__all__ = ["run_git"]

TIMEOUT_S = 600.0
# A repository's own settings, hooks and helpers stay unused, and so do a person's.
GIT = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "safe.directory=*")
GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:https:http:ssh:git",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LC_ALL": "C",
}


def run_git(*words: str) -> str:
    """What git prints, bytes that are not UTF-8 as surrogate escapes. Raises TaskError with its last line."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": home, **GIT_ENVIRONMENT}
        for name in ("SSL_CERT_FILE", "GIT_SSL_CAINFO", "HTTPS_PROXY", "HTTP_PROXY", "SSH_AUTH_SOCK"):
            if name in os.environ:
                environment[name] = os.environ[name]
        try:
            result = subprocess.run(
                [*GIT, *words], capture_output=True, env=environment, timeout=TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TaskError(f"git cannot read the repository: {error}") from None
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {result.returncode}"]
        raise TaskError(f"git cannot read the repository: {lines[-1]}")
    return result.stdout.decode("utf-8", "surrogateescape")
