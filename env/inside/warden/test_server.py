"""The test server, seen from the warden: see `programs/server.py`.

It is a program like any other, so nothing that it says is trusted: what it has started is killed with it, by its own
supervisor, whenever it does not do what it was told.
"""

import json
import os
import re
import socket
import time

from . import launcher, system
from .jobs import Job
from .processes import wait_readable

START_S = 20.0
REST_S = 5.0
PROGRAM = "GUMSHOE_PROGRAM"
REFUSED = re.compile(rb"refused ([ -~]{1,300})\Z")


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
        self.connection.settimeout(START_S)

    @property
    def alive(self):
        """Whether it still runs."""
        while not self.job.over and wait_readable([self.job.status], 0):
            self.job.read_status()
        return not self.job.over

    @property
    def processes(self):
        """Its supervisor and itself, if they exist."""
        return {self.job.supervisor, self.job.pid} - {None} if self.alive else set()

    def is_idle(self):
        """Whether it answers and nothing is left of what it has started."""
        deadline = time.monotonic() + REST_S
        if not self._answers(deadline) or len(self.processes) < 2:
            return False
        while system.descendants(self.job.supervisor) != {self.job.pid}:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def _answers(self, deadline):
        reader, writer = os.pipe()
        try:
            launcher.send(self.connection, {"ping": True}, [writer])
            os.close(writer)
            writer = None
            return bool(wait_readable([reader], deadline) and os.read(reader, 1))
        except OSError:
            return False
        finally:
            for each in (reader, writer):
                if each is not None:
                    os.close(each)

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
