"""The test server: a process that has loaded the test runner and forks for each run of the tests or the debugger.

    python gumshoe_server.py        with the warden at the other end of the socket GUMSHOE_CONTROL

Standard library only, Python 3.6 to 3.14. The first message on the socket, a four-byte length and Python source, holds
the sandbox's own supervisor of programs. It is followed by the warden's orders to start a program, with its
descriptors, in the launcher's format; `program` is what comes after the interpreter and the options that this process
was started with. A fork becomes the program as that interpreter would have started it. If a fresh interpreter might
give a different outcome, `refused TEXT` is written to the order's status pipe, and nothing is started.

If GUMSHOE_AHEAD names a program, as JSON, what it needs is loaded at once, while the workspace is still empty, and
this process becomes a nursery (see `gumshoe_nursery`).

After each run the server imports what the run had imported from outside the workspace, and compiles what it had
imported from the workspace, so that the next fork has both.
"""

import contextlib
import importlib
import io
import json
import os
import select
import signal
import socket
import struct
import sys
import threading

_HERE = os.path.dirname(os.path.realpath(__file__))
_PATH = [each for each in sys.path if os.path.realpath(each) != _HERE]
_PYTHONPATH = os.environ.get("PYTHONPATH", "")

import gumshoe_nursery  # noqa: E402 - it is beside this file
import gumshoe_program  # noqa: E402
import gumshoe_syntax  # noqa: E402
from gumshoe_imports import Imports, freeze, names_at_start, with_added  # noqa: E402
from gumshoe_rewritten import Compiled, Rewritten  # noqa: E402
from gumshoe_scan import Scan  # noqa: E402

SCRIPTS = ("gumshoe_debugger", "gumshoe_whatif", "gumshoe_trace", "gumshoe_spectrum")
SYNTAX = os.path.join(_HERE, "gumshoe_syntax.py")
"""The script that needs no fork, since it runs nothing."""
FREE = ("PYTHONPATH", "PYTHONUNBUFFERED")
"""Variables of Python's own that a fork can still follow; with any other, an interpreter has to be started."""
MEMORY = "GUMSHOE_SERVER"
CONTROL = "GUMSHOE_CONTROL"
AHEAD = "GUMSHOE_AHEAD"
REPORT_BYTES = 1 << 20
LENGTH = struct.Struct("!I")


