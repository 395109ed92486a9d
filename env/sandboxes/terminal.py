"""Starting a program on a terminal of this machine.

Runs have many threads. A child that is forked from one of them may wait forever for a lock that another thread held
at that moment, so no Python runs in the child: `subprocess` forks, makes the session and starts the program in C. The
terminal is not a controlling one, so nothing is sent to the program when its host is killed and the terminal hangs up:
bwrap must not die of that halfway, between the two processes that it becomes. The warden ends at the end of input.
"""

from __future__ import annotations

import os
import subprocess
import tty
from collections.abc import Mapping, Sequence

from pexpect.fdpexpect import fdspawn

__all__ = ["Program"]

READ_BYTES = 1 << 16


class Program:
    """A program on a raw terminal, in a session of its own.

    Attributes:
        pid: its process.
        terminal: the host's end of the terminal.

    Args:
        argv: the program, with its path, and its arguments.
        environment: its whole environment.
        files: descriptors that it inherits, by their numbers.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], files: Sequence[int] = ()) -> None:
        master, slave = os.openpty()
        try:
            tty.setraw(slave)
            self._process = subprocess.Popen(
                list(argv),
                env=dict(environment),
                stdin=slave,
                stdout=slave,
                stderr=slave,
                pass_fds=tuple(files),
                start_new_session=True,
            )
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        self.pid = self._process.pid
        self.terminal = fdspawn(master, timeout=None, maxread=READ_BYTES, use_poll=True)

    def kill(self) -> None:
        """Kills it, waits for its end and closes its terminal. Idempotent."""
        self._process.kill()
        self._process.wait()
        self.terminal.close()
