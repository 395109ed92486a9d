"""Follows which lines of the project a test runs, and who called whom.

From Python 3.12 on, each line costs once per test, and each call of a function in the project a little. Before, each
call costs a little, and functions of the project are followed line by line until several calls in a row, or a long
loop, have shown no new line: what they run after that is unknown.
"""

import dis
import sys

from ..debugger.stops import caller_of
from .watching import CALLER_DEPTH, MonitoringTool, YieldingTrace, newest

_current_frame = vars(sys)["_getframe"]
STALE_LINES = 3000
"""Lines of a function in a row, in one test, that have run before: then the running call is followed no longer."""
HELD_CODES = 50_000
"""How many code objects of other packages are known by their ids."""
OUTSIDE, TESTS, FOLLOWED = 0, 1, 2
"""Kinds of files: of the project or not, and with lines that count. In tests, only exceptions are noticed."""
_RAISE = dis.opmap["RAISE_VARARGS"]


class _Function:
    """What one test ran of one code object.

    Attributes:
        code: the code object.
        lines: each with its place in the order of all that the test ran.
        stale: how many calls have begun since a line was new; too many, and no call is followed any more.
        repeats: how many lines have run since a line was new; after `STALE_LINES`, the running call is not followed on.
        tracer: the trace function of its frames, with `sys.settrace`.
        is_cut: whether a call was not followed to its end, so that any of its lines may have run.
    """

    __slots__ = ("code", "is_cut", "lines", "repeats", "stale", "tracer")

    def __init__(self, code, tracer=None):
        self.code = code
        self.lines = {}
        self.stale = 0
        self.repeats = 0
        self.tracer = tracer
        self.is_cut = False


class _Raised:
    """When an exception was raised, and the latest entry of its traceback: that entry's id and code."""

    __slots__ = ("code", "entry", "when")

    def __init__(self, when):
        self.when = when
        self.entry = self.code = None

    def seen(self, trace):
        """The exception propagates: `trace` is its traceback."""
        self.entry, self.code = id(trace), trace.tb_frame.f_code

    def goes_on_as(self, entry):
        """Whether an entry of a traceback is the latest one of this exception."""
        return entry is not None and id(entry) == self.entry and entry.tb_frame.f_code is self.code


