"""Forks of this process: waited for, limited, and ended with all that they have started."""

import contextlib
import json
import os
import select
import signal
import time

# A program under test may replace these.
_fork, _sleep, _time = os.fork, time.sleep, time.time
POLL_S = 0.002
JOBS = 4
"""How many forks run at the same time at most."""
WALL_FACTOR = 5
"""A fork that waits for something may take so many times as long as one that computes."""


class Fork:
    """A forked child in a session of its own.

    Attributes:
        pid: its process id.
        began: when it was started, in seconds since the epoch.
        status, usage: its wait status and resource usage, None as long as it runs.
    """

    def __init__(self, pid):
        self.pid = pid
        self.began = _time()
        self.status = self.usage = None

    @property
    def exit_code(self):
        """The exit code as a shell reports it, None as long as it runs."""
        if self.status is None:
            return None
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else 128 + os.WTERMSIG(self.status)

    def is_over(self):
        """Whether it has ended."""
        if self.status is None:
            ended, status, usage = os.wait4(self.pid, os.WNOHANG)
            if ended:
                self.status, self.usage = status, usage
        return self.status is not None

    def wait(self, end):
        """Waits for it, at most until the time `end`. Returns its exit code, None if it still runs."""
        while not self.is_over() and _time() < end:
            _sleep(POLL_S)
        return self.exit_code

    def kill(self):
        """Kills all that is left of it and waits for it."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        if self.status is None:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
            self.status, self.usage = os.wait4(self.pid, 0)[1:]

    def has_used(self, seconds):
        """Whether it has used that much processor time, or `WALL_FACTOR` times as much wall-clock time."""
        took = _time() - self.began
        return took >= WALL_FACTOR * seconds or (took >= seconds and _processor_s(self.pid) >= seconds)


def start_fork():
    """Forks this process. Returns a Fork; None in the child."""
    pid = _fork()
    if pid == 0:
        os.setsid()
        return None
    return Fork(pid)


def run_all(starts, is_late):
    """Waits for runs, at most `JOBS` at a time; those that are late are stopped. Returns them in the order they ended.

    Args:
        starts: functions that start a run, an object with `fork`.
        is_late: whether a run is to be stopped.
    """
    waiting, going, done = list(starts), [], []
    while waiting or going:
        while waiting and len(going) < min(JOBS, os.cpu_count() or 1):
            going.append(waiting.pop(0)())
        _sleep(POLL_S)
        for run in list(going):
            if run.fork.is_over() or is_late(run):
                going.remove(run)
                done.append(run)
                run.end()
    return done


def answer_of(work, wall_s):
    """What `work(writer)`, run in a fork that it ends, wrote to the descriptor as JSON.

    An object gets the `cpu_s` and `wall_s` that the fork took. Without an answer within `wall_s` seconds it is
    `{"status": "timeout"}`, as it is if the fork has used up its processor time, or `{"status": "crashed"}` if the fork
    ended before. Whatever `work` raises goes on in the fork.
    """
    reader, writer = os.pipe()
    fork = start_fork()
    if fork is None:
        os.close(reader)
        work(writer)
    os.close(writer)
    try:
        text, in_time = _read_all(reader, fork.began + wall_s)
    finally:
        os.close(reader)
        fork.kill()
    if text:
        answer = json.loads(text.decode("utf-8"))
        if isinstance(answer, dict):
            answer["cpu_s"] = fork.usage.ru_utime + fork.usage.ru_stime
            answer["wall_s"] = _time() - fork.began
        return answer
    assert fork.status is not None
    used_up = os.WIFSIGNALED(fork.status) and os.WTERMSIG(fork.status) in (signal.SIGPROF, signal.SIGXCPU)
    return {"status": "crashed" if in_time and not used_up else "timeout"}


def _read_all(descriptor, deadline):
    """What comes until the other end is closed, and whether it was in time."""
    parts = []
    while True:
        left = deadline - _time()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            return b"", False
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts), True
        parts.append(part)


def _processor_s(pid):
    """Seconds of CPU time that a process and its ended children have used; infinite if that is not known."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return float("inf")
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
