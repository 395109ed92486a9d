"""A debugger that runs a program and talks JSON lines over a socket of its own. PYTEST_DONT_REWRITE

    GUMSHOE_CONTROL=3 python gumshoe_debugger.py -- -m pytest -x
    GUMSHOE_CONTROL=3 python gumshoe_debugger.py -- script.py argument

Standard library only, Python 3.6 to 3.14. It is started in the root of the workspace; "workspace frame" means a
frame whose file is below that folder and not in an installed package. Only workspace frames are stopped in and shown.

The control socket is the file descriptor named by GUMSHOE_CONTROL. It carries one JSON object a line each way; the
program's own output stays on its terminal, so nothing that it prints can be taken for an answer.

Requests carry an `id` which the answer repeats:

    {"id": 1, "op": "commands", "lines": ["b cart.py:12, n > 3", "c", "p n"]}     pdb's command lines
    {"id": 2, "op": "set_breakpoints", "breakpoints": [{"number": 1, "path": "cart.py", "line": 12}]}
    {"id": 3, "op": "break", "path": "cart.py", "line": 12, "condition": "n > 3", "temporary": true, "ignore": 2}
    {"id": 4, "op": "next"}      also continue, step, return, where, up, down, locals, quit
    {"id": 5, "op": "until", "argument": "20"}      also jump, p, pp, evaluate, checkpoint, restore, condition ...

Answers come when all commands are done, or the program has ended:

    {"id": 1, "state": "stopped", "results": [{"command": ..., "output": ..., "stop": ...}], "stop": {...},
     "frames": [...], "index": 1, "breakpoints": [...], "exit_code": null}

`state` is `ready` (not started), `stopped` or `exited`. `stop` says where and why: breakpoint, step, return,
exception, post-mortem (a test failed, or nothing caught the exception), interrupt, or breakpoint() in the code.

SIGINT stops a running program where it is, or ends a long evaluation. Programs that block SIGINT, or sit in C code
that does not look at signals, cannot be stopped so. A program that calls `sys.settrace` itself switches breakpoints
off until the next stop. Threads are stopped in one at a time while the others run on; those that were started while
there was no breakpoint are not stopped in. Forked children run free of the debugger.

Time travel: `checkpoint NAME` forks; the parent waits as the checkpoint while the child runs on as the program.
`restore NAME` ends the running process and forks the waiting one again, so that a checkpoint can be gone back to
any number of times, from any other. What comes back is the memory of the process. NOT covered: files and their
offsets, sockets, child processes, other threads (a checkpoint is refused while there are any), the clock, and the
process id, which changes.
"""

import builtins
import dis
import fcntl
import importlib.machinery
import importlib.util
import io
import json
import linecache
import mmap
import os
import pprint
import re
import reprlib
import runpy
import select
import shutil
import signal
import sys
import threading
import tokenize
import traceback
import types
import warnings

OUTPUT_LIMIT = 6000
VALUE_LIMIT = 200
FRAME_LIMIT = 30
LOCALS_LIMIT = 40
RESTORED = 213
_HIGH_FD = 400
_FOREIGN = ("site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", ".git", "node_modules", "__pypackages__")

# A program under test may replace any of these; the debugger keeps the real ones.
_read, _write, _open, _fork, _exit, _getpid = os.read, os.write, io.open, os.fork, os._exit, os.getpid
_get_ident = threading.get_ident


class CommandError(Exception):
    """A command that could not be carried out; its text is the answer."""


# --- values -----------------------------------------------------------------------------------------------------


def shorten(text, limit=OUTPUT_LIMIT):
    """`text` with its middle cut out when it is longer than `limit`."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return "{}[... {} characters cut ...]{}".format(text[:half], len(text) - 2 * half, text[-half:])


class _ShortRepr(reprlib.Repr):
    """Reprs that stay short without walking through all of a big container."""

    def __init__(self):
        super().__init__()
        self.maxlevel = 4
        self.maxtuple = self.maxlist = self.maxarray = self.maxset = self.maxfrozenset = self.maxdeque = 12
        self.maxdict = 12
        self.maxstring = self.maxlong = self.maxother = VALUE_LIMIT


_short = _ShortRepr()


def short_repr(value):
    """A repr of at most about VALUE_LIMIT characters, also of values whose own repr fails."""
    try:
        if _has_plain_repr(value):
            return shorten(_attributes(value, _short.repr), VALUE_LIMIT)
        return shorten(without_addresses(value, _short.repr(value)), VALUE_LIMIT)
    except Exception as error:  # the value's own code may raise anything
        return "<unprintable {}: {}>".format(type(value).__name__, type(error).__name__)


def full_repr(value):
    """The repr of a value; an object without one of its own is shown by its attributes."""
    return _attributes(value, short_repr) if _has_plain_repr(value) else without_addresses(value, repr(value))


def _has_plain_repr(value):
    return type(value).__repr__ is object.__repr__ and hasattr(value, "__dict__")


def _attributes(value, show):
    shown = ["{}={}".format(name, show(each)) for name, each in list(vars(value).items())[:12]]
    return "<" + " ".join([type(value).__name__] + shown) + ">"


def without_addresses(value, text):
    """The text of a repr without memory addresses, which differ from run to run; texts are left as they are."""
    return text if isinstance(value, (str, bytes, bytearray)) else _ADDRESS.sub(">", text)


_ADDRESS = re.compile(r"(?<=[\w>)]) at 0x[0-9a-fA-F]+>")


def describe_exception(kind, value):
    """`KeyError: 'x'`, in one piece, also when the exception cannot be printed."""
    try:
        text = "".join(traceback.format_exception_only(kind, value)).strip()
    except Exception:  # the exception's own code may raise anything
        text = kind.__name__
    return shorten(text, 600)


# --- files ------------------------------------------------------------------------------------------------------


class Files:
    """Which files belong to the workspace, and where code is in them."""

    def __init__(self, root):
        self.root = root
        self.roots = sorted({root, os.path.realpath(root), os.environ.get("PWD") or root}, key=len, reverse=True)
        self.own = os.path.dirname(os.path.abspath(__file__))
        self._names = {}
        self._lines = {}

    def name(self, filename):
        """The path relative to the workspace; None for a file outside it or in an installed package."""
        try:
            return self._names[filename]
        except KeyError:
            name = self._names[filename] = self._find_name(filename)
            return name

    def _find_name(self, filename):
        if filename.startswith("<"):
            return None
        full = os.path.normpath(os.path.join(self.root, filename))
        if full.startswith(self.own + os.sep):
            return None
        for root in self.roots:
            if full.startswith(root.rstrip(os.sep) + os.sep):
                name = full[len(root.rstrip(os.sep)) + 1 :]
                return None if any(part in _FOREIGN for part in name.split(os.sep)[:-1]) else name
        return None

    def shown(self, filename):
        """What to call a file: relative in the workspace, as it is elsewhere."""
        return self.name(filename) or filename

    def source(self, filename):
        """The lines of a file, without their ends; none where it cannot be read."""
        if filename not in self._lines:
            self._lines[filename] = self._read_lines(filename)
        return self._lines[filename]

    def _read_lines(self, filename):
        try:
            with _open(os.path.join(self.root, filename), "rb") as stream:
                encoding, _ = tokenize.detect_encoding(stream.readline)
                stream.seek(0)
                return stream.read().decode(encoding, "replace").splitlines()
        except (OSError, SyntaxError, LookupError):
            return [line.rstrip("\n") for line in linecache.getlines(filename)]

    def line(self, filename, number):
        """One line, stripped."""
        lines = self.source(filename)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def compiled(self, name):
        """The code object of a workspace file. Raises CommandError."""
        path = os.path.join(self.root, name)
        try:
            with _open(path, "rb") as stream:
                data = stream.read()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return compile(data, path, "exec", 0, True)
        except OSError:
            raise CommandError("no file {}".format(name)) from None
        except (SyntaxError, ValueError) as error:
            raise CommandError("{} cannot be compiled: {}".format(name, error)) from None

    def resolve(self, path):
        """The workspace's name of a file given by an agent. Raises CommandError."""
        full = os.path.normpath(os.path.join(self.root, path))
        for candidate in (full, full + ".py"):
            if os.path.isfile(candidate):
                if self.name(candidate) is None:
                    raise CommandError("{} is not part of the workspace".format(path))
                return self.name(candidate)
        raise CommandError("no file {}".format(path))


