"""Watches one function for a recorder of its calls. Standard library only, Python 3.6 to 3.14.

Python 3.12 and later use `sys.monitoring`: other functions cost nothing after their first call. Earlier versions use
`sys.settrace`: each call of another function costs one call. Only the thread that runs the tests and threads that it
starts while it is watched are seen, and no child processes.
"""

import sys
import threading

from ..debugger.stops import is_pause, is_raising

_get_ident = threading.get_ident
_current_frame = vars(sys)["_getframe"]
_END_OF_ITERATION = (StopIteration, StopAsyncIteration, GeneratorExit)


class Tracing:
    """Watches with `sys.settrace`; a tracer that was set before is restored."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._raising = {}
        self._before = None

    def start(self):
        """Begins to receive events, in all threads started from now on."""
        if sys.gettrace() != self._on_call:
            self._before = sys.gettrace()
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)

    def stop(self):
        """Gives tracing back to whoever had it."""
        self._raising = {}
        threading.settrace(self._before)
        sys.settrace(self._before)

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
        monitoring = self._monitoring = vars(sys)["monitoring"]
        free = [each for each in (4, 3, 5) if monitoring.get_tool(each) is None]
        if not free:
            raise ValueError("no free tool id")
        self._tool = free[0]
        self._recorder = recorder
        self._busy = set()
        monitoring.use_tool_id(self._tool, "gumshoe")
        events = monitoring.events
        self._local = events.LINE | events.PY_RETURN | events.PY_YIELD
        for event, callback in (
            (events.PY_START, self._on_start),
            (events.LINE, self._on_line),
            (events.PY_RETURN, self._on_return),
            (events.PY_YIELD, self._on_yield),
            (events.RAISE, self._on_raise),
            (events.PY_UNWIND, self._on_unwind),
        ):
            monitoring.register_callback(self._tool, event, callback)

    def start(self):
        """Begins to receive events."""
        events = self._monitoring.events
        self._monitoring.set_events(self._tool, events.PY_START | events.RAISE | events.PY_UNWIND)

    def stop(self):
        """Stops receiving events."""
        self._monitoring.set_events(self._tool, 0)

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
            return self._monitoring.DISABLE
        self._monitoring.set_local_events(self._tool, code, self._local)
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
    if hasattr(sys, "monitoring"):
        try:
            return Monitoring(recorder)
        except ValueError:
            pass
    return Tracing(recorder)
