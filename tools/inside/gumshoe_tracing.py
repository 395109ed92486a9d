"""Sets the trace function as late and as cheaply as breakpoints allow. Standard library only, Python 3.6 to 3.14.

A trace function costs something in each call of the program, and a test runner makes tens of thousands before the first
test. As long as nothing but breakpoints is to stop at, what is known to have none is let go with one look, and tracing
begins when a file that has one is first executed.
"""

import sys
import threading


def set_trace(function):
    """Makes it the trace function of this thread and of those that are started from now on; None for none."""
    threading.settrace(function)
    sys.settrace(function)


def only_wanted(wanted, more, on_call):
    """`on_call` without the calls of code that has no breakpoint.

    Args:
        wanted: what is known so far: (whether it has one, the code object) by the id of the code object.
        more: a list that is not empty while there is more to stop at than breakpoints.
    """
    known = wanted.get

    def on_any_call(frame, event, arg):
        found = known(id(frame.f_code))
        return on_call(frame, event, arg) if found is None or found[0] or more else None

    return on_any_call


def before_execution(has_breakpoint, begin):
    """Calls `begin` before any code of a file with a breakpoint is executed; at once where it may be loaded already.

    `has_breakpoint` takes a file name. Other threads than this one cannot be traced from here, and what they import is
    for all: so it also begins when the first of them is started.
    """
    files = [getattr(module, "__dict__", {}).get("__file__") for module in list(sys.modules.values())]
    if not hasattr(sys, "addaudithook") or any(isinstance(file, str) and has_breakpoint(file) for file in files):
        begin()
        return
    waits = [begin]

    def begin_once():
        while waits:
            waits.pop()()

    def on_audit(event, arguments):
        if waits and (
            event.startswith("_thread.start")
            or (event == "exec" and has_breakpoint(getattr(arguments[0], "co_filename", "<")))
        ):
            begin_once()

    sys.addaudithook(on_audit)
    _before_first_thread(begin_once)


def _before_first_thread(begin):
    """Calls `begin` when `threading` starts a thread; from Python 3.12 on, it is an event."""
    names = threading.__dict__
    start = names.get("_start_new_thread")
    if sys.version_info >= (3, 12) or start is None:
        return

    def start_thread(*arguments, **options):
        names["_start_new_thread"] = start
        begin()
        return start(*arguments, **options)

    names["_start_new_thread"] = start_thread


class Counts:
    """How often each line of the running test was reached."""

    def __init__(self, breakpoints):
        self._breakpoints = breakpoints
        self._seen = {}

    def begin(self):
        """Begins anew, with a test or after one."""
        self._seen = {}
        self._breakpoints.span += 1

    def add(self, frame, event):
        """Counts an event of a frame that is followed."""
        key = (frame.f_code.co_filename, frame.f_lineno, event)
        self._seen[key] = self._seen.get(key, 0) + 1

    def of(self, frame, event):
        """How often the test was at this line, this time included; None where it was not followed from the first."""
        if not self._breakpoints.follows_all(frame.f_code):
            return None
        return self._seen[frame.f_code.co_filename, frame.f_lineno, event]
