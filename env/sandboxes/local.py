"""The local sandbox: a private copy of the workspace, and no isolation.

What it does: programs run in a temporary copy, with an environment of their own (nothing of the host's is passed on),
with limits on memory, file size and time, and everything that they start is killed with them. The warden makes the
copy and removes it at the end, so a host that is killed leaves nothing, whenever that happens.

What it does not do: isolate. Programs run as the same user on the same machine; they can read and change any file
that this user can, reach the network and see other processes. It is for scripts and tasks that are trusted. Use
`docker` or `bubblewrap` for whatever a model may decide to run.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from pexpect.spawnbase import SpawnBase

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.backend import SYSTEM_PATH, ChildProcess, SandboxLayout, program_environment, resource_limits
from gumshoe.env.sandboxes.host.owners import name_folder, reap_folders_once


class LocalBackend(ChildProcess):
    """Runs programs on this machine. See the module for what that does not protect from."""

    name = "local"
    isolated = False
    image_digest: str | None = None

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__()
        reap_folders_once(os.getpid())
        self._folder = name_folder()
        path = f"{Path(sys.executable).parent}:{SYSTEM_PATH}"
        home, temporary = (str(self._folder / name) for name in ("home", "tmp"))
        environment = program_environment(path, home=home, temporary=temporary)
        self.layout = SandboxLayout(
            patch_limit=config.patch_mb << 20,
            root=str(self._folder / "workspace"),
            state=str(self._folder / "state"),
            python=sys.executable,
            environment={**environment, **config.env},
            limits=resource_limits(config.disk_mb, config.memory_mb),
            disposable=str(self._folder),
            folders=(home, temporary),
        )

    def connect(self, argv: Sequence[str]) -> SpawnBase[bytes]:
        """Starts a program on a terminal with the sandbox's environment."""
        return self.start(argv, self.layout.environment)

    def close(self) -> None:
        """Kills the warden, and with it everything else, and removes the copy."""
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)
