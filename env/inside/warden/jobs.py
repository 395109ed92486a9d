"""Running programs, seen from the warden: the processes that start them, and the jobs that these start.

The test server (`programs/server.py`) is a program like any other, so nothing that it says is trusted: what it has
started is killed with it, by its own supervisor, whenever it does not do what it was told.
"""

import json
import os
import re
import signal
import socket
import sys
import time

from ..loading import PACKAGE, READ
from . import launcher
from .system import CHUNK, CLOSED, GRACE_S, KILLED, send_signal, wait_ready

LAUNCH_S = 10.0
"""How long the launcher may take to start a program. After that, a new launcher takes its place."""
SERVER_START_S = 20.0
"""How long the test server may take to answer: first it imports what its programs need."""
LAUNCHER = "from {0}.warden.launcher import serve\nserve(0)\n".format(PACKAGE)
LAUNCHER_FILES = ("__init__", "loading", "warden/__init__", "warden/system", "warden/launcher")
"""All that the launcher imports of this package."""
STARTER = "/{}/__main__.py".format(PACKAGE)
"""How the path of the script ends that starts the programs of this package."""
PROGRAM = "GUMSHOE_PROGRAM"
"""The variable that says which program a test server is to get ready for."""
# The lines of the status pipe.
STATUS = re.compile(rb"(supervisor|pid|exit) (\d{1,9})\Z")
NAMES = {b"supervisor": "supervisor", b"pid": "pid", b"exit": "exit_code"}
REFUSED = re.compile(rb"refused ([ -~]{1,300})\Z")


class Launcher:
    """The process that starts programs. `files` are those of this package, by their paths."""

    def __init__(self, files):
        self.pid = -1
        self.connection, theirs = socket.socketpair()
        self.connection.settimeout(LAUNCH_S)
        own = ("{}/{}.py".format(PACKAGE, name) for name in LAUNCHER_FILES)
        data = json.dumps({path: files[path] for path in own}).encode("ascii")
        argv = [sys.executable, "-I", "-S", "-c", READ + LAUNCHER, str(len(data))]
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

    Attributes:
        status: a pipe that becomes readable when there is news.
        supervisor, pid: the process that looks after the program, and the program's own, once they are known.
        started: whether the supervisor runs.
        exit_code: None until the program has ended.
        over: whether the program and all that it started are gone.
        orphaned: whether something killed the supervisor, so that what the program left behind may still be there.
        refused: why a test server did not fork the program; None if it was not asked, or did.
        is_ours: whether it is a program of this package, by its command.

    Args:
        started_by: the Launcher or TestServer whose `connection` takes the order.
        launch: the order; see `launcher`.
        stdin, stdout, control: the program's descriptors; those of a terminal or pipes, and of a session's socket.
    """

    def __init__(self, started_by, launch, stdin, stdout, control=None):
        self.pid = None
        self.supervisor = None
        self.started = False
        self.exit_code = None
        self.over = False
        self.orphaned = False
        self.refused = None
        self.is_ours = any(word.endswith(STARTER) for word in launch["argv"])
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
            ready = wait_ready([self.status, host.source], deadline)
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
        while not self.over and wait_ready([self.status], deadline):
            self.read_status()
        os.close(self.status)
        self.status = CLOSED
        if not self.over and self.supervisor is not None:
            send_signal(self.supervisor, signal.SIGKILL)
            self.over, self.orphaned = True, True


class TestServer:
    """A running test server.

    Args:
        launcher: what starts it.
        launch: the order for it, as the launcher takes it.
        program: what it should get ready for, as in `ForkedJob`'s `launch`.
    """

    def __init__(self, launcher, launch, program):
        self.connection, theirs = socket.socketpair()
        null = os.open(os.devnull, os.O_RDWR)
        launch = dict(launch, env=dict(launch["env"], **{PROGRAM: json.dumps(program)}))
        try:
            self.job = Job(launcher, launch, null, null, theirs.fileno())
        except BaseException:
            self.connection.close()
            raise
        finally:
            os.close(null)
            theirs.close()
        self.connection.settimeout(SERVER_START_S)

    @property
    def alive(self):
        """Whether it still runs."""
        while not self.job.over and wait_ready([self.job.status], time.monotonic()):
            self.job.read_status()
        return not self.job.over

    def close(self):
        """Kills it, and all that it has started. Idempotent."""
        self.connection.close()
        self.job.close()


class ForkedJob(Job):
    """A program that a test server has forked, or has refused to fork: then `refused` says why.

    No process id that it reports is used: it could name any process.
    """

    def __init__(self, server, launch, stdin, stdout, control=None):
        self.server = server
        server.job.wake()
        try:
            super().__init__(server, launch, stdin, stdout, control)
        except OSError:
            self.refused = "the test server has ended"

    def wait_for_start(self, timeout, host):
        """Whether it is started rather than refused. Raises as `host.check_cancelled`."""
        if not super().wait_for_start(timeout, host) and self.refused is None:
            self.refused = "the test server has ended" if self.over else "the test server does not answer"
            self.server.close()
        return self.started

    def take(self, line):
        """Takes in one line of the status pipe."""
        refused = REFUSED.match(line)
        if refused:
            self.refused = refused.group(1).decode("ascii")
        self.started = self.started or line.startswith(b"supervisor ")
        if line.startswith(b"exit "):
            super().take(line)

    def close(self):
        """Kills what is left. Idempotent."""
        super().close()
        if self.refused is None and (self.orphaned or not self.over):
            self.server.close()
