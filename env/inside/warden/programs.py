"""What the warden starts programs with, the launcher and the test server; and killing what they leave behind."""

import errno
import socket

from .jobs import LAUNCH_S, SERVER_START_S, ForkedJob, Job, Launcher, TestServer
from .system import kill_descendants, wait_until_gone


class Programs:
    """Starts programs and knows which run.

    Args:
        host: what a wait listens to; see `ProgramRun.finish`.
        package: the files of this package, by their paths.
        adopts_orphans: whether this process is the parent of all orphans.
        sessions: the warden's sessions, by name.
    """

    def __init__(self, host, package, adopts_orphans, sessions):
        self.host = host
        self.package = package
        self.adopts_orphans = adopts_orphans
        self.sessions = sessions
        self.launcher = None
        self._server = None
        self._served = None
        self._stays = False

    def start_launcher(self):
        """Starts the launcher if none runs. While it starts, it could be traced, so no program may be alive then."""
        if self.launcher is not None and self.launcher.alive:
            self.launcher.wake()
            return
        if self.launcher is not None:
            self.launcher.close()
            for session in self.sessions.values():
                session.job.close()
            self.close_server()
        kill_descendants()
        self.launcher = Launcher(self.package)

    def start(self, launch, forked, *descriptors):
        """Starts a program, as the launcher takes it. Returns its Job, whose `refused` says why it is not a fork.

        `forked` has the test server fork it, if the server accepts it: `program` is what follows the interpreter and
        its options, `server` the order for the server itself. With None, an interpreter is started.
        """
        if forked is None:
            return self._launch(launch, *descriptors)
        job = ForkedJob(self._server_for(forked), dict(launch, program=forked["program"]), *descriptors)
        if self._is_started(job, SERVER_START_S):
            return job
        job.close()
        fresh = self._launch(launch, *descriptors)
        fresh.refused = job.refused
        return fresh

    def _launch(self, launch, *descriptors):
        """Has the launcher start a program; a new one does if a program has killed it or keeps it stopped.

        A program of the same user can change the memory of a test server that does not hide it yet, and so what later
        episodes are told.
        """
        if self._stays and not self._server.has_started():
            self.close_server()
        for _ in range(2):
            try:
                job = Job(self.launcher, launch, *descriptors)
                if self._is_started(job, LAUNCH_S):
                    return job
            except (BrokenPipeError, ConnectionResetError, socket.timeout):
                job = None
            self.launcher.close()
            if job is not None:
                job.close()
            self.start_launcher()
        raise OSError(errno.ETIMEDOUT, "the launcher does not answer")

    def _is_started(self, job, timeout):
        try:
            return job.wait_for_start(timeout, self.host)
        except BaseException:
            job.close()
            raise

    def start_server(self, forked):
        """Starts the test server in the background; `forked` as `start` takes it. It stays for later episodes.

        Nothing of an agent's may run yet. Raises OSError where it cannot be started.
        """
        self._server_for(forked)
        self._stays = True

    def _server_for(self, forked):
        """The test server for such programs; one of another kind is ended."""
        order = forked["server"]
        if self._server is None or self._served != order or not self._server.alive:
            self.close_server()
            self._server, self._served = TestServer(self.launcher, order, forked["program"]), order
        return self._server

    def close_server(self):
        """Kills the test server and all that it has started. Idempotent."""
        server, self._server, self._stays = self._server, None, False
        if server is not None:
            server.close()

    def rest(self):
        """Kills the test server unless it was started before any program of an agent's and is as it was then."""
        if not self._stays or not self._server.is_idle():
            self.close_server()

    @property
    def resting(self):
        """The ids of the processes of a test server that stays."""
        return self._server.processes if self._stays else set()

    def ours(self):
        """(supervisor, program, True) of the test server, if it is running."""
        if self._server is None or not self._server.alive:
            return []
        return [(self._server.job.supervisor, self._server.job.pid, True)]

    def clean_up_after(self, job):
        """Kills what a program's supervisor leaves behind if it was killed itself or cannot become a subreaper."""
        if job.orphaned and not isinstance(job, ForkedJob):  # The test server's supervisor kills what those leave.
            # Until the kernel has ended the supervisor, what it leaves is still below the launcher.
            wait_until_gone(job.supervisor)
            self.kill_strays()
        if not self.adopts_orphans:
            self.kill_strays()

    def kill_strays(self):
        """Kills what a killed supervisor left behind and the warden has adopted."""
        supervisors = {session.job.supervisor for session in self.sessions.values() if not session.job.over}
        supervisors.update(supervisor for supervisor, _, _ in self.ours())
        kill_descendants({self.launcher.pid, *supervisors} if self.launcher else ())

    def close(self):
        """Ends the launcher."""
        if self.launcher is not None:
            self.launcher.close()


def origin(job):
    """What a reply says about how a program was started: as a fork of the test server, and if not, why not."""
    return {"warm": isinstance(job, ForkedJob), "cold": job.refused}
