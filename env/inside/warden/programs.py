"""Starting programs with the launcher or the test server, running one to its end, and killing what they leave behind.

`Programs` knows all that run. `ProgramRun` is one that the warden's `run` waits for, and keeps the first and last bytes
of what it prints; what runs in a session is in `sessions`.
"""

import base64
import errno
import os
import socket
import time

from .jobs import LAUNCH_S, SERVER_START_S, ForkedJob, Job, Launcher, TestServer
from .system import CHUNK, CLOSED, kill_descendants, set_nonblocking, wait_ready, wait_until_gone


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
        """Has the launcher start a program; a new one does if a program has killed it or keeps it stopped."""
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

    def _server_for(self, forked):
        """The test server for such programs; one of another kind is ended."""
        order = forked["server"]
        if self._server is None or self._served != order or not self._server.alive:
            self.close_server()
            self._server, self._served = TestServer(self.launcher, order, forked["program"]), order
        return self._server

    def close_server(self):
        """Kills the test server and all that it has started. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def server_jobs(self):
        """The test server as a list of one Job; empty if none runs."""
        return [self._server.job] if self._server is not None and self._server.alive else []

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
        supervisors.update(job.supervisor for job in self.server_jobs())
        kill_descendants({self.launcher.pid, *supervisors} if self.launcher else ())

    def close(self):
        """Ends the launcher."""
        if self.launcher is not None:
            self.launcher.close()


MARGIN = 1 << 20


class BoundedBuffer:
    """Keeps the first and the last bytes of a stream; what lies between is counted and dropped.

    At most `cap` bytes are kept, half of them from either end.
    """

    def __init__(self, cap):
        self.half = max(1, cap // 2)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def write(self, data):
        """Takes in more bytes; those in the middle are dropped once there are too many."""
        self.total += len(data)
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            self.tail += data
            if len(self.tail) > self.half + MARGIN:
                del self.tail[: -self.half]

    def dump(self):
        """The stream as a reply carries it: `head`, `tail` (base64) and the number of bytes `cut` between them."""
        tail = bytes(self.tail[-self.half :])
        return {
            "head": base64.b64encode(bytes(self.head)).decode("ascii"),
            "tail": base64.b64encode(tail).decode("ascii"),
            "cut": self.total - len(self.head) - len(tail),
        }


class ProgramRun:
    """Feeds a program, records what it prints and enforces its time.

    A program may close its output, leave its input unread or put itself in the background: the run ends when the
    program does, not when its streams do.

    `start(stdin, stdout)` starts the program and returns its Job.
    """

    def __init__(self, start, data, cap):
        self.output = BoundedBuffer(cap)
        self.started = time.monotonic()
        self._data = memoryview(data or b"")
        self._out, out_end = os.pipe()
        set_nonblocking(self._out)
        if data is None:
            stdin, self._feed = os.open(os.devnull, os.O_RDONLY), CLOSED
        else:
            stdin, self._feed = os.pipe()
            set_nonblocking(self._feed)
        try:
            self.job = start(stdin, out_end)
        except BaseException:
            self._close("_feed")
            self._close("_out")
            raise
        finally:
            os.close(out_end)
            os.close(stdin)

    def finish(self, timeout, host, watch=None):
        """Waits for the end and returns the reply. Raises what `host.check_cancelled()` does when `host.source` is
        readable: a host that sends something during an exchange does not wait for its answer.
        """
        try:
            timed_out = self._wait(timeout, host, watch)
        finally:
            self.job.close()
            self._record()
            self._close("_feed")
            self._close("_out")
        return {
            "exit_code": None if timed_out else self.job.exit_code,
            "timed_out": timed_out,
            "duration_s": time.monotonic() - self.started,
            "output": self.output.dump(),
        }

    def _wait(self, timeout, host, watch):
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.job.over:
            readers = [descriptor for descriptor in (self.job.status, self._out, host.source) if descriptor >= 0]
            ready = wait_ready(readers, deadline, [self._feed] if self._feed >= 0 else [], watch)
            if host.source in ready:
                host.check_cancelled()
            if self._out in ready:
                self._record(once=True)
            if self._feed in ready:
                self._hand_over()
            if self.job.status in ready:
                self.job.read_status()
            elif deadline is not None and time.monotonic() >= deadline:
                return True
        return False

    def _record(self, once=False):
        """Takes in what the program has printed: one piece, or all there is."""
        while self._out >= 0:
            try:
                data = os.read(self._out, CHUNK)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    raise
                return
            if not data:
                self._close("_out")
                return
            self.output.write(data)
            if once:
                return

    def _hand_over(self):
        """Gives the program the next piece of its input; a program that closed it wants no more."""
        try:
            self._data = self._data[os.write(self._feed, self._data[:CHUNK]) :]
        except BrokenPipeError:
            self._data = self._data[:0]
        if not self._data:
            self._close("_feed")

    def _close(self, name):
        descriptor = getattr(self, name)
        if descriptor >= 0:
            os.close(descriptor)
            setattr(self, name, CLOSED)
