"""Running programs so that nothing of them is left behind.

Every program gets a nanny: a process between it and the warden that adopts all its orphans. When the program ends,
when its time is up, or when the warden itself dies (the leash, a pipe, closes), the nanny kills every descendant,
says how the program ended, and goes.
"""

import errno
import fcntl
import os
import resource
import select
import signal
import termios
import time
from contextlib import suppress

from gumshoe.env.inside import system
from gumshoe.env.inside.disk import INTERVAL_S

CHUNK = 1 << 16
CLOSED = -1
GRACE_S = 10.0
IGNORED_BY_NANNY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1)
KILLED = 128 + signal.SIGKILL


class HangUp(Exception):
    """The host went away in the middle of an exchange."""


class GivenUp(Exception):
    """The host does not wait for the answer any more: it has sent its next request."""


class Launch:
    """What to start: the argument list, its folder, whole environment and limits, and the ends of its streams."""

    def __init__(self, argv, cwd, env, limits, stdin, stdout, terminal=False, keep=None):
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.limits = limits
        self.stdin = stdin
        self.stdout = stdout
        self.terminal = terminal
        self.keep = keep


class Job:
    """A running program, seen from the warden.

    `status` becomes readable when there is news, `pid` is the program's process, `exit_code` is None until it ended,
    `orphaned` says that something killed the nanny, so that what the program left behind is still there.
    """

    def __init__(self, launch):
        self.pid = None
        self.exit_code = None
        self.over = False
        self.orphaned = False
        self._buffer = b""
        self.status, status_end = os.pipe()
        leash_end, self._leash = os.pipe()
        self.nanny = os.fork()
        if self.nanny == 0:
            _be_nanny(launch, status_end, leash_end)
        os.close(status_end)
        os.close(leash_end)

    def read_status(self):
        """Takes in what the nanny said. After it, `over` tells whether the program and all it started are gone."""
        data = os.read(self.status, CHUNK)
        self._buffer += data
        lines = self._buffer.split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            word, number = line.split()
            if word == b"pid":
                self.pid = int(number)
            else:
                self.exit_code = int(number)
        if not data:
            self.over = True
            if self.exit_code is None:
                self.exit_code = KILLED
                self.orphaned = True

    def release(self):
        """Lets the leash go: the nanny kills everything and ends."""
        if self._leash >= 0:
            os.close(self._leash)
            self._leash = CLOSED

    def close(self):
        """Kills what is left, waits for the nanny and closes the pipes. Idempotent."""
        self.release()
        if self.status < 0:
            return
        deadline = time.monotonic() + GRACE_S
        while not self.over and wait_readable([self.status], deadline):
            self.read_status()
        os.close(self.status)
        self.status = CLOSED
        if not self.over:
            os.kill(self.nanny, signal.SIGKILL)
        os.waitpid(self.nanny, 0)


class Child:
    """A running program without a nanny: like Job, but the warden itself adopts and kills what the program leaves.

    That is a fork less, and enough where all that the warden does not know belongs to this one program, and where
    the kernel kills everything when the warden dies: when it is process 1.

    `status` is the descriptor at which this process is woken by SIGCHLD, `spare()` the nannies of other programs.
    """

    orphaned = False

    def __init__(self, launch, status, spare):
        self.status = status
        self.exit_code = None
        self.over = False
        self._spare = spare
        self.pid = os.fork()
        if self.pid == 0:
            _become(launch)

    def read_status(self):
        """Looks whether the program has ended; if so, kills what it left behind."""
        drain(self.status)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.exit_code = _code_of(status)
            self._sweep()

    def release(self):
        """Kills the program and all that it started."""
        if not self.over:
            _kill_group(self.pid)
            self._sweep()

    close = release

    def _sweep(self):
        spare = self._spare()
        if spare or not _childless():
            kill_descendants(spare)
        self.over = True


def wake_on_child():
    """A descriptor that becomes readable whenever a child of this process has ended."""
    wake, wake_end = os.pipe()
    set_nonblocking(wake)
    set_nonblocking(wake_end)
    signal.set_wakeup_fd(wake_end)
    signal.signal(signal.SIGCHLD, _wake_up)
    return wake, wake_end


def wait_readable(readers, deadline, writers=(), watch=None):
    """Waits until one of the descriptors is ready; returns those that are, nothing once the deadline has passed.

    A `watch` has a look at the disk meanwhile, once a second. Raises its DiskFull.
    """
    while True:
        remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
        pause = remaining if watch is None else min(INTERVAL_S, INTERVAL_S if remaining is None else remaining)
        readable, writable, _ = select.select(readers, writers, [], pause)
        if readable or writable or pause == remaining:
            return readable + writable
        watch.check()


