"""The common part of sandboxes whose warden is a child of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pexpect.spawnbase import SpawnBase

from gumshoe.env.sandboxes.terminal import Program
from gumshoe.errors import SandboxError

__all__ = ["ChildProcess"]


class ChildProcess:
    """A warden on a terminal of this machine."""

    def __init__(self) -> None:
        self._process: Program | None = None

    def start(self, argv: Sequence[str], environment: Mapping[str, str], files: Sequence[int] = ()) -> SpawnBase[bytes]:
        """Starts it. `files` are descriptors that it inherits. Raises SandboxError."""
        try:
            self._process = Program(argv, environment, files)
        except OSError as error:
            raise SandboxError(f"the sandbox could not be started: {error}") from None
        return self._process.terminal

    def close(self) -> None:
        """Kills it, and with it everything that runs below it. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
