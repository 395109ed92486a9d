"""Sets the trace function as late and as cheaply as breakpoints allow.

A trace function costs something at each call in the program, and a test runner makes tens of thousands before the first
test. As long as breakpoints are the only thing to stop at, code that is known to have none is dismissed at a glance,
and tracing begins when code that has one is first executed.

How that is noticed: from Python 3.8 on, modules are compiled here with a call at the beginning of functions that
contain given lines, on the line of their `def`. The call raises an audit event when the function is entered, so that no
trace function or profiler of the program sees a frame of ours. Code of such a function that is moved to another process
does not run there.

What a thread of the program can be:

| state | what it means | known to | until |
|---|---|---|---|
| deferred | pytest starts, which runs no code of the workspace | `Debugger.deferred` | `engage`: waiting or traced |
| waiting | no code with a breakpoint has run yet | `LateTracing` | such code runs, or a thread starts: traced |
| traced | our trace function is set | `TracedThreads` | a test ends: paused; or it is lost |
| paused | a test is over; else as waiting | `LateTracing.pause` | as waiting |
| lost | too deep a recursion or the program ended it | `TracedThreads.is_lost` | a test begins or ends: traced |

A lost thread is also traced again when a function reports, and when the main program ends. It is not lost where the
program has set a trace function of its own.

Waiting and pausing end for good with the first stop (`LateTracing.end`), and where a module with a breakpoint runs in
which nothing reports. From then on, a thread is traced whenever there is something to stop at (`Debugger.resume`).
"""

import ast
import builtins
import importlib.machinery
import sys
import threading
import warnings

from ..functions import FUNCTIONS, first_line, is_in_body, last_line, yields
from ..programs.project import load_from, module_files

_current_frame = vars(sys)["_getframe"]
_get_ident = threading.get_ident
EVENT = "gumshoe.entered"
"""The audit event that is raised in the frame of the function."""
_REPORT = "__gumshoe_entered__"
_LATER = (ast.Lambda, ast.GeneratorExp)


def set_trace(function):
    """Makes this the trace function of the current thread and of those started from now on; None for none."""
    threading.settrace(function)
    sys.settrace(function)


class TracedThreads:
    """Sets the trace function of threads, and knows which have one, unless the interpreter has ended that.

    Args:
        wanted: what is known of code objects, see `Breakpoints`.
        on_call: the debugger's trace function.
    """

    def __init__(self, wanted, on_call):
        self._on_call = on_call
        # Not empty while there is more to stop at than breakpoints. A list, so that the function below sees it change:
        # it runs at each call, and an attribute would cost more.
        self._stops_elsewhere = []
        self._on_any_call = _only_wanted(wanted, self._stops_elsewhere, on_call)
        self._traced = set()

    def set(self, needed, only_breakpoints):
        """Traces this thread, and those that are started from now on, if that is needed; else ends it.

        Args:
            needed: whether there is something to stop at.
            only_breakpoints: whether nothing but breakpoints.
        """
        self._stops_elsewhere[:] = [] if only_breakpoints else [True]
        on_call = self._on_any_call if only_breakpoints else self._on_call
        set_trace(on_call if needed else None)
        (self._traced.add if needed else self._traced.discard)(_get_ident())

    def note_pause(self):
        """Tracing of this thread was ended on purpose."""
        self._traced.discard(_get_ident())

    def is_lost(self):
        """Whether the interpreter has ended tracing in this thread: it does so where a trace function raises an
        exception, and where the recursion is too deep to call one.
        """
        return _get_ident() in self._traced and sys.gettrace() is None


def _only_wanted(wanted, stops_elsewhere, on_call):
    """`on_call`, but not for calls of code that has no breakpoint.

    Args:
        wanted: what is known so far: (whether it has one, the code object) by the id of the code object.
        stops_elsewhere: a list that is not empty while there is more to stop at than breakpoints.
    """
    known = wanted.get

    def on_any_call(frame, event, arg):
        found = known(id(frame.f_code))
        return on_call(frame, event, arg) if found is None or found[0] or stops_elsewhere else None

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
        self._waits = False  # whether it begins only where it has to: from `start` on, until the first stop
        self._reports = EntryReports(breakpoints.lines_in)
        self._ours = None  # the trace function that was last set here
        self.is_report = self._reports.is_report

    def start(self):
        """Waits for such code; begins at once where it may be loaded already."""
        loaded = any(map(self._breakpoints.lines_in, module_files().values()))
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


class EntryReports:
    """The functions that report, in modules that are imported from now on.

    Functions that can be left and resumed do not report, nor do modules with such a line outside of functions, modules
    that warn when they are compiled, and modules with a loader of their own.

    Args:
        lines_in: takes a file name, returns the given lines in it.
    """

    def __init__(self, lines_in):
        self._lines_in = lines_in
        self._modules = []
        self._lines = {}

    def install(self):
        """Has modules compiled this way from now on."""
        setattr(builtins, _REPORT, sys.audit)
        load_from(self._code_for)

    def includes(self, module):
        """Whether a code object is that of a module in which every function with one of the lines reports."""
        return any(each is module for each in self._modules)

    def is_report(self, code, line):
        """Whether a line of a function is that of its report, which no function reaches otherwise."""
        return self._lines.get((code.co_filename, code.co_firstlineno, code.co_name)) == line

    def _code_for(self, loader, path):
        is_plain = type(loader) is importlib.machinery.SourceFileLoader and sys.gettrace() is None
        lines = self._lines_in(path) if is_plain else ()
        return self._compile(loader.get_data(path), path, lines) if lines else None

    def _compile(self, data, path, lines):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                tree = ast.parse(data, path)
                functions = {_function_at(tree, line) for line in lines}
                if None in functions:
                    return None
                for function in functions:
                    _insert_report(function)
                code = compile(tree, path, "exec", 0, True)
            except (SyntaxError, ValueError, RecursionError):
                return None
        if caught:
            return None
        self._modules.append(code)
        self._lines.update({(path, first_line(each), each.name): each.lineno for each in functions})
        return code


def _function_at(tree, line):
    """The function with a line in its body, if the line can only run during a call of the function; else None."""
    found = None
    for node in ast.walk(tree):
        if not hasattr(node, "lineno") or not first_line(node) <= line <= last_line(node):
            continue
        if isinstance(node, _LATER):
            return None
        if isinstance(node, FUNCTIONS) and is_in_body(node, line):
            found = node if found is None or found.lineno < node.lineno else found
    return found if isinstance(found, ast.FunctionDef) and not yields(found) and not _is_empty(found) else None


def _is_empty(function):
    return len(function.body) == 1 and ast.get_docstring(function) is not None


def _insert_report(function):
    """Puts the call after the docstring; the line of the `def` is the only one sure to have no line event."""
    report = ast.parse("{}({!r})".format(_REPORT, EVENT)).body[0]
    for node in ast.walk(report):
        node.lineno = node.end_lineno = function.lineno
        node.col_offset = node.end_col_offset = function.col_offset
    function.body.insert(0 if ast.get_docstring(function, clean=False) is None else 1, report)