def _code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for inner in _code_objects(constant):
                yield inner


def _code_lines(code):
    """Lines at which a code object, without those inside it, gets a line event."""
    return {line for _, line in dis.findlinestarts(code) if line}


def _body_line(code):
    """The first line of a function's body: where a call of it first stops."""
    lines = sorted(line for line in _code_lines(code) if line > code.co_firstlineno)
    return lines[0] if lines else code.co_firstlineno


def _is_function(code):
    return bool(code.co_flags & 1) and code.co_name.isidentifier()


def stop_line(files, name, line):
    """The line at which a breakpoint wanted at `line` stops, moved down over lines without code.

    A breakpoint on a `def` or its decorators means the function's first line. Raises CommandError.
    """
    top = files.compiled(name)
    lines = files.source(os.path.join(files.root, name))
    if not 1 <= line <= len(lines):
        raise CommandError("{} has only {} lines".format(name, len(lines)))
    for code in _code_objects(top):
        if _is_function(code) and code.co_firstlineno <= line <= _def_line(lines, code.co_firstlineno):
            return _body_line(code)
    later = [found for code in _code_objects(top) for found in _code_lines(code) if found >= line]
    if not later:
        raise CommandError("no code at or after {}:{}".format(name, line))
    return min(later)


def _def_line(lines, line):
    """The line of the `def` that a function starting at `line` (at its decorators) has."""
    for number in range(line, len(lines) + 1):
        if re.match(r"\s*(async\s+def|def)\b", lines[number - 1]):
            return number
    return line


def function_line(files, name, function):
    """The first body line of `function` (`f`, `Class.method`) in a file. Raises CommandError."""
    for code in _code_objects(files.compiled(name)):
        found = _descend(code, function.split("."))
        if found is not None and _is_function(found):
            return _body_line(found)
    raise CommandError("no function {} in {}".format(function, name))


def _descend(code, parts):
    for part in parts:
        inner = [each for each in code.co_consts if isinstance(each, types.CodeType) and each.co_name == part]
        if not inner:
            return None
        code = inner[0]
    return code


# --- breakpoints ------------------------------------------------------------------------------------------------


class Breakpoint:
    """One breakpoint; `problem` says why it cannot be hit."""

    def __init__(self, number, path, line, condition=None, temporary=False, ignore=0, enabled=True, function=None):
        self.number = number
        self.path = path
        self.line = line
        self.condition = condition or None
        self.temporary = bool(temporary)
        self.ignore = int(ignore or 0)
        self.enabled = bool(enabled)
        self.function = function
        self.hits = 0
        self.problem = None

    def as_data(self):
        """The breakpoint as the host keeps it."""
        return dict(vars(self))

    def __str__(self):
        notes = ["if " + self.condition] if self.condition else []
        notes += ["temporary"] if self.temporary else []
        notes += ["ignoring next {}".format(self.ignore)] if self.ignore else []
        notes += [] if self.enabled else ["disabled"]
        notes += [self.problem] if self.problem else []
        where = "{}:{}".format(self.path, self.line)
        return "breakpoint {} at {}{}".format(self.number, where, " (" + ", ".join(notes) + ")" if notes else "")


class Breakpoints:
    """All breakpoints, and quick answers to whether a code object or a line has one."""

    def __init__(self, files):
        self.files = files
        self.by_number = {}
        self._by_path = {}
        self._wanted = {}

    def __bool__(self):
        return bool(self._by_path)

    def changed(self):
        """Is to be called after every change."""
        self._wanted = {}
        self._by_path = {}
        for each in self.by_number.values():
            if each.enabled and each.problem is None:
                self._by_path.setdefault(each.path, {}).setdefault(each.line, []).append(each)

    def add(self, path, line, **options):
        """A new breakpoint with the next number. Raises CommandError."""
        number = max(self.by_number, default=0) + 1
        made = Breakpoint(number, path, stop_line(self.files, path, line), **options)
        self.by_number[number] = made
        self.changed()
        return made

    def replace_all(self, items):
        """Takes over the host's table. One that cannot be placed is kept with its problem."""
        self.by_number = {}
        for item in items:
            known = {key: value for key, value in item.items() if key not in ("hits", "problem")}
            made = Breakpoint(**known)
            made.hits = item.get("hits", 0)
            try:
                made.path = self.files.resolve(made.path)
                made.line = stop_line(self.files, made.path, made.line)
            except CommandError as error:
                made.problem = str(error)
            self.by_number[made.number] = made
        self.changed()

    def wants(self, code):
        """Whether a code object has a line with a breakpoint."""
        key = id(code)
        known = self._wanted.get(key)
        if known is None:
            lines = self._by_path.get(self.files.name(code.co_filename))
            wanted = bool(lines) and not _code_lines(code).isdisjoint(lines)
            # The code object is kept with its id, so that no other can get the same one.
            known = self._wanted[key] = (wanted, code)
        return known[0]

    def hit(self, frame):
        """The breakpoint to stop at in this line, and why its condition failed if it did; else (None, None)."""
        lines = self._by_path.get(self.files.name(frame.f_code.co_filename))
        for each in (lines or {}).get(frame.f_lineno, ()):
            met, error = _condition_met(each, frame)
            if not met:
                continue
            each.hits += 1
            if each.ignore > 0 and error is None:
                each.ignore -= 1
                continue
            if each.temporary and error is None:
                del self.by_number[each.number]
                self.changed()
            return each, error
        return None, None


