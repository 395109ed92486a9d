"""Watching lines and calls: by `sys.monitoring` from Python 3.12 on, by `sys.settrace` before.

`lines` and `trace` watch this way; `probes` and the debugger have trace functions of their own. `sys.monitoring` sees
all threads, `sys.settrace` the one that starts watching and those that are started meanwhile; neither sees child
processes. `watch_function` watches the calls of one function; `lines` has watchers of its own, which can leave out
more.
"""

import sys
import threading

from ..debugger.stops import END_OF_ITERATION, RESUMABLE, is_pause, is_raising

_current_frame = vars(sys)["_getframe"]
_get_ident = threading.get_ident
_gettrace, _settrace = sys.gettrace, sys.settrace
CALLER_DEPTH = 60
"""How many frames are searched for the caller in the project."""


class MonitoringTool:
    """A tool of `sys.monitoring`. Raises ValueError where other tools hold all of its IDs.

    Args:
        callbacks: by the names of events, such as `PY_START`.
    """

    def __init__(self, **callbacks):
        self._monitoring = vars(sys)["monitoring"]
        self.disable = self._monitoring.DISABLE
        # By convention, 0 to 2 belong to debuggers, coverage tools and profilers.
        free = [each for each in (4, 3, 5) if self._monitoring.get_tool(each) is None]
        if not free:
            raise ValueError("no free tool id")
        self._id = free[0]
        self._monitoring.use_tool_id(self._id, "gumshoe")
        for name, callback in callbacks.items():
            self._monitoring.register_callback(self._id, self._events([name]), callback)

    def watch(self, *names):
        """Receives these events from all code, and no others; local events stay as they are."""
        self._monitoring.set_events(self._id, self._events(names))

    def watch_code(self, code, *names):
        """Receives these events from one code object, also at places where they were disabled."""
        self._monitoring.set_local_events(self._id, code, self._events(names))

    def _events(self, names):
        return sum(getattr(self._monitoring.events, name) for name in names)


class YieldingTrace:
    """A trace function that gives way to the one before it.

    The program sees that one, and takes ours away only by setting one of its own.
    """

    def __init__(self):
        self._function = self._before = None

    def start(self, function):
        """Sets a trace function."""
        if _gettrace() != function:
            self._before = _gettrace()
        self._function = function
        _set_trace(function)
        sys.gettrace, sys.settrace = self._seen, self._set

    def stop(self):
        """Gives tracing back to whoever had it. Returns whether it was lost: the interpreter ends it where a recursion
        is too deep to call a trace function, and the program may set one of its own.
        """
        is_lost = self._function is not None and _gettrace() != self._function
        self._function = None
        sys.gettrace, sys.settrace = _gettrace, _settrace
        _set_trace(self._before)
        return is_lost

    def _seen(self):
        trace = _gettrace()
        return self._before if trace == self._function else trace

    def _set(self, trace):
        _settrace(self._function if trace is None else trace)


def _set_trace(function):
    threading.settrace(function)
    _settrace(function)


def newest(monitoring, tracing, *arguments):
    """An object of the class that uses `sys.monitoring`; of the one that uses `sys.settrace` where that cannot be."""
    if hasattr(sys, "monitoring"):
        try:
            return monitoring(*arguments)
        except ValueError:
            pass
    return tracing(*arguments)


class FunctionTracing:
    """Watches one function with `sys.settrace`: each call of another one costs a little, too."""

    def __init__(self, recorder):
        self._recorder = recorder
        self._raising = {}
        self._trace = YieldingTrace()

    def start(self):
        """Begins to receive events."""
        self._trace.start(self._on_call)

    def stop(self):
        """Gives tracing back to whoever had it. Returns whether it was lost."""
        self._raising = {}
        return self._trace.stop()

    def _on_call(self, frame, event, arg):
        recorder = self._recorder
        if not recorder.wants(frame.f_code):
            return None
        # The call event of a frame that is known is that of a generator resuming.
        if id(frame) not in recorder.active or not frame.f_code.co_flags & RESUMABLE:
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
            if trace is not None or not issubclass(kind, END_OF_ITERATION):
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


class FunctionMonitoring:
    """Watches one function with `sys.monitoring`: others cost nothing after their first call."""

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
        """Stops receiving events. They are never lost."""
        self._tool.watch()
        return False

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


def watch_function(recorder):
    """What watches the calls of a function, for a recorder.

    Whether a code object is the function's, `recorder.wants(code)` says; its `called`, `line`, `yielded`, `raised`,
    `returned` and `unwound` take the frame of a call, and what is returned, yielded or raised. The keys of its `active`
    are the ids of the frames of calls that have begun and not ended: a generator that resumes is no new call.
    """
    return newest(FunctionMonitoring, FunctionTracing, recorder)
