"""What the sandboxes have in common whose warden is a child of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pexpect
from pexpect.spawnbase import SpawnBase

from gumshoe.env.sandboxes.terminal import spawn, stop
from gumshoe.errors import SandboxError

__all__ = ["ChildProcess"]


class ChildProcess:
    """A warden on a terminal of this machine."""

    def __init__(self) -> None:
        self._process: pexpect.spawn[bytes] | None = None

    def start(self, argv: Sequence[str], environment: Mapping[str, str], files: Sequence[int] = ()) -> SpawnBase[bytes]:
        """Starts it. `files` are descriptors that it inherits. Raises SandboxError."""
        try:
            self._process = spawn(argv, environment, files=files)
        except (OSError, pexpect.ExceptionPexpect) as error:
            raise SandboxError(f"the sandbox could not be started: {error}") from None
        return self._process

    def close(self) -> None:
        """Kills it, and with it everything that runs below it. Idempotent."""
        if self._process is not None:
            stop(self._process, kill=True)
            self._process = None
