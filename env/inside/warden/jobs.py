"""Running programs, seen from the warden: the launcher's process and the jobs that it starts."""

import json
import os
import re
import signal
import socket
import sys
import time

from ..loading import PACKAGE, READ
from . import launcher
from .processes import CHUNK, CLOSED, GRACE_S, KILLED, send_signal, wait_readable

START_S = 10.0

STATUS = re.compile(rb"(supervisor|pid|exit) (\d{1,9})\Z")
NAMES = {b"supervisor": "supervisor", b"pid": "pid", b"exit": "exit_code"}
PROGRAM = "from {0}.warden.launcher import serve\nserve(0)\n".format(PACKAGE)
MODULES = ("system", "disk", "processes", "supervisor", "launcher")
LAUNCHER_FILES = ("__init__", "loading", "warden/__init__", *("warden/" + name for name in MODULES))


class Launcher:
    """The process that starts programs. `files` are those of this package, by their paths."""

    def __init__(self, files):
        self.pid = -1
        self.connection, theirs = socket.socketpair()
        self.connection.settimeout(START_S)
        own = ("{}/{}.py".format(PACKAGE, name) for name in LAUNCHER_FILES)
        data = json.dumps({path: files[path] for path in own}).encode("ascii")
        argv = [sys.executable, "-I", "-S", "-c", READ + PROGRAM, str(len(data))]
        self.pid = os.fork()
        if self.pid == 0:
            _execute(argv, theirs.fileno())
        theirs.close()
        self.connection.sendall(data)

    @property
    def alive(self):
        """Whether it still runs; one that has died is reaped."""
        if self.pid > 0 and os.waitpid(self.pid, os.WNOHANG)[0]:
            self.pid = -1
        return self.pid > 0

    def wake(self):
        """Continues it, in case a program has stopped it."""
        send_signal(self.pid, signal.SIGCONT)

    def close(self):
        """Ends it. Idempotent."""
        self.connection.close()
        if self.alive:
            send_signal(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = -1


def _execute(argv, connection):
    """Never returns: turns this process into the launcher, with the socket as its standard input and nothing else."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(connection, 0)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.closerange(3, 4096)
        os.execv(argv[0], argv)
    finally:
        os._exit(127)


class Job:
    """A running program.

    `status` becomes readable when there is news, `pid` is the program's process, `supervisor` the process that looks
    after it, `started` says whether the supervisor runs, `exit_code` is None until the program has ended, `orphaned`
    says that something killed the supervisor, so that what the program left behind is still there.
    """

    def __init__(self, started_by, launch, stdin, stdout, control=None):
        self.pid = None
        self.supervisor = None
        self.started = False
        self.exit_code = None
        self.over = False
        self.orphaned = False
        self.refused = None
        self._buffer = b""
        self.status, status_end = os.pipe()
        liveness_end, self._liveness = os.pipe()
        try:
            descriptors = [stdin, stdout, status_end, liveness_end]
            launcher.send(started_by.connection, launch, descriptors + ([] if control is None else [control]))
        except OSError:
            self.release()
            os.close(self.status)
            self.status = CLOSED
            raise
        finally:
            os.close(status_end)
            os.close(liveness_end)

    def wait_for_start(self, timeout, host):
        """Whether the program is started within these seconds. Raises as `host.check_cancelled`."""
        deadline = time.monotonic() + timeout
        while not self.started and not self.over and self.refused is None:
            ready = wait_readable([self.status, host.source], deadline)
            if host.source in ready:
                host.check_cancelled()
            if self.status in ready:
                self.read_status()
            elif not ready:
                break
        return self.started

    def read_status(self):
        """Takes in what the supervisor reported. After that, `over` says whether the program and all it started are
        gone.
        """
        data = os.read(self.status, CHUNK)
        self._buffer += data
        lines = self._buffer.split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            self.take(line)
        if not data:
            self.over = True
            if self.exit_code is None:
                self.exit_code = KILLED
                self.orphaned = True

    def take(self, line):
        """Takes in one line of the status pipe."""
        known = STATUS.match(line)
        if known:
            setattr(self, NAMES[known.group(1)], int(known.group(2)))
            self.started = True

    def wake(self):
        """Continues the supervisor and the program, in case another program has stopped them."""
        for pid in (self.supervisor, self.pid):
            if pid is not None and not self.over:
                send_signal(pid, signal.SIGCONT)

    def release(self):
        """Closes the liveness pipe: the supervisor kills everything and ends."""
        if self._liveness >= 0:
            os.close(self._liveness)
            self._liveness = CLOSED

    def close(self):
        """Kills what is left, waits for the supervisor and closes the pipes. Idempotent."""
        self.release()
        if self.status < 0:
            return
        self.wake()
        deadline = time.monotonic() + GRACE_S
        while not self.over and wait_readable([self.status], deadline):
            self.read_status()
        os.close(self.status)
        self.status = CLOSED
        if not self.over and self.supervisor is not None:
            send_signal(self.supervisor, signal.SIGKILL)
            self.over, self.orphaned = True, True
