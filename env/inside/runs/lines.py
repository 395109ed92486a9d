"""Follows which lines of the project a test runs, and who called whom. Standard library only, Python 3.6 to 3.14.

Python 3.12 and later use `sys.monitoring`: each line costs once per test. Earlier versions use `sys.settrace`: each
call into another package costs one call; functions of the project are followed line by line until several calls in a
row have shown no new line, so lines that only later calls in the same test run may be missed.
"""

import dis
import sys
import threading

from ..programs.project import holds_tests, project_path

_current_frame = vars(sys)["_getframe"]
CALLER_DEPTH = 60
STALE_CALLS = 30
STALE_LINES = 3000
HELD_CODES = 50_000
OTHER, TESTS, PROJECT = 0, 1, 2


class _Function:
    """What one test ran of one code object: its lines in the order in which they first ran."""

    __slots__ = ("code", "lines", "repeats", "stale", "tracer")

    def __init__(self, code, tracer=None):
        self.code = code
        self.lines = {}
        self.stale = 0
        self.repeats = 0
        self.tracer = tracer


_RAISE = dis.opmap["RAISE_VARARGS"]


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
    """Follows what a test runs. `on` says whether what runs now counts."""

    def __init__(self, root):
        self.root = root
        self.on = False
        self._kinds = {}
        self._paths = {}
        self._functions = {}
        self._calls = {}
        self._raised = {}
        self._count = 0

    def kind(self, filename):
        """Whether a file is part of the project, and of its tests."""
        found = self._kinds.get(filename)
        if found is None:
            path = self._paths[filename] = project_path(filename, self.root)
            found = OTHER if path is None else TESTS if holds_tests(path) else PROJECT
            self._kinds[filename] = found
        return found

    def clear(self):
        """Forgets the test."""
        self._functions = {}
        self._calls = {}
        self._raised = {}
        self._count = 0

    def lines_until(self, error):
        """Path and line of all lines that were run before `error` was raised; None stands for all lines."""
        raised = self._raised.get(id(error))
        is_its = raised is not None and raised.goes_on_as(self._entry_from(getattr(error, "__traceback__", None)))
        limit = raised.when if is_its else self._count
        return {
            (self._paths[function.code.co_filename], line)  # once: a comprehension shares its line with its function
            for function in list(self._functions.values())
            for line, order in list(function.lines.items())
            if order <= limit
        }

    def distances(self, frames):
        """The number of calls between each function and the innermost of `frames`, by path and first line."""
        if not frames:
            return {}
        neighbors = {}
        codes = {id(frames[-1]): frames[-1]}
        for caller, code in list(self._calls.values()):
            for one, other in ((caller, code), (code, caller)):
                codes[id(one)] = one
                neighbors.setdefault(id(one), set()).add(id(other))
        distances = {id(frames[-1]): 0}
        edge = [id(frames[-1])]
        while edge:
            edge = [
                each for known in edge for each in self._next(neighbors.get(known, ()), distances[known], distances)
            ]
        return {
            (self._paths[codes[key].co_filename], codes[key].co_firstlineno): distance
            for key, distance in distances.items()
            if self.kind(codes[key].co_filename)
        }

    @staticmethod
    def _next(found, distance, distances):
        fresh = [each for each in found if each not in distances]
        distances.update((each, distance + 1) for each in fresh)
        return fresh

    def _called(self, frame):
        """Notes who in the project called the function of a frame that begins."""
        code, caller, depth = frame.f_code, frame.f_back, 0
        while caller is not None and depth < CALLER_DEPTH:
            if self.kind(caller.f_code.co_filename):
                self._calls[id(caller.f_code), id(code)] = caller.f_code, code
                return
            caller, depth = caller.f_back, depth + 1

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


class MonitoringFollower(Follower):
    """Follows with `sys.monitoring`. Raises ValueError where other tools hold all of its tool IDs."""

    def __init__(self, root):
        super().__init__(root)
        monitoring = self._monitoring = sys.monitoring
        free = [each for each in (4, 3, 5) if monitoring.get_tool(each) is None]
        if not free:
            raise ValueError("no free tool id")
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, "gumshoe")
        events = monitoring.events
        for event in (events.PY_START, events.PY_RESUME):  # a generator may have been started by an earlier test
            monitoring.register_callback(self._tool, event, self._on_start)
        monitoring.register_callback(self._tool, events.LINE, self._on_line)
        monitoring.register_callback(self._tool, events.RAISE, self._on_raise)

    def start(self):
        """Begins following."""
        self.on = True
        events = self._monitoring.events
        self._monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME | events.RAISE)

    def stop(self):
        """Stops following."""
        self.on = False
        self._monitoring.set_events(self._tool, 0)

    def clear(self):
        """Forgets what was seen."""
        for function in self._functions.values():
            self._monitoring.set_local_events(self._tool, function.code, 0)
        super().clear()

    def _on_start(self, code, offset):
        if self.kind(code.co_filename) != PROJECT:
            return self._monitoring.DISABLE
        if self.on and id(code) not in self._functions:
            self._functions[id(code)] = _Function(code)
            self._called(_current_frame(1))
            self._monitoring.set_local_events(self._tool, code, self._monitoring.events.LINE)
        return None

    def _on_line(self, code, line):
        function = self._functions.get(id(code))
        if self.on and function is not None and line not in function.lines:
            self._ran(function, line)
        return self._monitoring.DISABLE if self.on else None

    def _on_raise(self, code, offset, error):
        if self.on and self.kind(code.co_filename):
            self._raises(error, error.__traceback__)


class TracingFollower(Follower):
    """Follows with `sys.settrace`; a tracer that was set before is restored after each test."""

    def __init__(self, root):
        super().__init__(root)
        self._before = None
        self._finished = set()  # ids of functions that show nothing new; this test keeps their code alive
        self._elsewhere = {}  # code of other packages by its id, kept so that the id stays its own
        self._on_call = self._call_tracer(self._finished, self._elsewhere)

    def start(self):
        """Begins to follow, in all threads started from now on."""
        self._before = sys.gettrace()
        self.on = True
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def stop(self):
        """Gives tracing back to whoever had it."""
        self.on = False
        sys.settrace(self._before)
        threading.settrace(self._before)

    def clear(self):
        """Forgets what was seen."""
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

    def _follow(self, frame, key):
        """The local tracer of a frame, None for one that is not followed."""
        code = frame.f_code
        kind = self.kind(code.co_filename)
        if kind == OTHER:
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
        if function.stale > STALE_CALLS:
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


def make_follower(root):
    """The best follower that this interpreter supports."""
    if hasattr(sys, "monitoring"):
        try:
            return MonitoringFollower(root)
        except ValueError:
            pass
    return TracingFollower(root)
