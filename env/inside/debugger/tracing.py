"""Sets the trace function as late and as cheaply as breakpoints allow.

A trace function costs something at each call in the program, and a test runner makes tens of thousands before the first
test. As long as breakpoints are the only thing to stop at, code that is known to have none is dismissed at a glance,
and tracing begins when code that has one is first executed.
"""

import sys
import threading

from .source import EVENT, EntryReports

_current_frame = vars(sys)["_getframe"]


def set_trace(function):
    """Makes this the trace function of the current thread and of those started from now on; None for none."""
    threading.settrace(function)
    sys.settrace(function)


def only_wanted(wanted, more, on_call):
    """`on_call`, but not for calls of code that has no breakpoint.

    Args:
        wanted: what is known so far: (whether it has one, the code object) by the id of the code object.
        more: a list that is not empty while there is more to stop at than breakpoints.
    """
    known = wanted.get

    def on_any_call(frame, event, arg):
        found = known(id(frame.f_code))
        return on_call(frame, event, arg) if found is None or found[0] or more else None

    return on_any_call


class LateTracing:
    """Begins tracing when code with a breakpoint is first executed, again in each test, until the first stop.

    Threads other than this one cannot be traced from here, and what they import is shared by all: so tracing also
    begins when one is started, and continues as long as there is one.

    Args:
        breakpoints: all breakpoints.
        begin: begins to trace this thread; takes the frame that was entered, or nothing.
        again: called later, with each frame that is entered and reports it: does the same if tracing was lost.
    """

    def __init__(self, breakpoints, begin, again):
        self._breakpoints = breakpoints
        self._begin = begin
        self._again = again
        self._waits = False
        self._reports = EntryReports(breakpoints.lines_in)
        self._ours = None
        self.is_report = self._reports.is_report

    def start(self):
        """Waits for such code; begins at once where it may be loaded already."""
        files = [getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())]
        loaded = any(isinstance(file, str) and self._breakpoints.lines_in(file) for file in files)
        if loaded or not hasattr(sys, "addaudithook"):
            self._begin()
            return
        self._waits = True
        self._reports.install()
        sys.addaudithook(_but_for_reads(self._on_audit))
        _before_each_thread(self._begin_here)

    def end(self):
        """Stops waiting: from now on it is known what there is to stop at."""
        self._waits = False

    def pause(self):
        """Ends tracing between two tests, unless a function with a breakpoint, or another thread, is running. Returns
        whether it did.
        """
        set_by_us = sys.gettrace() is not None and sys.gettrace() is self._ours
        if not self._waits or not set_by_us or threading.active_count() > 1:
            return False
        frame = _current_frame(1)
        while frame is not None:
            if self._breakpoints.wants(frame.f_code):
                return False
            frame = frame.f_back
        sys.settrace(None)
        if _of_new_threads() is self._ours:
            threading.settrace(None)
        return True

    def _on_audit(self, event, arguments):
        if event == EVENT and not self._waits:
            self._again(_current_frame(2))
        if not self._waits:
            return
        if event == EVENT:
            self._begin_here(_current_frame(2))
        elif event.startswith("_thread.start"):
            self._begin_here()
        elif event == "exec" and self._is_wanted(arguments[0]):
            self._waits = False
            self._begin()

    def _begin_here(self, entered=None):
        """Begins tracing unless something is traced already; what the program has set for new threads stays."""
        if not self._waits or sys.gettrace() is not None:
            return
        others = _of_new_threads()
        self._begin(entered)
        self._ours = sys.gettrace()
        if others is not None:
            threading.settrace(others)

    def _is_wanted(self, code):
        has_breakpoint = bool(self._breakpoints.lines_in(getattr(code, "co_filename", "<")))
        return has_breakpoint and not self._reports.includes(code)


def _but_for_reads(hook):
    """The hook, not called for the most frequent event by far: every trace function that reads the code of a frame
    raises it. A plain function, since calling a bound method as a hook takes three times as long.
    """

    def on_audit(event, arguments):
        if event != "object.__getattr__":
            hook(event, arguments)

    return on_audit


def _of_new_threads():
    """The trace function of new threads; before Python 3.10, `threading` has no public way to tell."""
    return vars(threading).get("_trace_hook")


def _before_each_thread(begin):
    """Calls `begin` when `threading` starts a thread; from Python 3.12 on, it is an event."""
    names = threading.__dict__
    start = names.get("_start_new_thread")
    if sys.version_info >= (3, 12) or start is None:
        return

    def start_thread(*arguments, **options):
        begin()
        return start(*arguments, **options)

    names["_start_new_thread"] = start_thread


class Counts:
    """How often each line of the running test was reached."""

    def __init__(self, breakpoints):
        self._breakpoints = breakpoints
        self._seen = {}

    def begin(self):
        """Starts over, with a test or after one."""
        self._seen = {}
        self._breakpoints.span += 1

    def add(self, code, line, event):
        """Counts an event at a line of code that is followed."""
        key = (code.co_filename, line, event)
        self._seen[key] = self._seen.get(key, 0) + 1

    def of(self, frame, event):
        """How often the test was at this line, including this time; None if it was not followed from the start."""
        if not self._breakpoints.follows_all(frame.f_code):
            return None
        return self._seen[frame.f_code.co_filename, frame.f_lineno, event]