class Server:
    """Forks programs until the warden has gone.

    Args:
        connection: the socket to the warden.
        launcher, supervisor: the sandbox's modules of these names.
        memory: what the server that this one replaces knew: packages `excluded`, modules `wanted`.
    """

    def __init__(self, connection, launcher, supervisor, memory):
        self.launcher = launcher
        self.supervisor = supervisor
        self.root = os.getcwd()
        self.environment = dict(os.environ)
        self.source = memory["source"]
        self.variables = _variables_of_python(os.environ)
        self.scan = Scan(self.root)
        self.imports = Imports(self.root, _HERE, set(memory.get("excluded", ())))
        self.kept = {"rewritten": Rewritten(self.root), "compiled": Compiled(self.root)}
        self.wanted = memory.get("wanted", [])
        self.names_at_start = names_at_start()
        self.connect(connection)

    def connect(self, connection):
        """Takes orders from this socket; programs report on a socket that no other server has."""
        self.connection = connection
        self.reports, self.report_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.report_end.setblocking(False)

    def serve(self):
        """Answers orders; between them it learns what the programs have imported."""
        while True:
            pending = [kept for kept in self.kept.values() if kept.is_pending]
            wait_s = 0 if pending else None
            ready = select.select([self.connection, self.reports], [], [], wait_s)[0]
            if not ready:
                pending[0].compile_next()
                continue
            if self.reports in ready:
                report = json.loads(self.reports.recv(REPORT_BYTES).decode("ascii"))
                self.learn(report["modules"])
                for name, kept in self.kept.items():
                    kept.note(report[name] if self.scan.reason("libraries") is None else [])
                continue
            order = self.launcher.receive(self.connection)
            if order is None:
                return
            self.start(*order)

    def start(self, launch, descriptors):
        """Forks the supervisor of one program, or refuses."""
        if launch["program"][:1] == [SYNTAX]:
            gumshoe_syntax.answer(*descriptors)
            return
        kept = _open_descriptors() - {self.connection.fileno(), self.reports.fileno(), *descriptors}
        why = self.refusal(launch)
        if why is not None:
            os.write(descriptors[2], b"refused " + why.encode("ascii", "replace")[:300] + b"\n")
        elif os.fork() == 0:

            def become(_, environment):
                self.become(launch["program"], environment, kept)

            self.supervisor.supervise(launch, *descriptors, execute=become)
        for each in descriptors:
            os.close(each)
        if why is not None and self.imports.is_beyond_runner:
            self.begin_again()

    def refusal(self, launch):
        """Why a fresh interpreter has to run this; None if a fork will do."""
        program = _inner(launch["program"])
        if _variables_of_python(launch["env"]) != self.variables:
            return "variables of Python's own are set"
        if os.path.realpath(launch["cwd"]) != os.path.realpath(self.root):
            return "it does not run in the workspace's root"
        if not gumshoe_program.is_python(program) or _has_own_interpreter(program):
            return "the entrypoint has an interpreter of its own"
        runner = _runner(program)
        if self.imports.runner is None:
            self.prepare(program)
        if runner != self.imports.runner:
            return "another test runner is loaded"
        if self.imports.are_stale():
            return "a library was changed"
        self.scan.look()
        level = "libraries" if self.imports.is_beyond_runner else "runner"
        names = self.imports.top_level | self.names_at_start
        return self.imports.problem or self.scan.reason(level) or self.scan.shadowed(names)

    def prepare(self, program):
        """Loads a program's test runner, and what the server before this one had learned."""
        self.imports.load_runner(_runner(program), program)
        for name in SCRIPTS:
            if os.path.exists(os.path.join(_HERE, name + ".py")):
                importlib.import_module(name)
        if self.imports.problem is None:
            self.learn(self.wanted)
        freeze()

    def learn(self, names):
        """Imports modules that a run has imported; starts over without a package whose import had side effects."""
        if self.scan.reason("libraries") is not None:
            return
        loaded = len(sys.modules)
        bad = self.imports.add(names)
        if bad is not None:
            self.imports.excluded.add(bad)
            self.begin_again([*self.imports.loaded(), *names])
        if len(sys.modules) != loaded:
            freeze()

    def begin_again(self, wanted=()):
        """Replaces this process with a new server, which knows what must not be imported ahead."""
        memory = {"source": self.source, "excluded": sorted(self.imports.excluded), "wanted": list(wanted)}
        environment = {**self.environment, MEMORY: json.dumps(memory), CONTROL: str(self.connection.fileno())}
        os.set_inheritable(self.connection.fileno(), True)
        with open("/proc/self/cmdline", "rb") as stream:
            os.execve(sys.executable, stream.read()[:-1].split(b"\0"), environment)

    def become(self, program, environment, kept):
        """Never returns: makes this fork the program, and exits the way the interpreter does."""
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
        if self.scan.reason("libraries") is None:
            for kept in self.kept.values():
                kept.become()
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
        with contextlib.suppress(Exception):
            spaces = self.imports.fresh()
            report = {"modules": self.imports.seen(), **{name: kept.seen(spaces) for name, kept in self.kept.items()}}
            self.report_end.send(json.dumps(report).encode("ascii"))
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
    memory = json.loads(os.environ.pop(MEMORY, "{}")) or {"source": _receive_source(connection)}
    ahead = json.loads(os.environ.pop(AHEAD, "null"))
    launcher, supervisor = _load(memory["source"])
    gumshoe_nursery.ignore_signals(supervisor)
    sys.path[:] = [*_path(_PYTHONPATH), _HERE]
    server = Server(connection, launcher, supervisor, memory)
    if ahead is not None:
        server.prepare(_inner(ahead))
        gumshoe_nursery.tend(server)
    server.serve()
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
