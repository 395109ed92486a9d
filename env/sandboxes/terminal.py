"""Starting a program on a terminal of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pexpect

__all__ = ["spawn", "stop"]

READ_BYTES = 1 << 16


class _Spawn(pexpect.spawn):  # pyright: ignore[reportMissingTypeArgument]
    """A `pexpect.spawn` whose program inherits some open files."""

    def __init__(self, *arguments: Any, files: Sequence[int], **options: Any) -> None:
        self._files = files
        super().__init__(*arguments, **options)

    def _spawnpty(self, args: Any, **options: Any) -> Any:
        def preexec() -> None:
            for file in self._files:
                os.set_inheritable(file, True)
            if wanted is not None:
                wanted()

        wanted: Callable[[], None] | None = options.pop("preexec_fn", None)
        parent: Any = super()
        return parent._spawnpty(args, pass_fds=self._files, preexec_fn=preexec, **options)


def spawn(
    argv: Sequence[str],
    env: Mapping[str, str],
    preexec: Callable[[], None] | None = None,
    *,
    files: Sequence[int] = (),
) -> pexpect.spawn[bytes]:
    """Starts `argv` on a terminal without echo, without the pauses that pexpect makes for people at keyboards.

    The program inherits `files`, by their numbers. Raises pexpect.ExceptionPexpect or OSError.
    """
    process: Any = _Spawn(
        argv[0],
        list(argv[1:]),
        env=dict(env),  # pyright: ignore[reportArgumentType]
        echo=False,
        timeout=None,
        maxread=READ_BYTES,
        preexec_fn=preexec,
        use_poll=True,
        # The terminal hangs up when this process is killed. bwrap must not die of that half way, between the two
        # processes that it becomes: the second would wait for the first for ever. The warden ends at the end of input.
        ignore_sighup=True,
        files=tuple(files),
    )
    process.delaybeforesend = None
    process.delayafterread = None
    process.delayafterclose = 0
    process.delayafterterminate = 0
    process.ptyproc.delayafterclose = 0
    process.ptyproc.delayafterterminate = 0
    return process


def stop(process: pexpect.spawn[bytes], *, kill: bool) -> None:
    """Waits for a process that is ending, or kills it first, and closes its terminal. Idempotent."""
    if process.closed or process.pid is None:
        return
    if kill:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    with contextlib.suppress(pexpect.ExceptionPexpect):
        process.wait()
    process.close(force=True)
