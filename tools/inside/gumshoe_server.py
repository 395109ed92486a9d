"""The test server: a process that has loaded the test runner and forks for each run of the tests or the debugger.

    python gumshoe_server.py        with the warden at the other end of the socket GUMSHOE_CONTROL

Standard library only, Python 3.6 to 3.14. The first message on the socket, a four-byte length and Python source, holds
the sandbox's own supervisor of programs. It is followed by the warden's orders to start a program, with its
descriptors, in the launcher's format; `program` is what comes after the interpreter and the options that this process
was started with. A fork becomes the program as that interpreter would have started it. If a fresh interpreter might
give a different outcome, `refused TEXT` is written to the order's status pipe, and nothing is started. An order with
`ping` is answered by a byte on its one descriptor.

GUMSHOE_PROGRAM holds, as JSON, the first program that will be asked for: its test runner is loaded at once. Nothing
from a workspace is ever loaded or run here, so a server that is started in a blank sandbox serves one episode after
another. Like the launcher, it cannot be traced.
"""

import contextlib
import importlib
import io
import json
import os
import signal
import socket
import struct
import sys
import threading

_HERE = os.path.dirname(os.path.realpath(__file__))
_PATH = [each for each in sys.path if os.path.realpath(each) != _HERE]
_PYTHONPATH = os.environ.get("PYTHONPATH", "")

import gumshoe_program  # noqa: E402 - it is beside this file
from gumshoe_imports import Imports, freeze, names_at_start, with_added  # noqa: E402
from gumshoe_scan import Scan  # noqa: E402

SCRIPTS = (
    "gumshoe_debugger",
    "gumshoe_whatif",
    "gumshoe_trace",
    "gumshoe_spectrum",
    "gumshoe_syntax",
    "gumshoe_unittest_outcomes",
)
FREE = ("PYTHONPATH", "PYTHONUNBUFFERED")
"""Variables of Python's own that a fork can still follow; with any other, an interpreter has to be started."""
CONTROL, PROGRAM = "GUMSHOE_CONTROL", "GUMSHOE_PROGRAM"
LENGTH = struct.Struct("!I")


class Server:
    """Forks programs until the warden has gone.

    Args:
        connection: the socket to the warden.
        launcher, supervisor: the sandbox's modules of these names.
        program: the first one that will be asked for.
    """

    def __init__(self, connection, launcher, supervisor, program):
        self.connection = connection
        self.launcher = launcher
        self.supervisor = supervisor
        self.root = os.getcwd()
        self.variables = _variables_of_python(os.environ)
        self.scan = Scan(self.root)
        self.names_at_start = names_at_start()
        self.imports = Imports(self.root, _HERE, _runner(program))
        for name in SCRIPTS:
            if os.path.exists(os.path.join(_HERE, name + ".py")):
                importlib.import_module(name)
        freeze()

    def serve(self):
        """Answers orders."""
        self.supervisor.system.hide_memory()
        while True:
            order = self.launcher.receive(self.connection)
            if order is None:
                return
            launch, descriptors = order
            if "ping" in launch:
                os.write(descriptors[0], b".")
            else:
                self.start(launch, descriptors)
            for each in descriptors:
                os.close(each)

    def start(self, launch, descriptors):
        """Forks the supervisor of one program, or refuses."""
        kept = _open_descriptors() - {self.connection.fileno(), *descriptors}
        why = self.refusal(launch)
        if why is not None:
            os.write(descriptors[2], b"refused " + why.encode("ascii", "replace")[:300] + b"\n")
        elif os.fork() == 0:

            def become(_, environment):
                self.become(launch["program"], environment, kept)

            self.supervisor.supervise(launch, *descriptors, execute=become)

    def refusal(self, launch):
        """Why a fresh interpreter has to run this; None if a fork will do."""
        program = _inner(launch["program"])
        if _variables_of_python(launch["env"]) != self.variables:
            return "variables of Python's own are set"
        if os.path.realpath(launch["cwd"]) != os.path.realpath(self.root):
            return "it does not run in the workspace's root"
        os.chdir(self.root)  # It may be another folder than the one that this process has started in.
        if not gumshoe_program.is_python(program) or _has_own_interpreter(program):
            return "the entrypoint has an interpreter of its own"
        if _runner(program) != self.imports.runner:
            return "another test runner is loaded"
        if self.imports.are_stale():
            return "a library was changed"
        self.scan.look()
        names = self.imports.top_level | self.names_at_start
        return self.imports.problem or self.scan.reason() or self.scan.shadowed(names)

    def become(self, program, environment, kept):
        """Never returns: makes this fork the program, and exits the way the interpreter does."""
        self.supervisor.system.show_memory()
        control = int(environment.get(CONTROL, -1))
        for each in _open_descriptors() - kept - {0, 1, 2, control}:
            with contextlib.suppress(OSError):
                os.close(each)
        _reset_signals()
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = _path(environment.get("PYTHONPATH", ""))
        _open_streams(bool(environment.get("PYTHONUNBUFFERED")))
        self.imports.become()
        code = 1
        try:
            code = _run(program)
        finally:
            self.leave(code)

    def leave(self, code):
        """Ends this fork: waits for its threads, runs its exit functions, flushes its streams."""
        for last in (_end_threads, _run_exit_functions):
            try:
                last()
            except BaseException:  # the program's own functions may raise anything
                _print_exception()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _run(program):
    """Runs one of our scripts, or a program as it is. Returns the exit code."""
    name = os.path.basename(program[0])[: -len(".py")]
    if os.path.dirname(program[0]) != _HERE or name not in SCRIPTS:
        return gumshoe_program.run_program(program, gumshoe_program.Nobody, as_given=True)
    sys.argv = list(program)
    sys.path.insert(0, _HERE)
    try:
        return importlib.import_module(name).main(program[1:])
    except SystemExit as error:
        return gumshoe_program.exit_code(error.code)
    except BaseException:
        _print_exception()
        return 1