def kill_descendants(spare=()):
    """Kills every descendant of this process but those in `spare`, however fast they multiply.

    A stopped process cannot fork, so they are all stopped before the first is killed.
    """
    me = os.getpid()
    while True:
        stopped = set()
        while True:
            fresh = system.descendants(me, spare) - stopped
            if not fresh:
                break
            for pid in fresh:
                send_signal(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in stopped:
            send_signal(pid, signal.SIGKILL)
        if not _bury_all(stopped, me, spare):
            return


def _bury_all(doomed, me, spare):
    """Waits for the doomed to die. True when others have turned up meanwhile."""
    while True:
        left = system.descendants(me, spare)
        if left - doomed:
            return True
        mine = left.intersection(system.children(me))
        if not mine:
            return False
        for pid in mine:
            os.waitpid(pid, 0)


def send_signal(pid, number):
    """Signals a process that may be gone already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def drain(descriptor):
    """Reads what a non-blocking descriptor holds and forgets it."""
    try:
        while os.read(descriptor, CHUNK):
            continue
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise


def set_nonblocking(descriptor):
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_NONBLOCK)


def _be_nanny(launch, status, leash):
    """Never returns: this is the nanny's whole life."""
    try:
        os.setsid()
        for number in IGNORED_BY_NANNY:
            signal.signal(number, signal.SIG_IGN)
        adopts = system.adopt_orphans()
        wake, wake_end = wake_on_child()
        child = os.fork()
        if child == 0:
            _become(launch)
        _let_go_of_all_but({status, leash, wake, wake_end})
        os.write(status, b"pid %d\n" % child)
        code = _watch(child, wake, leash)
        if not adopts or not _childless():
            _kill_group(child)
        if adopts:
            kill_descendants()
        os.write(status, b"exit %d\n" % code)
    except BrokenPipeError:
        os._exit(1)
    finally:
        os._exit(0)


def _wake_up(_number, _frame):
    """Only there so that SIGCHLD reaches the wake-up descriptor."""


def _watch(child, wake, leash):
    """Waits for the program to end or the leash to close; the exit code as a shell would tell it."""
    while True:
        ready = wait_readable([wake, leash], None)
        if wake in ready:
            drain(wake)
        code = _bury(child)
        if code is not None:
            return code
        if leash in ready:
            return KILLED


def _bury(child):
    """Buries all that have died; the exit code of `child` if it was among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = _code_of(status)


def _code_of(status):
    """The exit code as a shell tells it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _childless():
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def _kill_group(child):
    """Kills all of the program's process group at one stroke: nothing in it can fork meanwhile, as a bomb would.

    Processes can leave their group; where orphans are adopted, those are killed one by one afterwards.
    """
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        _kill_before_it_leads(child)
    except PermissionError:
        pass
    with suppress(ChildProcessError):
        os.waitpid(child, 0)


def _kill_before_it_leads(child):
    """Kills a program that was forked just now and leads no group yet; one that is buried already is no child."""
    with suppress(ChildProcessError):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            send_signal(child, signal.SIGKILL)


def _let_go_of_all_but(kept):
    """Closes every descriptor but `kept`, the host's terminal among them."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 4096)
    edges = [2, *sorted(kept), limit]
    for low, high in zip(edges, edges[1:]):
        os.closerange(low + 1, high)


def _become(launch):
    """Never returns: turns this process into the program."""
    code = 126
    try:
        os.setsid()
        system.die_with_parent(signal.SIGKILL)
        system.offer_to_oom_killer()
        for number in (*IGNORED_BY_NANNY, signal.SIGCHLD, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(launch.stdin, 0)
        os.dup2(launch.stdout, 1)
        os.dup2(launch.stdout, 2)
        if launch.terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if launch.keep is not None:
            os.set_inheritable(launch.keep, True)
        os.chdir(launch.cwd)
        for name, value in launch.limits.items():
            _lower_limit(getattr(resource, name), value)
        _execute(launch)
    except OSError as error:
        os.write(2, "cannot start: {}\n".format(error).encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _execute(launch):
    program = launch.argv[0]
    try:
        os.execvpe(program, launch.argv, launch.env)
    except (FileNotFoundError, NotADirectoryError):
        os.write(2, "{}: command not found\n".format(program).encode("utf-8", "replace"))
        os._exit(127)


def _lower_limit(which, value):
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))
