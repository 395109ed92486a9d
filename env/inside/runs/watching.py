"""How programs are watched: by `sys.monitoring` from Python 3.12 on, by `sys.settrace` before. Standard library only.

Both see the thread that starts watching and those that it starts meanwhile, but no child processes.
"""

import sys
import threading

_gettrace, _settrace = sys.gettrace, sys.settrace


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
        """Gives tracing back to whoever had it."""
        sys.gettrace, sys.settrace = _gettrace, _settrace
        _set_trace(self._before)

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