class Follower:
    """Follows what a test runs.

    Subclasses `start` and `stop` it, and watch by `sys.monitoring` or by `sys.settrace`. Only the latter pays for every
    call of any function, and can be lost: so only there `most_calls` matters, and only there a follower gives up. What
    was seen is kept until `clear`.

    Attributes:
        on: whether what runs now counts.
        gave_up: whether the test was not followed to its end: it made too many calls, or tracing was lost.

    Args:
        path_of: takes a file name, returns the file's path in the project, or None.
        is_test: takes such a path; the lines of tests do not count.
        patience: after how many calls in a row without a new line a function is followed no longer.
    """

    def __init__(self, path_of, is_test, patience):
        self.on = self.gave_up = False
        self._path_of = path_of
        self._is_test = is_test
        self._patience = patience
        self._kinds = {}  # {file name: OUTSIDE, TESTS or FOLLOWED}
        self._paths = {}  # {file name: its path in the project}
        # Of the running test. Code objects are kept with their ids, so that no other can get the same one.
        self._functions = {}  # {id of a code object: its _Function}
        self._calls = {}  # {(id, id): (code object that calls, the one that is called)}
        self._raised = {}  # {id of an exception: its _Raised}
        self._count = 0  # the lines that it ran, each once

    def kind(self, filename):
        """The kind of a file."""
        found = self._kinds.get(filename)
        if found is None:
            path = self._paths[filename] = self._path_of(filename)
            found = OUTSIDE if path is None else TESTS if self._is_test(path) else FOLLOWED
            self._kinds[filename] = found
        return found

    def clear(self):
        """Forgets the test."""
        self._functions = {}
        self._calls = {}
        self._raised = {}
        self._count = 0
        self.gave_up = False

    def lines_until(self, error):
        """Path and line of all lines that were seen before `error` was raised; None stands for all lines."""
        raised = self._raised.get(id(error))
        is_its = raised is not None and raised.goes_on_as(self._entry_from(getattr(error, "__traceback__", None)))
        limit = raised.when if is_its else self._count
        return {
            (self._paths[function.code.co_filename], line)  # once: a comprehension shares its line with its function
            for function in list(self._functions.values())
            for line, order in list(function.lines.items())
            if order <= limit
        }

    def possible_lines(self):
        """Path and line of all lines that were seen, and all of functions that were not followed to their end."""
        cut = [function.code for function in list(self._functions.values()) if function.is_cut]
        unknown = {(self._paths[code.co_filename], line) for code in cut for line in _lines_of(code)}
        return self.lines_until(None) | unknown

    def distances(self, frames):
        """The number of calls between each function and the innermost of `frames`, by path and first line.

        Args:
            frames: code of the frames in a traceback, outermost first.
        """
        frames = [code for code in frames if self.kind(code.co_filename)]
        if not frames:
            return {}
        neighbors = {}
        codes = {id(frames[-1]): frames[-1]}
        for caller, code in list(self._calls.values()):
            for one, other in ((caller, code), (code, caller)):
                codes[id(one)] = one
                neighbors.setdefault(id(one), set()).add(id(other))
        distances = {id(frames[-1]): 0}
        reached = [id(frames[-1])]
        for known in reached:  # which grows meanwhile
            fresh = neighbors.get(known, set()).difference(distances)
            distances.update((each, distances[known] + 1) for each in fresh)
            reached += fresh
        return {
            (self._paths[codes[key].co_filename], codes[key].co_firstlineno): distance
            for key, distance in distances.items()
            if self.kind(codes[key].co_filename)
        }

    def _called(self, frame):
        """Notes who in the project called the function of a frame that begins."""
        caller = caller_of(frame, self.kind, CALLER_DEPTH)
        if caller is not None:
            self._calls[id(caller.f_code), id(frame.f_code)] = caller.f_code, frame.f_code

    def _ran(self, function, line):
        self._count += 1
        function.lines[line] = self._count

    def _raises(self, error, trace):
        """Notes when an exception was raised; it is seen again in each frame that it passes through.

        The exception itself is not kept: it would keep the variables of its frames alive, which tests of weak
        references notice. So another exception may get its id. Each frame it passes through adds an entry to the same
        traceback, which identifies it; each `raise` that runs counts anew, even if it re-raises an earlier exception.
        """
        if trace is None:  # the end of a generator, which the interpreter only pretends to raise
            return
        raised = self._raised.get(id(error))
        if raised is None or not raised.goes_on_as(self._entry_from(trace.tb_next)) or _is_at_raise(trace):
            raised = self._raised[id(error)] = _Raised(self._count)
        raised.seen(trace)

    def _entry_from(self, entry):
        """The first entry of a traceback, from this one on, that is in the project."""
        while entry is not None and not self.kind(entry.tb_frame.f_code.co_filename):
            entry = entry.tb_next
        return entry


def _is_at_raise(trace):
    """Whether the outermost entry of a traceback is at a `raise` that names an exception."""
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE


def _lines_of(code):
    """The lines of a function's own code; functions in it have their own."""
    if hasattr(code, "co_lines"):
        return {line for _, _, line in code.co_lines() if line}
    lines, line = {code.co_firstlineno}, code.co_firstlineno
    for step in code.co_lnotab[1::2]:
        line += step - 256 if step > 127 else step
        lines.add(line)
    return lines