def _condition_met(breakpoint_, frame):
    if breakpoint_.condition is None:
        return True, None
    try:
        return bool(eval(breakpoint_.condition, frame.f_globals, frame.f_locals)), None
    except Exception as error:  # the agent's expression may raise anything
        return True, "condition failed: " + describe_exception(type(error), error)


# --- where the program stands -----------------------------------------------------------------------------------


class Stop:
    """A place where the program stands: the frames to look at, innermost last, and the one chosen."""

    def __init__(self, files, reason, frames, index=None, **facts):
        self.files = files
        self.reason = reason
        self.frames = frames[-FRAME_LIMIT:]
        self.hidden = len(frames) - len(self.frames)
        self.index = len(self.frames) - 1 if index is None else index
        self.facts = {key: value for key, value in facts.items() if value is not None}
        self._locals = {}
        self._described = None

    @property
    def frame(self):
        """The chosen frame."""
        return self.frames[self.index][0]

    @property
    def line(self):
        """The line the chosen frame is at."""
        return self.frames[self.index][1]

    @property
    def finished(self):
        """Whether the frames have ended, so that nothing can be run in them step by step."""
        return self.reason == "post-mortem"

    def locals(self):
        """The chosen frame's variables; one dictionary for the whole stop, since asking again undoes assignments."""
        if self.index not in self._locals:
            self._locals[self.index] = self.frame.f_locals
        return self._locals[self.index]

    def as_data(self):
        """The stop as the host reads it."""
        frame, line = self.frames[self.index]
        data = {"reason": self.reason, "path": self.files.shown(frame.f_code.co_filename), "line": line}
        data.update(function=frame.f_code.co_name, source=self.around(2))
        data.update(self.facts)
        return data

    def around(self, margin):
        """Numbered lines around the current one."""
        lines = self.files.source(self.frame.f_code.co_filename)
        first = max(1, self.line - margin)
        return [[number, lines[number - 1]] for number in range(first, min(len(lines), self.line + margin) + 1)]

    def frames_as_data(self):
        """All frames, without their variables."""
        if self._described is None:
            self._described = [self._frame_as_data(frame, line) for frame, line in self.frames]
        return self._described

    def _frame_as_data(self, frame, line):
        filename = frame.f_code.co_filename
        name = self.files.shown(filename)
        return {"path": name, "line": line, "function": frame.f_code.co_name, "code": self.files.line(filename, line)}

    def variables(self):
        """Names and short reprs of the chosen frame's variables, without modules, functions and classes."""
        shown = {}
        for name, value in list(self.locals().items()):
            if name.startswith("__") or name.startswith("@") or isinstance(value, _UNINTERESTING):
                continue
            if len(shown) == LOCALS_LIMIT:
                break
            shown[name] = short_repr(value)
        return shown


_UNINTERESTING = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def _line_of(frame):
    """The frame's line; its first one where the interpreter knows none."""
    return frame.f_lineno or frame.f_code.co_firstlineno


class Plan:
    """How far a step goes: `kind` is step, next, return or until; `frame` the one it is about."""

    def __init__(self, kind, frame=None, line=0):
        self.kind = kind
        self.frame = frame
        self.line = line
        self.thread = _get_ident()


# --- the control channel ----------------------------------------------------------------------------------------


class Channel:
    """JSON lines over a socket. A closed socket ends the process: nobody is left to talk to."""

    def __init__(self, descriptor):
        self.descriptor = _move_high(descriptor)
        self._buffer = b""

    def send(self, message):
        """Sends one message."""
        data = json.dumps(message).encode("ascii") + b"\n"
        try:
            while data:
                data = data[_write(self.descriptor, data) :]
        except OSError:
            _exit(1)

    def receive(self):
        """Waits for the next message."""
        while b"\n" not in self._buffer:
            try:
                data = _read(self.descriptor, 65536)
            except OSError:
                data = b""
            if not data:
                _exit(1)
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line.decode("utf-8"))

    def close(self):
        """Lets go of the socket."""
        try:
            os.close(self.descriptor)
        except OSError:
            pass


def _move_high(descriptor):
    """Moves the socket out of the way of programs that close all low descriptors, and out of their children."""
    os.set_inheritable(descriptor, False)
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except (OSError, ValueError):
        return descriptor
    os.close(descriptor)
    return moved


# --- checkpoints ------------------------------------------------------------------------------------------------


class Checkpoints:
    """Processes that wait to be gone back to. A waiting process holds the state; the running one is its child."""

    def __init__(self):
        self.pipes = {}
        self._registry = mmap.mmap(-1, 8192)
        self._root = _getpid()

    def make(self, name):
        """Forks. Returns None in the process that runs on, and the restoring message in each later copy."""
        if name in self.pipes:
            os.close(self.pipes.pop(name))
        reader, writer = os.pipe()
        self.pipes[name] = writer
        message = None
        while True:
            child = _fork()
            if child == 0:
                os.close(reader)
                return message
            message = self._wait(child, reader)

    def restore(self, name, message):
        """Wakes the checkpoint and ends this process. Raises CommandError."""
        if name not in self.pipes:
            known = ", ".join(sorted(self.pipes)) or "none"
            raise CommandError("no checkpoint {!r}; there are: {}".format(name, known))
        data = json.dumps(message).encode("ascii")
        _flush_output()
        with _open(self.pipes[name], "wb", closefd=False) as stream:
            stream.write(b"%016d" % len(data) + data)
        _exit(RESTORED)

    def _wait(self, child, reader):
        """Waits in the checkpoint. Returns what a restoring process sent; exits as the program does when it ends."""
        self._register(_getpid())
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD)}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        previous = signal.set_wakeup_fd(waker)
        running = True
        while True:
            if running:
                running = self._still_running(child)
            ready, _, _ = select.select([reader, woken], [], [])
            if reader in ready:
                break
            _read(woken, 4096)
        message = _read_message(reader)
        if running:
            os.waitpid(child, 0)
        signal.set_wakeup_fd(previous)
        for number, handler in handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        os.close(woken)
        os.close(waker)
        return message

    def _still_running(self, child):
        """Whether the running process is still there. When it ended for good, so does this one."""
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == 0:
            return True
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        if code == RESTORED:
            return False
        if _getpid() == self._root:
            self._end_others()
        _exit(code)

    def _register(self, pid):
        """Notes a waiting process where all of the family can read it."""
        known = self._registered()
        if pid not in known and len(known) < 1000:
            self._registry[len(known) * 8 : len(known) * 8 + 8] = b"%08d" % pid

    def _registered(self):
        pieces = bytes(self._registry).rstrip(b"\0")
        return [int(pieces[start : start + 8]) for start in range(0, len(pieces), 8)]

    def _end_others(self):
        for pid in self._registered():
            if pid != self._root:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass


def _read_message(reader):
    def exactly(count):
        data = b""
        while len(data) < count:
            data += _read(reader, count - len(data))
        return data

    return json.loads(exactly(int(exactly(16))).decode("ascii"))


def _flush_output():
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:  # the program may have put anything in its place, or closed it
            pass


# --- the debugger -----------------------------------------------------------------------------------------------


