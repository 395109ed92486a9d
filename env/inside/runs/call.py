"""One recorded call of a function: how it is watched, and how the values in it are described.

Standard library only, Python 3.6 to 3.14. From Python 3.12 on, other functions cost nothing after their first call.
Before, each call of another function costs one call.
"""

import collections
import os
import signal
import sys
import threading
import time

from ..debugger.language import attributes_of, describe_exception, short_repr
from ..debugger.stops import is_pause, is_raising
from ..programs.project import project_path
from .watching import MonitoringTool, YieldingTrace, newest

FIRST_STEPS, LAST_STEPS = 200, 40
VARIABLES = 30
PLAIN = (int, float, complex, bool, str, bytes, type(None))
TEST_S, ALL_S, LEAST_S = 0.5, 20.0, 0.02
"""Seconds for describing the values of one test; LEAST_S once those of all tests have taken ALL_S."""
AGAIN_S = 0.05
"""How soon an object is interrupted again if its own code has caught the interruption."""
_get_ident, _set_handler, _set_timer = threading.get_ident, signal.signal, signal.setitimer
_current_frame = vars(sys)["_getframe"]
_END_OF_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)
_DULL = (type(os), type(project_path), type(len), type)


class Call:
    """One call, while it goes on and afterwards."""

    def __init__(self, number, caller):
        self.number = number
        self.count = 1
        self.caller = caller
        self.arguments = {}
        self.steps = []
        self.last = collections.deque(maxlen=LAST_STEPS)
        self.length = 0
        self.values = {}
        self.error_seen = None
        self.outcome = "unfinished"
        self.value = ""
        self.yields = []
        self.yielded = 0

    def add(self, line):
        """A line begins."""
        step = [line, {}, ""]
        self.length += 1
        (self.steps if len(self.steps) < FIRST_STEPS else self.last).append(step)

    def step(self):
        """The line that began last; None before the first."""
        return self.last[-1] if self.last else self.steps[-1] if self.steps else None

    def key(self):
        """What equal calls have in common."""
        lines = tuple(step[0] for step in self.steps) + tuple(step[0] for step in self.last)
        return tuple(self.arguments.items()), lines, self.length, self.outcome, self.value, tuple(self.yields)

    def as_data(self):
        """The call as it is written."""
        names = ("number", "count", "arguments", "caller", "outcome", "value", "yields", "yielded")
        steps = self.steps + list(self.last)
        return dict({name: getattr(self, name) for name in names}, steps=steps, skipped=self.length - len(steps))


def variables_of(frame):
    """Names and values of a frame's variables; an object whose method is running is shown by its attributes."""
    values = frame.f_locals
    shown = 0
    for name in list(values):
        value = values.get(name)
        if name.startswith(("__", "@", ".")) or isinstance(value, _DULL):
            continue
        if name == "self":
            attributes = _attributes(value)
            for attribute, inner in attributes:
                yield "self." + attribute, inner
            if not attributes or isinstance(value, (list, dict, set, tuple, str, int)):
                yield name, value
        else:
            yield name, value
        shown += 1
        if shown == VARIABLES:
            return


def _attributes(value):
    try:
        items = list(attributes_of(value).items())
    except BaseException:  # the program has changed how its classes are made
        return []
    return [(name, inner) for name, inner in items if isinstance(name, str) and not isinstance(inner, _DULL)][:12]


def describe(value):
    """The value, shortened; with its length where that cannot be seen."""
    try:
        text = short_repr(value)
        size = len(value) if isinstance(value, (list, tuple, dict, set, frozenset, str, bytes)) else 0
    except BaseException as error:  # the value's own code may raise anything
        return "<unprintable {}: {}>".format(type(value).__name__, type(error).__name__)
    limit = 190 if isinstance(value, (str, bytes)) else 12
    return "{} (len {})".format(text, size) if size > limit else text


class Describer:
    """Describes values as long as there is time: the repr of an object may print everything that the object holds.

    When a test's time is up, anything but a plain value becomes `<TYPE, not shown NUMBER>`. The number is different
    each time, so that such a value equals no other.
    """

    def __init__(self):
        self._all = self._spent = 0.0
        self._hidden = 0
        self._limit = Limit()

    @property
    def has_time(self):
        """Whether values are still described."""
        return self._left > 0

    @property
    def _left(self):
        return (TEST_S if self._all < ALL_S else LEAST_S) - self._spent

    def begin(self):
        """A test begins."""
        self._spent = 0.0

    def describe(self, value, clock=time.perf_counter):
        """The value, shortened, or a note that it is not shown."""
        if type(value) in PLAIN:
            return describe(value)
        text = None
        if self.has_time:
            began = clock()
            text = self._limit.within(self._left, lambda: describe(value))
            took = clock() - began
            self._spent += took
            self._all += took
        if text is None:
            self._hidden += 1
            return "<{}, not shown {}>".format(type(value).__name__, self._hidden)
        return text