class MonitoringFollower(Follower):
    """Follows with `sys.monitoring`. Raises ValueError where other tools hold all of its tool IDs."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        # A generator may have been started by an earlier test: then it resumes in this one.
        self._tool = MonitoringTool(
            PY_START=self._on_start, PY_RESUME=self._on_start, LINE=self._on_line, RAISE=self._on_raise
        )

    def start(self, most_calls=None):
        """Begins to follow; the number of calls does not matter here."""
        self.on = True
        self._tool.watch("PY_START", "PY_RESUME", "RAISE")

    def stop(self):
        """Stops following."""
        self.on = False
        self._tool.watch()

    def clear(self):
        """Forgets the test."""
        for function in self._functions.values():
            self._tool.watch_code(function.code)
        super().clear()

    def _on_start(self, code, offset):
        if self.kind(code.co_filename) != FOLLOWED:
            return self._tool.disable
        if self.on and id(code) not in self._functions:
            self._functions[id(code)] = _Function(code)
            self._called(_current_frame(1))
            self._tool.watch_code(code, "LINE")
        return None

    def _on_line(self, code, line):
        function = self._functions.get(id(code))
        if self.on and function is not None and line not in function.lines:
            self._ran(function, line)
        return self._tool.disable if self.on else None

    def _on_raise(self, code, offset, error):
        if self.on and self.kind(code.co_filename):
            self._raises(error, error.__traceback__)


class TracingFollower(Follower):
    """Follows with `sys.settrace`; a tracer that was set before is restored after each test."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._trace = YieldingTrace()
        self._finished = set()  # ids of functions that show nothing new; this test keeps their code alive
        self._elsewhere = {}  # code of other packages by its id, kept so that the id stays its own
        self._on_call = self._call_tracer(self._finished, self._elsewhere)

    def start(self, most_calls=None):
        """Begins to follow, until so many functions have been called, of the project or not; None for no limit."""
        self.on = True
        self._trace.start(self._on_call if most_calls is None else self._limited(most_calls))

    def stop(self):
        """Gives tracing back to whoever had it."""
        self.on = False
        self.gave_up = self._trace.stop() or self.gave_up

    def clear(self):
        """Forgets the test."""
        super().clear()
        self._finished.clear()

    def _call_tracer(self, finished, elsewhere):
        """The function that runs at each function call, millions of times per test run."""

        def on_call(frame, event, argument):
            key = id(frame.f_code)
            if key in elsewhere or key in finished or not self.on:
                return None
            return self._follow(frame, key)

        return on_call

    def _limited(self, calls):
        """The same, for a number of calls; another thread's trace function ends with its next call."""
        on_call, left = self._on_call, calls

        def on_limited_call(frame, event, argument):
            nonlocal left
            left -= 1
            if left >= 0:
                return on_call(frame, event, argument)
            self.gave_up = True
            self._trace.stop()
            return None

        return on_limited_call

    def _follow(self, frame, key):
        """The local tracer of a frame, None for one that is not followed."""
        code = frame.f_code
        kind = self.kind(code.co_filename)
        if kind == OUTSIDE:
            if len(self._elsewhere) < HELD_CODES:
                self._elsewhere[key] = code
            return None
        if kind == TESTS:
            _skip_lines(frame)
            return self._on_exception
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = _Function(code)
            function.tracer = self._tracer(function)
            self._called(frame)
        function.stale += 1
        if function.stale > self._patience:
            function.is_cut = True
            self._finished.add(key)
            return None
        return function.tracer

    def _tracer(self, function):
        lines = function.lines

        def trace(frame, event, argument):
            if event == "line":
                if frame.f_lineno in lines:
                    function.repeats += 1
                    if function.repeats > STALE_LINES:
                        function.repeats = 0
                        function.is_cut = True
                        _skip_lines(frame)
                elif self.on:
                    function.stale = function.repeats = 0
                    self._ran(function, frame.f_lineno)
            elif event == "exception" and self.on:
                self._raises(argument[1], argument[2])
            return trace

        return trace

    def _on_exception(self, frame, event, argument):
        if event == "exception" and self.on:
            self._raises(argument[1], argument[2])
        return self._on_exception


def _skip_lines(frame):
    """Ends the line events of a frame; Python 3.6 cannot."""
    if hasattr(frame, "f_trace_lines"):
        frame.f_trace_lines = False


def make_follower(path_of, is_test, patience):
    """The best follower that this interpreter supports; see Follower."""
    return newest(MonitoringFollower, TracingFollower, path_of, is_test, patience)
