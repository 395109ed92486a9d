"""The test server: a process that has loaded the test runner and forks for each run of the tests or the debugger.

The warden is at the other end of the socket GUMSHOE_CONTROL. It orders programs to be started, with their descriptors,
in the launcher's format; `program` is what comes after the interpreter and the options that this process was started
with. A fork becomes the program as that interpreter would have started it. If a fresh interpreter might give a
different outcome, `refused TEXT` is written to the order's status pipe, and nothing is started.

GUMSHOE_PROGRAM holds, as JSON, the first program that will be asked for: its test runner is loaded at once. Nothing
from a workspace is ever loaded or run here. Like the launcher, it cannot be traced.
"""

import contextlib
import importlib
import io
import json
import os
import signal
import socket
import sys
import threading

from ..warden import launcher, system
from .fork_safety import LoadedRunner, WorkspaceScan, forget_caches, freeze, names_at_start, with_added
from .program import (
    STARTER,
    exit_code,
    flush_output,
    is_pytest,
    is_python,
    other_interpreter,
    run_program,
    wait_for_threads,
)

_PATH = list(sys.path)
_PYTHONPATH = os.environ.get("PYTHONPATH", "")
PROGRAMS = ("debugger.main", "programs.syntax", "runs.whatif", "runs.trace", "runs.suspects", "runs.unittest_runs")
"""Programs of this package that forks can become. A new one is listed here, and its plugin in `fork_safety.PLUGINS`."""
FREE = ("PYTHONPATH", "PYTHONUNBUFFERED")
"""Variables of Python's own that a fork can still follow; with any other, an interpreter has to be started."""
CONTROL, PROGRAM = "GUMSHOE_CONTROL", "GUMSHOE_PROGRAM"


class Server:
    """Forks programs until the warden has gone.

    Args:
        connection: the socket to the warden.
        program: the first one that will be asked for.
    """

    def __init__(self, connection, program):
        self.connection = connection
        self.root = os.getcwd()
        self.variables = _variables_of_python(os.environ)
        self.scan = WorkspaceScan(self.root)
        self.names_at_start = names_at_start()
        self.runner = LoadedRunner(_runner(program), self.root, os.path.dirname(os.path.realpath(STARTER)))
        for name in PROGRAMS:
            _import(name)
        freeze()

    def serve(self):
        """Answers orders."""
        while True:
            order = launcher.receive(self.connection)
            if order is None:
                return
            launch, descriptors = order
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

            launcher.supervise(launch, *descriptors, execute=become)

    def refusal(self, launch):
        """Why a fresh interpreter has to run this; None if a fork will do."""
        program = _inner(launch["program"])
        if _variables_of_python(launch["env"]) != self.variables:
            return "variables of Python's own are set"
        os.chdir(self.root)  # It may be another folder than the one that this process has started in.
        if not is_python(program) or other_interpreter(program) is not None:
            return "the entrypoint has an interpreter of its own"
        if _runner(program) != self.runner.name:
            return "another test runner is loaded"
        if self.runner.is_stale():
            return "a library was changed"
        self.scan.look()
        names = self.runner.top_level | self.names_at_start
        return self.runner.problem or self.scan.reason() or self.scan.shadowed(names)

    def become(self, program, environment, kept):
        """Never returns: makes this fork the program, and exits the way the interpreter does."""
        system.show_memory()
        control = int(environment.get(CONTROL, -1))
        for each in _open_descriptors() - kept - {0, 1, 2, control}:
            with contextlib.suppress(OSError):
                os.close(each)
        _reset_signals()
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = _path(environment.get("PYTHONPATH", ""))
        _open_streams(bool(environment.get("PYTHONUNBUFFERED")))
        forget_caches()
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
        flush_output()
        os._exit(code)


def _run(program):
    """Runs one of our scripts, or a program as it is. Returns the exit code."""
    if program[0] != STARTER or program[1] not in PROGRAMS:
        return run_program(program, as_given=True)
    sys.argv = list(program)
    try:
        return _import(program[1]).main(program[2:])
    except SystemExit as error:
        return exit_code(error.code)
    except BaseException:
        _print_exception()
        return 1


def _import(name):
    """A module of this package, by its name in it."""
    return importlib.import_module("..{}".format(name), __package__)


def _inner(program):
    """The program that is to be run by one of ours, or the given program itself."""
    return program[program.index("--") + 1 :] if program[0] == STARTER else program


def _runner(program):
    """What the program loads first: pytest, unittest, or nothing that we know."""
    if is_pytest(program):
        return "pytest"
    return "unittest" if list(program[:2]) == ["-m", "unittest"] else ""


def _print_exception():
    kind, value, trace = sys.exc_info()
    with contextlib.suppress(Exception):
        if kind is not None and value is not None:
            sys.excepthook(kind, value, trace)


def _end_threads():
    vars(threading).get("_shutdown", wait_for_threads)()


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


def main(_):
    """Serves until the connection is closed."""
    system.hide_memory()
    connection = socket.socket(fileno=int(os.environ.pop(CONTROL)))
    program = json.loads(os.environ.pop(PROGRAM))
    for number in (*launcher.IGNORED, signal.SIGCHLD):  # Children are reaped by the kernel.
        signal.signal(number, signal.SIG_IGN)
    sys.path[:] = _path(_PYTHONPATH)
    Server(connection, _inner(program)).serve()
    os._exit(0)