class Debugger:
    """Traces the program, stops it, and answers requests while it is stopped."""

    def __init__(self, channel, root):
        self.channel = channel
        self.files = Files(root)
        self.breakpoints = Breakpoints(self.files)
        self.checkpoints = Checkpoints()
        self.state = "ready"
        self.stop = None
        self.plan = None
        self.evaluating = False
        self.dead = False
        self._request = None
        self._queue = []
        self._results = []
        self._turn = threading.RLock()
        self._raising = None
        self._main = _get_ident()
        self._at_prompt = False
        self._forking = False
        self._last_exception = None
        self._values = {}

    # - tracing

    def on_call(self, frame, event, arg):
        """The global trace function: decides whether a frame that begins is followed line by line."""
        if self.dead or self.state != "running":
            return None
        code = frame.f_code
        plan = self.plan
        if self.breakpoints.wants(code):
            return self.on_event
        if (
            plan is not None
            and plan.kind == "step"
            and plan.thread == _get_ident()
            and self.files.name(code.co_filename)
        ):
            return self.on_event
        return None

    def on_event(self, frame, event, arg):
        """The local trace function of frames that are followed."""
        if self.dead or self.state == "exited":
            return None
        if event == "line":
            self._raising = None
            self._on_line(frame)
        elif event == "return":
            self._on_return(frame, arg)
        elif event == "exception":
            self._on_exception(frame, arg)
        return self.on_event

    def _planned(self, frame):
        """The plan, if it is for this thread."""
        return self.plan if self.plan is not None and self.plan.thread == _get_ident() else None

    def _on_line(self, frame):
        hit, problem = self.breakpoints.hit(frame)
        if hit is not None:
            self._stop_at(frame, "breakpoint", breakpoint=hit.number, note=problem)
            return
        plan = self._planned(frame)
        if plan is None or not self.files.name(frame.f_code.co_filename):
            return
        if plan.kind == "step" or (plan.frame is frame and plan.kind == "next"):
            self._stop_at(frame, "step")
        elif plan.kind == "until" and plan.frame is frame and frame.f_lineno >= plan.line:
            self._stop_at(frame, "step")

    def _on_return(self, frame, value):
        plan = self._planned(frame)
        if plan is None or not (plan.frame is frame or plan.kind == "step"):
            return
        if _is_yield(frame):
            if plan.kind == "step":
                self._leave(frame)
            return
        if self._raising is frame:
            self._leave(frame)
        elif self.files.name(frame.f_code.co_filename):
            self._stop_at(frame, "return", value=short_repr(value))

    def _on_exception(self, frame, arg):
        kind, value, trace = arg
        plan = self._planned(frame)
        if plan is None or not (plan.frame is frame or plan.kind == "step"):
            return
        if kind in (StopIteration, GeneratorExit, StopAsyncIteration) and trace is None:
            return
        self._raising = frame
        if plan.kind in ("step", "next") and self.files.name(frame.f_code.co_filename) and not _is_yielding_stop(arg):
            self._last_exception = value
            self._stop_at(frame, "exception", exception=describe_exception(kind, value))

    def _leave(self, frame):
        """The plan's frame has ended: goes on in the nearest workspace frame that called it."""
        self._resume(Plan("next", self._caller(frame)))

    def _caller(self, frame):
        """The nearest workspace frame that called `frame`, or None."""
        frame = frame.f_back
        while frame is not None and not self.files.name(frame.f_code.co_filename):
            frame = frame.f_back
        return frame

    # - going on

    def _resume(self, plan):
        """Sets up tracing for the way to the next stop. A `next` without a frame stops at any workspace line."""
        if plan is not None and plan.frame is None:
            plan.kind = "step"
        self.plan = plan
        self.state = "running"
        needed = plan is not None or bool(self.breakpoints)
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename != __file__:
                followed = self.breakpoints.wants(frame.f_code) or (plan is not None and frame is plan.frame)
                frame.f_trace = self.on_event if needed and followed else None
            frame = frame.f_back
        threading.settrace(self.on_call if needed else None)
        sys.settrace(self.on_call if needed else None)

    # - stopping

    def _stack(self, frame):
        """Workspace frames up to `frame`, outermost first; `frame` alone where there are none."""
        found = []
        inner = frame
        while frame is not None:
            if self.files.name(frame.f_code.co_filename):
                found.append((frame, _line_of(frame)))
            frame = frame.f_back
        return found[::-1] or [(inner, _line_of(inner))]

    def _stop_at(self, frame, reason, **facts):
        self.interact(Stop(self.files, reason, self._stack(frame), **facts))

    def post_mortem(self, kind, value, trace, test=None):
        """Stops at the innermost workspace frame of a traceback. Is called by the test runners' hooks."""
        if self.dead or self.state != "running" or issubclass(kind, (SystemExit, GeneratorExit)):
            return
        frames = []
        while trace is not None:
            if self.files.name(trace.tb_frame.f_code.co_filename):
                frames.append((trace.tb_frame, trace.tb_lineno))
            innermost = (trace.tb_frame, trace.tb_lineno)
            trace = trace.tb_next
        if not frames and test is None:
            return
        self._last_exception = value
        message = describe_exception(kind, value)
        stop = Stop(self.files, "post-mortem", frames or [innermost], exception=message, test=test)
        self.interact(stop)

    def on_interrupt(self, number, frame):
        """The handler of SIGINT."""
        if self.dead:
            raise KeyboardInterrupt
        if self._at_prompt:
            return
        if self.evaluating:
            if self.evaluating == _get_ident():
                raise KeyboardInterrupt
        elif self.state == "running":
            self._stop_at(frame, "interrupt")

    def on_breakpoint_call(self, *args, **kwargs):
        """What `breakpoint()` and `pdb.set_trace()` do."""
        if not self.dead and self.state == "running":
            self._stop_at(sys._getframe().f_back, "breakpoint() call")

    def interact(self, stop):
        """Answers requests until one of them lets the program go on."""
        with self._turn:
            tracing = sys.gettrace()
            sys.settrace(None)
            self.state, self.stop, self.plan = "stopped", stop, None
            linecache.checkcache()
            if self._results:
                self._results[-1]["stop"] = stop.as_data()
            try:
                self._serve()
            except BaseException:
                sys.settrace(tracing)
                raise
            self.stop = None

    def _serve(self):
        """Runs queued commands, answers, and waits for more, until a command lets the program go on."""
        while True:
            while self._queue:
                line = self._queue.pop(0)
                result = {"command": line, "output": ""}
                self._results.append(result)
                if self._run_command(line, result):
                    return
            self.answer()
            self._take_request()

    def _take_request(self):
        self._at_prompt = True
        self._request = self.channel.receive()
        self._at_prompt = False
        self._results = []
        if "breakpoints" in self._request:
            self.breakpoints.replace_all(self._request["breakpoints"])
        try:
            self._queue = _lines_of(self._request)
        except CommandError as error:
            self._queue = []
            self._results.append({"command": str(self._request.get("op")), "output": str(error), "failed": True})

    def answer(self, exit_code=None):
        """Answers the request in hand, if there is one."""
        if self._request is None:
            return
        _flush_output()
        stop = self.stop
        reply = {"id": self._request.get("id"), "state": self.state, "results": self._results, "exit_code": exit_code}
        reply["stop"] = stop.as_data() if stop is not None else None
        reply["frames"] = stop.frames_as_data() if stop is not None else []
        reply["index"] = stop.index if stop is not None else None
        reply["breakpoints"] = [each.as_data() for _, each in sorted(self.breakpoints.by_number.items())]
        reply["checkpoints"] = sorted(self.checkpoints.pipes)
        reply.update(self._values)
        self._values = {}
        self._request = None
        self.channel.send(reply)

    def _run_command(self, line, result):
        """Runs one command; true when the program goes on. What it says goes into `result`."""
        try:
            output = self._dispatch(line)
        except CommandError as error:
            output = str(error)
            result["failed"] = True
        except KeyboardInterrupt:
            output = "interrupted"
            result["failed"] = True
        if output is True:
            return True
        result["output"] = shorten(output or "")
        return False

    def _dispatch(self, line):
        name, rest = split_command(line)
        if not name:
            return self._execute(rest)
        return getattr(self, "do_" + name)(rest)

    # - commands that let the program go on

    def _moving(self):
        if self.state == "ready":
            return None
        if self.stop.finished:
            raise CommandError("this is a post-mortem: the code here has ended; only c goes on, to the next failure")
        return self.stop.frames[-1][0]

    def do_continue(self, rest):
        """Goes on to the next stop."""
        self._resume(None)
        return True

    def do_step(self, rest):
        """Goes on to the next workspace line, into calls."""
        self._moving()
        self._resume(Plan("step"))
        return True

    def do_next(self, rest):
        """Goes on to the next line of this frame, over calls."""
        frame = self._moving()
        if frame is not None and self.stop.reason == "return":
            frame = self._caller(frame)
        self._resume(Plan("next", frame))
        return True

    def do_return(self, rest):
        """Goes on until this frame returns."""
        frame = self._moving()
        if frame is not None and self.stop.reason == "return":
            frame = self._caller(frame)
        self._resume(Plan("return", frame))
        return True

    def do_until(self, rest):
        """Goes on to a line at or after the given one, or the next, in this frame."""
        frame = self._moving()
        if frame is None:
            raise CommandError(_NOT_STARTED)
        line = _number(rest, "until LINE") if rest else self.stop.line + 1
        self._resume(Plan("until", frame, line))
        return True

    def do_jump(self, rest):
        """Makes another line of this frame the next one."""
        frame = self._moving()
        if frame is None:
            raise CommandError(_NOT_STARTED)
        line = _number(rest, "jump LINE")
        try:
            frame.f_lineno = line
        except ValueError as error:
            raise CommandError("cannot jump: {}".format(error)) from None
        facts = dict(self.stop.facts)
        facts.pop("value", None)
        self.stop = Stop(self.files, "jump", self._stack(frame))
        self._results[-1]["stop"] = self.stop.as_data()
        return ""

    def do_quit(self, rest):
        """Ends the program here and now."""
        self.state, self.stop = "exited", None
        self._results[-1]["output"] = "quit"
        self._queue = []
        self.answer(0)
        _exit(0)

    # - commands about frames

    def _stopped(self):
        if self.stop is None:
            raise CommandError(_NOT_STARTED)
        return self.stop

    def do_where(self, rest):
        """The workspace frames, outermost first; `>` marks the chosen one."""
        stop = self._stopped()
        lines = ["[... {} outer frames ...]".format(stop.hidden)] if stop.hidden else []
        for index, frame in enumerate(stop.frames_as_data()):
            mark = ">" if index == stop.index else " "
            lines.append("{} {path}:{line} in {function}: {code}".format(mark, **frame))
        return "\n".join(lines)

    def do_up(self, rest):
        """Chooses the frame that called this one."""
        return self._choose(self._stopped().index - (_number(rest, "up COUNT") if rest else 1), "oldest frame")

    def do_down(self, rest):
        """Chooses the frame that this one called."""
        return self._choose(self._stopped().index + (_number(rest, "down COUNT") if rest else 1), "newest frame")

    def _choose(self, index, edge):
        stop = self._stopped()
        last = len(stop.frames) - 1
        if not 0 <= index <= last and stop.index == min(max(index, 0), last):
            raise CommandError(edge)
        stop.index = min(max(index, 0), last)
        self._results[-1]["stop"] = stop.as_data()
        return ""

    def do_locals(self, rest):
        """The variables of this frame."""
        stop = self._stopped()
        shown = self._evaluate(stop.variables)
        stop.frames_as_data()[stop.index]["local_values"] = shown
        lines = ["{} = {}".format(name, value) for name, value in shown.items()]
        return "\n".join(lines) or "no variables"

    def do_args(self, rest):
        """The arguments of this function."""
        stop = self._stopped()
        code = stop.frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
        values = stop.locals()
        names = [name for name in code.co_varnames[:count] if name in values]
        shown = self._evaluate(lambda: [(name, short_repr(values[name])) for name in names])
        return "\n".join("{} = {}".format(name, value) for name, value in shown) or "no arguments"

    def do_list(self, rest):
        """Lines around the current one, or `list FIRST, LAST`."""
        stop = self._stopped()
        lines = self.files.source(stop.frame.f_code.co_filename)
        if rest and rest != ".":
            numbers = [_number(part, "list FIRST, LAST") for part in rest.split(",")]
            first = max(1, numbers[0])
            last = numbers[-1] if len(numbers) > 1 else first + 10
        else:
            first, last = max(1, stop.line - 5), stop.line + 5
        return self._numbered(lines, first, min(last, len(lines)))

    def do_longlist(self, rest):
        """The whole function."""
        stop = self._stopped()
        lines = self.files.source(stop.frame.f_code.co_filename)
        code = stop.frame.f_code
        inside = [line for each in _code_objects(code) for line in _code_lines(each)]
        first = code.co_firstlineno if code.co_name != "<module>" else 1
        return self._numbered(lines, first, min(len(lines), max(inside + [stop.line])))

    def _numbered(self, lines, first, last):
        current = self.stop.line
        numbers = range(first, last + 1)
        return "\n".join("{}{} {}".format("->" if n == current else "  ", n, lines[n - 1]) for n in numbers)

    def do_source(self, rest):
        """The source of an object."""
        import inspect

        value = self._value(rest)
        try:
            return "".join(inspect.getsourcelines(value)[0]).rstrip()
        except (OSError, TypeError) as error:
            raise CommandError(str(error)) from None

    # - commands about values

    def _evaluate(self, function):
        """Runs code of the program while it is stopped; SIGINT ends it."""
        self.evaluating = _get_ident()
        try:
            return function()
        finally:
            self.evaluating = False

    def _value(self, expression):
        """The value of an expression in the chosen frame. Raises CommandError."""
        stop = self._stopped()
        if not expression:
            raise CommandError("give an expression")
        names = dict(stop.frame.f_globals)
        names.update(stop.locals())
        names.update(__exception__=self._last_exception)
        if stop.facts.get("value") is not None and "__return__" not in names:
            names["__return__"] = stop.facts["value"]
        try:
            return self._evaluate(lambda: eval(expression, names))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the agent's expression may raise anything
            raise CommandError(describe_exception(type(error), error)) from None

    def _shown(self, function, expression):
        try:
            return self._evaluate(function)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the value's own repr may raise anything
            text = describe_exception(type(error), error)
            raise CommandError("{} cannot be printed: {}".format(expression, text)) from None

    def do_p(self, rest):
        """The value of an expression."""
        value = self._value(rest)
        return "{} = {}".format(rest, self._shown(lambda: full_repr(value), rest))

    def do_pp(self, rest):
        """The value of an expression, pretty-printed."""
        value = self._value(rest)
        text = self._shown(lambda: without_addresses(value, pprint.pformat(value, width=100)), rest)
        return "{} ={}{}".format(rest, "\n" if "\n" in text else " ", text)

    def do_evaluate(self, rest):
        """The value of an expression, as `value` and `type` in the answer."""
        value = self._value(rest)
        text = shorten(self._shown(lambda: full_repr(value), rest))
        self._values = {"value": text, "type": type(value).__name__}
        return text

    def do_whatis(self, rest):
        """The type of an expression."""
        value = self._value(rest)
        kind = type(value)
        name = kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__
        return "{}: {}".format(rest, name)

    def do_retval(self, rest):
        """The value this function returns."""
        if self._stopped().reason != "return":
            raise CommandError("not at a return")
        return "returns " + self.stop.facts["value"]

    def do_exception(self, rest):
        """The last exception seen, with what caused it."""
        if self._last_exception is None:
            raise CommandError("no exception was seen yet")
        lines, error = [], self._last_exception
        while error is not None and len(lines) < 6:
            lines.append(describe_exception(type(error), error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\ncaused by ".join(lines)

    def _execute(self, source):
        """Runs a statement in the chosen frame; the value of an expression is printed."""
        stop = self._stopped()
        values = stop.locals()
        frame_globals = stop.frame.f_globals
        printed = io.StringIO()
        names = dict(frame_globals)
        names.update(values)
        before = dict(names)
        saved = sys.stdout, sys.displayhook
        try:
            code = compile(source + "\n", "<command>", "single")
            sys.stdout = printed
            sys.displayhook = lambda value: None if value is None else printed.write(repr(value) + "\n")
            self._evaluate(lambda: exec(code, names))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the agent's code may raise anything
            raise CommandError(printed.getvalue() + describe_exception(type(error), error)) from None
        finally:
            sys.stdout, sys.displayhook = saved
        for name, value in names.items():
            if name != "__builtins__" and (name not in before or before[name] is not value):
                values[name] = value
        for name in set(before) - set(names):
            values.pop(name, None)
        return printed.getvalue().rstrip("\n")

    # - commands about breakpoints

    def do_break(self, rest, temporary=False):
        """`break FILE:LINE, CONDITION`, `break FUNCTION, CONDITION`; without arguments all breakpoints."""
        if not rest:
            known = [str(each) for _, each in sorted(self.breakpoints.by_number.items())]
            return "\n".join(known) or "no breakpoints"
        where, _, condition = (part.strip() for part in rest.partition(","))
        if condition:
            _check_expression(condition)
        path, line, function = self._find_place(where)
        options = {"condition": condition, "temporary": temporary, "function": function}
        return str(self.breakpoints.add(path, line, **options))

    def do_tbreak(self, rest):
        """A breakpoint that is gone once it was hit."""
        if not rest:
            raise CommandError("give a place: tbreak FILE:LINE")
        return self.do_break(rest, temporary=True)

    def _find_place(self, where):
        """Path, line and function name of `FILE:LINE`, `FILE:FUNCTION`, `LINE` or `FUNCTION`."""
        path, colon, place = where.rpartition(":")
        if colon:
            path = self.files.resolve(path.strip())
        elif where.isdigit():
            path = self._current_path()
        else:
            return self._find_function(where)
        place = place.strip()
        if place.isdigit():
            return path, int(place), None
        return path, function_line(self.files, path, place), place

    def _current_path(self):
        if self.stop is None:
            raise CommandError("give a file: b FILE:LINE")
        return self.files.shown(self.stop.frame.f_code.co_filename)

    def _find_function(self, name):
        """Where a function is that the chosen frame, or a loaded module of the workspace, knows by `name`."""
        value = None
        if self.stop is not None:
            try:
                value = self._value(name)
            except CommandError:
                value = None
        code = getattr(getattr(value, "__func__", value), "__code__", None)
        if code is not None and self.files.name(code.co_filename):
            return self.files.name(code.co_filename), _body_line(code), name
        module, _, function = name.partition(".")
        for path in (module + ".py", os.path.join(module, "__init__.py")):
            if function and os.path.isfile(os.path.join(self.files.root, path)):
                return path, function_line(self.files, path, function), function
        raise CommandError("no function {} is known here: give its file, b FILE:{}".format(name, name))

    def _chosen(self, rest, usage):
        """The breakpoints that `rest` names by number or place. Raises CommandError."""
        if not rest:
            raise CommandError("give a number: " + usage)
        if ":" in rest:
            path, line, _ = self._find_place(rest)
            line = stop_line(self.files, path, line)
            found = [each for each in self.breakpoints.by_number.values() if (each.path, each.line) == (path, line)]
        else:
            numbers = [_number(word, usage) for word in rest.replace(",", " ").split()]
            found = [self.breakpoints.by_number[number] for number in numbers if number in self.breakpoints.by_number]
        if not found:
            raise CommandError("no breakpoint {}".format(rest))
        return found

    def do_clear(self, rest):
        """Deletes breakpoints: by number, by place, or all."""
        chosen = self._chosen(rest, "clear NUMBER") if rest else list(self.breakpoints.by_number.values())
        for each in chosen:
            del self.breakpoints.by_number[each.number]
        self.breakpoints.changed()
        return "deleted " + (", ".join("breakpoint {}".format(each.number) for each in chosen) or "nothing")

    def _switch(self, rest, enabled, usage):
        chosen = self._chosen(rest, usage)
        for each in chosen:
            each.enabled = enabled
        self.breakpoints.changed()
        return "\n".join(str(each) for each in chosen)

    def do_enable(self, rest):
        """Switches breakpoints on."""
        return self._switch(rest, True, "enable NUMBER")

    def do_disable(self, rest):
        """Switches breakpoints off."""
        return self._switch(rest, False, "disable NUMBER")

    def do_condition(self, rest):
        """`condition NUMBER EXPRESSION`; without an expression the condition is taken away."""
        number, _, condition = rest.partition(" ")
        if condition.strip():
            _check_expression(condition)
        (chosen,) = self._chosen(number, "condition NUMBER EXPRESSION")[:1]
        chosen.condition = condition.strip() or None
        return str(chosen)

    def do_ignore(self, rest):
        """`ignore NUMBER COUNT`: passes over the next COUNT hits."""
        number, _, count = rest.partition(" ")
        (chosen,) = self._chosen(number, "ignore NUMBER COUNT")[:1]
        chosen.ignore = max(0, _number(count.strip(), "ignore NUMBER COUNT"))
        return str(chosen)

    # - time travel

    def do_checkpoint(self, rest):
        """Keeps the state of the process under a name."""
        self._stopped()
        if not re.match(r"[\w.-]+$", rest):
            raise CommandError("give a name: checkpoint NAME")
        others = [each.name for each in threading.enumerate() if each.ident != _get_ident()]
        if others:
            raise CommandError("no checkpoint while other threads run: " + ", ".join(sorted(others)))
        _flush_output()
        self._forking = True
        message = self.checkpoints.make(rest)
        self._forking = False
        if message is None:
            return "checkpoint " + rest
        self._request, self._queue = message["request"], message["queue"]
        self._results = message["results"]
        self.breakpoints.replace_all(message["breakpoints"])
        self._results[-1].update(output="restored " + rest, stop=self.stop.as_data())
        return self._keep_result()

    def _keep_result(self):
        """What `_run_command` is to write: the result in hand, since the one it began with belongs to the past."""
        return self._results[-1]["output"]

    def do_restore(self, rest):
        """Goes back to a checkpoint. Breakpoints stay as they are now."""
        message = {"request": self._request, "queue": self._queue, "results": self._results}
        message["breakpoints"] = [each.as_data() for each in self.breakpoints.by_number.values()]
        self.checkpoints.restore(rest, message)

    def do_restart(self, rest):
        """Leaves it to the host to start the program anew, with the commands that follow."""
        self._results[-1]["output"] = "restarted"
        self._values = {"state": "restart", "rest": self._queue}
        self._queue = []
        return "restarted"

    def do_help(self, rest):
        """Names the commands."""
        return _HELP

    def do_unknown(self, rest):
        """Says that a command of pdb is not there."""
        raise CommandError("no command {}. {}".format(rest, _HELP))


_NOT_STARTED = "the program is not started: set breakpoints, then c"
_HELP = (
    "commands: b FILE:LINE[, CONDITION], tbreak, cl, enable, disable, condition, ignore, c, n, s, r, until, jump, "
    "w, u, d, locals, a, l, ll, p, pp, whatis, source, retval, exception, checkpoint, restore, restart, q"
)
_NAMES = {
    "b": "break", "break": "break", "tbreak": "tbreak", "cl": "clear", "clear": "clear", "enable": "enable",
    "disable": "disable", "condition": "condition", "ignore": "ignore", "c": "continue", "cont": "continue",
    "continue": "continue", "run": "restart", "restart": "restart", "n": "next", "next": "next", "s": "step", "step": "step",
    "r": "return", "return": "return", "unt": "until", "until": "until", "j": "jump", "jump": "jump",
    "w": "where", "where": "where", "bt": "where", "u": "up", "up": "up", "d": "down", "down": "down",
    "locals": "locals", "a": "args", "args": "args", "l": "list", "list": "list", "ll": "longlist",
    "longlist": "longlist", "p": "p", "pp": "pp", "evaluate": "evaluate", "whatis": "whatis", "source": "source",
    "rv": "retval", "retval": "retval", "exception": "exception", "checkpoint": "checkpoint", "restore": "restore",
    "q": "quit", "quit": "quit", "exit": "quit", "h": "help", "help": "help", "?": "help",
}  # fmt: skip
_ABSENT = {"commands", "alias", "unalias", "interact", "debug", "display", "undisplay", "exceptions"}
_PYTHON_FOLLOWS = re.compile(r"(=|\.|\(|\[|\+=|-=|\*=|/=)(?!=)|==")


def split_command(line):
    """The method and the argument of a command line; an empty method for a Python statement."""
    text = line.strip()
    if text.startswith("!"):
        return "", text[1:].strip()
    match = re.match(r"(\?|\w+)\s*", text)
    if not match:
        return "", text
    word, rest = match.group(1), text[match.end() :].strip()
    if word in _ABSENT and not _PYTHON_FOLLOWS.match(rest):
        return "unknown", word
    if word not in _NAMES or _PYTHON_FOLLOWS.match(rest):
        # `p (x)` prints; `c = 3` and `args[0]` are Python.
        if word not in ("p", "pp", "whatis", "source") or rest.startswith("="):
            return "", line.strip("\n") if "\n" in line else text
    return _NAMES[word], rest


def split_lines(text):
    """The single commands of a text: lines, and parts between `;;` outside quotes. Indented lines stay with the one
    before, so that a block can be given."""
    commands = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        if line[:1] in " \t" and commands:
            commands[-1] += "\n" + line
        else:
            commands += [part for part in (part.strip() for part in _split_semicolons(line)) if part]
    return commands


def _split_semicolons(line):
    parts, start, quote, index = [], 0, "", 0
    while index < len(line):
        character = line[index]
        if character == "\\" and quote:
            index += 1
        elif character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        elif not quote and line.startswith(";;", index):
            parts.append(line[start:index])
            index += 1
            start = index + 1
        index += 1
    return parts + [line[start:]]


def _lines_of(request):
    """The command lines that a request stands for. Raises CommandError."""
    op = request.get("op")
    if op == "commands":
        return [line for text in request.get("lines", ()) for line in split_lines(text)]
    if op == "set_breakpoints":
        return []
    if op == "break":
        return _break_lines(request)
    if op in _NAMES:
        return ["{} {}".format(op, request.get("argument", "")).strip()]
    raise CommandError("no request {!r}".format(op))


def _break_lines(request):
    place = request.get("line") or request.get("function")
    where = "{}:{}".format(request["path"], place) if request.get("path") else str(place)
    if request.get("condition"):
        where += ", " + request["condition"]
    lines = [("tbreak " if request.get("temporary") else "break ") + where]
    return lines + (["ignore last {}".format(request["ignore"])] if request.get("ignore") else [])


def _number(text, usage):
    try:
        return int(text)
    except ValueError:
        raise CommandError("{!r} is no number. Usage: {}".format(text, usage)) from None


def _check_expression(text):
    try:
        compile(text.strip(), "<condition>", "eval")
    except (SyntaxError, ValueError) as error:
        raise CommandError("condition {!r}: {}".format(text.strip(), error)) from None


_YIELDS = ("YIELD_VALUE", "YIELD_FROM", "SEND", "INSTRUMENTED_YIELD_VALUE")


def _is_yield(frame):
    """Whether a return event of a generator or coroutine is only a pause."""
    code = frame.f_code
    if not code.co_flags & (0x20 | 0x80 | 0x200) or frame.f_lasti < 0:
        return False
    return dis.opname[code.co_code[frame.f_lasti]] in _YIELDS


def _is_yielding_stop(arg):
    """Whether an exception event is how iteration ends, which is no news."""
    return arg[0] in (StopIteration, StopAsyncIteration, GeneratorExit)


# --- test runners -----------------------------------------------------------------------------------------------

debugger = None
"""The one debugger of this process; None before `main`, and in modules that import this one."""


def pytest_addoption(parser):
    """pytest has taken this module in as a plugin: its children are not to look for it."""
    os.environ.pop("PYTEST_PLUGINS", None)
    if _PLUGINS_BEFORE:
        os.environ["PYTEST_PLUGINS"] = _PLUGINS_BEFORE


def pytest_configure(config):
    """Keeps time limits from ending a test that is stopped, and `breakpoint()` with us."""
    take_breakpoint_calls()
    if config.pluginmanager.hasplugin("timeout"):
        config.hook.pytest_enter_pdb(config=config, pdb=None)


def pytest_exception_interact(node, call, report):
    """A test or the collection of a file failed."""
    if debugger is not None:
        info = call.excinfo
        debugger.post_mortem(info.type, info.value, info.tb, getattr(node, "nodeid", None))


_PLUGINS_BEFORE = os.environ.get("PYTEST_PLUGINS", "")


def take_breakpoint_calls():
    """Makes `breakpoint()` and `pdb.set_trace()` stop here."""
    if debugger is None:
        return
    sys.breakpointhook = debugger.on_breakpoint_call
    pdb = sys.modules.get("pdb")
    if pdb is not None:
        pdb.set_trace = debugger.on_breakpoint_call


class ImportWatch:
    """Hooks into pytest and unittest when, and only if, the program imports them."""

    def find_spec(self, name, path=None, target=None):
        """Finds nothing itself; wraps the loader of `unittest.result` and `pdb`."""
        if name == "_pytest.config":
            os.environ["PYTEST_PLUGINS"] = ",".join(part for part in ("gumshoe_debugger", _PLUGINS_BEFORE) if part)
        if name not in ("unittest.result", "pdb"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                if name == "pdb":
                    take_breakpoint_calls()
                else:
                    _watch_results(module.TestResult)

            spec.loader.exec_module = exec_module
        return spec


def _watch_results(result):
    """Stops at failures that unittest reports."""
    for name in ("addError", "addFailure", "addSubTest"):
        setattr(result, name, _watched(getattr(result, name)))


def _watched(method):
    def add(self, test, *arguments):
        error = arguments[-1]
        if debugger is not None and error is not None:
            debugger.post_mortem(error[0], error[1], error[2], _test_name(test))
        return method(self, test, *arguments)

    return add


def _test_name(test):
    try:
        return str(test.id())
    except Exception:  # a test's own code may raise anything
        return type(test).__name__


# --- running the program ----------------------------------------------------------------------------------------


def run_program(arguments):
    """Runs `-m MODULE ...`, `-c CODE ...`, or a script with its arguments as `python` would. Returns the exit code."""
    main_module = types.ModuleType("__main__")
    main_module.__builtins__ = builtins
    sys.modules["__main__"] = main_module
    try:
        if arguments[0] == "-m":
            _run_module(arguments[1:])
        elif arguments[0] == "-c":
            sys.argv = ["-c"] + arguments[2:]
            sys.path[0] = ""
            exec(compile(arguments[1], "<string>", "exec"), main_module.__dict__)
        else:
            _run_script(arguments, main_module)
    except SystemExit as error:
        return _exit_code(error.code)
    except KeyboardInterrupt:
        return 130
    except BaseException:
        kind, value, trace = sys.exc_info()
        debugger.post_mortem(kind, value, trace)
        _print_exception(kind, value, trace)
        return 1
    return 0


def _run_module(arguments):
    name, rest = arguments[0], arguments[1:]
    if name in ("pytest", "py.test"):
        rest = rest + _pytest_options(rest)
    sys.argv = [name] + rest
    sys.path[0] = os.getcwd()
    runpy._run_module_as_main(name)


def _pytest_options(given):
    """Options that keep plugins from running tests elsewhere or tracing them."""
    options = []
    if importlib.util.find_spec("xdist") is not None and any(each.startswith(("-n", "--numproc")) for each in given):
        options.append("-n0")
    if importlib.util.find_spec("pytest_cov") is not None:
        options.append("--no-cov")
    return options


def _run_script(arguments, main_module):
    path = arguments[0] if os.path.exists(arguments[0]) else shutil.which(arguments[0]) or arguments[0]
    sys.argv = [path] + arguments[1:]
    if os.path.isdir(path):
        sys.path[0] = path
        runpy.run_path(path, run_name="__main__")
        return
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    try:
        with _open(path, "rb") as stream:
            code = compile(stream.read(), path, "exec", 0, True)
    except OSError as error:
        print("cannot run {}: {}".format(path, error.strerror), file=sys.stderr)
        raise SystemExit(2) from None
    main_module.__file__ = path
    exec(code, main_module.__dict__)


def _exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _print_exception(kind, value, trace):
    """Prints an exception as Python does, without the frames of this file."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        traceback.print_exception(kind, value, trace)
    except (OSError, ValueError):
        pass


def _wait_for_threads():
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _drop_in_child():
    """Lets a forked child of the program run free."""
    if debugger is None or debugger._forking:
        return
    debugger.dead = True
    sys.settrace(None)
    threading.settrace(None)
    debugger.channel.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _watch_forks():
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_drop_in_child)
        return
    for name in ("fork", "forkpty"):
        setattr(os, name, _dropping(getattr(os, name)))


def _dropping(fork):
    def dropping():
        result = fork()
        if (result if isinstance(result, int) else result[0]) == 0:
            _drop_in_child()
        return result

    return dropping


def main(arguments):
    """Waits to be told to start, runs the program, says how it ended. Returns its exit code."""
    global debugger
    if "--" not in arguments or not arguments[arguments.index("--") + 1 :]:
        print(
            "usage: GUMSHOE_CONTROL=FD python gumshoe_debugger.py -- -m MODULE | SCRIPT [ARGUMENT ...]", file=sys.stderr
        )
        return 2
    program = arguments[arguments.index("--") + 1 :]
    descriptor = os.environ.pop("GUMSHOE_CONTROL", None)
    if descriptor is None:
        print("gumshoe_debugger: GUMSHOE_CONTROL is not set", file=sys.stderr)
        return 2
    debugger = Debugger(Channel(int(descriptor)), os.getcwd())
    sys.modules["gumshoe_debugger"] = sys.modules[__name__]
    sys.meta_path.insert(0, ImportWatch())
    _watch_forks()
    signal.signal(signal.SIGINT, debugger.on_interrupt)
    take_breakpoint_calls()
    with _open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    debugger._take_request()
    debugger._serve()
    code = run_program(program)
    debugger._resume(None)
    _wait_for_threads()
    debugger.state, debugger.stop = "exited", None
    debugger._results += [{"command": line, "output": "not run: the program has ended"} for line in debugger._queue]
    debugger.answer(code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
