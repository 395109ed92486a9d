"""The launcher: a small process that starts every program, so that no program is ever a copy of the warden.

The warden executes it before the first program runs. It holds nothing of the warden's: no terminal to the host, no
nonce, no descriptor but one socket, on which it receives what to start. Neither it nor what it forks can be traced
until a program has replaced it; then nothing of it is left.

A request is the length of a JSON object (four bytes), then the object: `argv`, `cwd`, `env`, `limits`, `terminal`. With
it come the descriptors of standard input, standard output, the status pipe, the liveness pipe and, for sessions, the
control socket.

Each program has a supervisor, a process between the launcher and the program that adopts all the program's orphans.
When the program ends, when its time is up, or when the warden itself dies (the liveness pipe closes), the supervisor
kills every descendant, reports how the program ended, and exits. It reports on the status pipe, one line each:

    supervisor PID        first of all
    pid PID               the program's process
    exit CODE             everything is gone
"""

import array
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import termios
from contextlib import suppress

from . import system
from .system import (
    KILLED,
    childless,
    drain,
    exit_code_of,
    kill_descendants,
    send_signal,
    wait_ready,
    wake_on_child,
)

CONTROL = "GUMSHOE_CONTROL"
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGUSR1)


def supervise(launch, stdin, stdout, status, liveness, control=None, execute=None):
    """Never returns: starts the program and looks after it until everything that it started is gone.

    `execute(argv, environment)` turns a process into the program, for good. A supervisor that fails has nobody to tell,
    but it ends without its last report: the warden takes it for one that was killed (`Job.orphaned`).
    """
    try:
        os.setsid()
        os.write(status, b"supervisor %d\n" % os.getpid())
        adopts = system.adopt_orphans()
        wake, wake_end = wake_on_child()
        child = os.fork()
        if child == 0:
            _become(launch, stdin, stdout, control, execute or _execute)
        _close_all_but({status, liveness, wake, wake_end})
        os.write(status, b"pid %d\n" % child)
        code = _wait(child, wake, liveness)
        if not adopts or not childless():
            _kill_group(child)
        if adopts:
            kill_descendants()
        os.write(status, b"exit %d\n" % code)
    except BrokenPipeError:
        os._exit(1)
    finally:
        os._exit(0)


def _wait(child, wake, liveness):
    """Waits for the program to end or the liveness pipe to close; the exit code as a shell would report it."""
    while True:
        ready = wait_ready([wake, liveness], None)
        if wake in ready:
            drain(wake)
        code = _reap(child)
        if code is not None:
            return code
        if liveness in ready:
            return KILLED


def _reap(child):
    """Reaps all that have died; the exit code of `child` if it was among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = exit_code_of(status)


def _kill_group(child):
    """Kills all of the program's process group in one call: nothing in it can fork meanwhile, as a fork bomb would.

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
    """Kills a program that was forked just now and leads no group yet; one already reaped is no longer a child."""
    with suppress(ChildProcessError):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            send_signal(child, signal.SIGKILL)


def _close_all_but(kept):
    """Closes every descriptor but `kept` and points the standard streams at /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 4096)
    edges = [2, *sorted(kept), limit]
    for low, high in zip(edges, edges[1:]):
        os.closerange(low + 1, high)


def _become(launch, stdin, stdout, control, execute):
    """Never returns: turns this process into the program. It stays untraceable until the program has replaced it."""
    code = 126
    try:
        os.setsid()
        system.die_with_parent(signal.SIGKILL)
        for number in (*IGNORED, signal.SIGCHLD, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.dup2(stdout, 2)
        if launch["terminal"]:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        environment = launch["env"]
        if control is not None:
            os.set_inheritable(control, True)
            environment[CONTROL] = str(control)
        os.chdir(launch["cwd"])
        for name, value in launch["limits"].items():
            _lower_limit(getattr(resource, name), value)
        execute(launch["argv"], environment)
    except (OSError, ValueError) as error:
        os.write(2, "cannot start: {}\n".format(error).encode("utf-8", "replace"))
    except Exception as error:  # an error of ours
        os.write(2, "cannot start: {!r}\n".format(error).encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _execute(argv, environment):
    try:
        os.execvpe(argv[0], argv, environment)
    except (FileNotFoundError, NotADirectoryError):
        os.write(2, "{}: command not found\n".format(argv[0]).encode("utf-8", "replace"))
        os._exit(127)


def _lower_limit(which, value):
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


HEADER = struct.Struct("!I")
MAX_DESCRIPTORS = 5


def serve(descriptor):
    """Starts programs until the warden has gone."""
    system.offer_to_oom_killer()
    system.hide_memory()
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # Supervisors are reaped by the kernel; the warden learns of their end from the status pipe.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    connection = socket.socket(fileno=descriptor)
    while True:
        received = receive(connection)
        if received is None:
            return
        launch, descriptors = received
        if os.fork() == 0:
            os.dup2(1, descriptor)  # /dev/null takes the socket's place, so that no other descriptor gets it.
            supervise(launch, *descriptors)
        for each in descriptors:
            os.close(each)


def send(connection, launch, descriptors):
    """Sends what to start. Raises OSError when the launcher has died."""
    data = json.dumps(launch).encode("ascii")
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    connection.sendmsg([HEADER.pack(len(data))], ancillary)
    connection.sendall(data)


def receive(connection):
    """What `send` sent: the object and the descriptors; None when the other side has closed."""
    descriptors = array.array("i")
    space = socket.CMSG_SPACE(MAX_DESCRIPTORS * descriptors.itemsize)
    header, ancillary, _flags, _address = connection.recvmsg(HEADER.size, space, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    header += _exactly(connection, HEADER.size - len(header))
    if len(header) < HEADER.size:
        return None
    length = HEADER.unpack(header)[0]
    text = _exactly(connection, length)
    return None if len(text) < length else (json.loads(text.decode("ascii")), list(descriptors))


def _exactly(connection, count):
    """That many bytes; fewer when the other side has closed."""
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            break
        data += piece
    return bytes(data)
