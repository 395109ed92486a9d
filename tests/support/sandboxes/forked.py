"""The local sandbox with its warden in a forked child of the tests, where coverage can see it."""

from __future__ import annotations

import os
import pty
import signal
import tty
from collections.abc import Sequence

from pexpect.fdpexpect import fdspawn
from pexpect.spawnbase import SpawnBase

from gumshoe.env import SandboxConfig
from gumshoe.env.inside.warden.serving import serve
from gumshoe.env.sandboxes.channel import package_files, payload
from gumshoe.env.sandboxes.local import LocalBackend


class ForkedBackend(LocalBackend):
    """Runs `serve` on this Python's own modules instead of those that are sent."""

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self._child = 0

    def connect(self, argv: Sequence[str]) -> SpawnBase[bytes]:
        self._child, master = pty.fork()
        if self._child == 0:
            self._be_warden(argv[-2])
        self._terminal = fdspawn(master, timeout=None, maxread=1 << 16)
        return self._terminal

    def close(self) -> None:
        if self._terminal is not None:
            os.close(self._terminal.child_fd)
            os.waitpid(self._child, 0)
            self._terminal = None
        super().close()

    def _be_warden(self, word: str) -> None:
        """Never returns."""
        try:
            tty.setraw(0)
            os.environ.clear()
            os.environ.update(self.layout.environment)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            os.write(1, f"{word}\n".encode())
            left = len(payload())
            while left:
                left -= len(os.read(0, left))
            serve(0, 1, package_files())
        finally:
            os._exit(0)