def _inner(program):
    """The program that is to be run by one of our scripts, or the given program itself."""
    return program[program.index("--") + 1 :] if os.path.dirname(program[0]) == _HERE else program


def _has_own_interpreter(program):
    if program[0].startswith("-") or os.path.exists(program[0]):
        return False
    return gumshoe_program.other_interpreter(gumshoe_program.find_script(program[0])) is not None


def _runner(program):
    """What the program loads first: pytest, unittest, or nothing that we know."""
    if gumshoe_program.is_pytest(program):
        return "pytest"
    return "unittest" if list(program[:2]) == ["-m", "unittest"] else ""


def _print_exception():
    kind, value, trace = sys.exc_info()
    with contextlib.suppress(Exception):
        if kind is not None and value is not None:
            sys.excepthook(kind, value, trace)


def _end_threads():
    vars(threading).get("_shutdown", gumshoe_program.wait_for_threads)()


def _run_exit_functions():
    import atexit

    vars(atexit)["_run_exitfuncs"]()


def _variables_of_python(environment):
    return {name: value for name, value in environment.items() if name.startswith("PYTHON") and name not in FREE}


def _path(variable):
    """What `sys.path` holds in a fresh interpreter, before the program adds its own folder."""
    before = [os.path.abspath(each) for each in _PYTHONPATH.split(os.pathsep) if each]
    now = [os.path.abspath(each) for each in variable.split(os.pathsep) if each]
    return now + [each for each in with_added(_PATH) if each not in before]


def _reset_signals():
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)


def _open_streams(unbuffered):
    """Opens new streams on the descriptors, as an interpreter does at startup."""
    encoding = sys.__stdout__.encoding
    source = io.BufferedReader(io.FileIO(0, closefd=False))
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(source, encoding, sys.__stdin__.errors)
    for number, name in ((1, "stdout"), (2, "stderr")):
        errors = getattr(sys, "__" + name + "__").errors
        raw = io.FileIO(number, "w", closefd=False)
        raw.name = "<" + name + ">"
        raw = raw if unbuffered else io.BufferedWriter(raw)
        by_line = os.isatty(number) or (number == 2 and sys.version_info >= (3, 9))
        stream = io.TextIOWrapper(raw, encoding, errors, None, by_line, unbuffered)
        stream.mode = "w"
        setattr(sys, name, stream)
        setattr(sys, "__" + name + "__", stream)


def _open_descriptors():
    return {int(name) for name in os.listdir("/proc/self/fd")}


def _load(source):
    """The sandbox's launcher and supervisor; programs cannot import any part of them."""
    exec(source, {})  # noqa: S102 - the warden's own modules
    ours = [name for name in sys.modules if name.partition(".")[0] == "gumshoe"]
    modules = {name.rpartition(".")[2]: sys.modules.pop(name) for name in ours}
    return modules["launcher"], modules["supervisor"]


def main():
    """Serves until the connection is closed."""
    connection = socket.socket(fileno=int(os.environ.pop(CONTROL)))
    program = json.loads(os.environ.pop(PROGRAM))
    launcher, supervisor = _load(_receive_source(connection))
    for number in (*supervisor.IGNORED, signal.SIGCHLD):  # Children are reaped by the kernel.
        signal.signal(number, signal.SIG_IGN)
    sys.path[:] = [*_path(_PYTHONPATH), _HERE]
    Server(connection, launcher, supervisor, _inner(program)).serve()
    os._exit(0)


def _receive_source(connection):
    (length,) = LENGTH.unpack(_exactly(connection, LENGTH.size))
    return _exactly(connection, length).decode("ascii")


def _exactly(connection, count):
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            os._exit(1)
        data += piece
    return data


if __name__ == "__main__":
    main()