class TooLong(BaseException):
    """Interrupts an object's own code."""


class Limit:
    """Interrupts the program's code after some CPU time, in the main thread; other threads cannot be interrupted."""

    def __init__(self):
        self._main = threading.main_thread().ident
        self._is_on = self._is_over = False

    def within(self, seconds, work):
        """What `work()` returns; None if it was interrupted. The program's own timer and handler are restored."""
        if _get_ident() != self._main:
            return work()
        handler = _set_handler(signal.SIGPROF, self._interrupt)
        timer = _set_timer(signal.ITIMER_PROF, seconds, AGAIN_S)
        text = None
        self._is_over = False
        try:
            try:
                self._is_on = True
                text = work()
            finally:
                self._is_on = False  # From here on nothing is raised, so nothing gets into the program.
        except TooLong:
            pass
        finally:
            _set_timer(signal.ITIMER_PROF, *timer)
            _set_handler(signal.SIGPROF, signal.SIG_DFL if handler is None else handler)
        return None if self._is_over else text

    def _interrupt(self, *_):
        if self._is_on:
            self._is_over = True
            raise TooLong


def describe_error(error):
    """Class and message of an exception."""
    try:
        return describe_exception(type(error), error)
    except BaseException:  # the exception's own code may raise anything
        return type(error).__name__


class Tracing:
    """Watches with `sys.settrace`; a tracer that was set before is restored."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._raising = {}
        self._trace = YieldingTrace()

    def start(self):
        """Begins to receive events."""
        self._trace.start(self._on_call)

    def stop(self):
        """Gives tracing back to whoever had it."""
        self._raising = {}
        self._trace.stop()

    def _on_call(self, frame, event, arg):
        recorder = self._recorder
        if not recorder.wants(frame.f_code):
            return None
        if id(frame) not in recorder.active or not _resumes(frame):
            recorder.called(frame)
        return self._on_event

    def _on_event(self, frame, event, arg):
        recorder, key = self._recorder, id(frame)
        if event == "line":
            if key in self._raising:
                self._raising[key] = self._raising[key][0], frame.f_lineno
            recorder.line(frame)
        elif event == "exception":
            kind, value, trace = arg
            if trace is not None or not issubclass(kind, _END_OF_ITERATION):
                error = value if isinstance(value, BaseException) else kind(value)
                self._raising[key] = error, None
                recorder.raised(frame, error)
        elif event == "return":
            error, line = self._raising.pop(key, (None, None))
            if error is not None and arg is None and is_raising(frame, line):
                recorder.unwound(frame, error)
            elif is_pause(frame):
                recorder.yielded(frame, arg)
            else:
                recorder.returned(frame, arg)
        return self._on_event


def _resumes(frame):
    """Whether the call event of a known frame is that of a generator resuming."""
    return bool(frame.f_code.co_flags & 0x2A0)


class Monitoring:
    """Watches with `sys.monitoring`. Raises ValueError where other tools hold all of its tool IDs."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._busy = set()
        self._tool = MonitoringTool(
            PY_START=self._on_start,
            LINE=self._on_line,
            PY_RETURN=self._on_return,
            PY_YIELD=self._on_yield,
            RAISE=self._on_raise,
            PY_UNWIND=self._on_unwind,
        )

    def start(self):
        """Begins to receive events."""
        self._tool.watch("PY_START", "RAISE", "PY_UNWIND")

    def stop(self):
        """Stops receiving events."""
        self._tool.watch()

    def _tell(self, method, *arguments):
        """Calls a method of the recorder, and hides whatever that call sets off."""
        thread = _get_ident()
        if thread not in self._busy:
            self._busy.add(thread)
            try:
                method(*arguments)
            finally:
                self._busy.discard(thread)

    def _on_start(self, code, offset):
        if not self._recorder.wants(code):
            return self._tool.disable
        self._tool.watch_code(code, "LINE", "PY_RETURN", "PY_YIELD")
        self._tell(self._recorder.called, _current_frame(1))
        return None

    def _on_line(self, code, line):
        self._tell(self._recorder.line, _current_frame(1))

    def _on_return(self, code, offset, value):
        self._tell(self._recorder.returned, _current_frame(1), value)

    def _on_yield(self, code, offset, value):
        self._tell(self._recorder.yielded, _current_frame(1), value)

    def _on_raise(self, code, offset, error):
        if self._recorder.wants(code):
            self._tell(self._recorder.raised, _current_frame(1), error)

    def _on_unwind(self, code, offset, error):
        if self._recorder.wants(code):
            self._tell(self._recorder.unwound, _current_frame(1), error)


def watch(recorder):
    """The best watcher that this interpreter supports."""
    return newest(Monitoring, Tracing, recorder)
