"""Records which lines of the project's own files each test executes, in at most about three times the plain run's time.

From Python 3.12 on the interpreter reports each line once per test and is then told to be quiet. Before 3.12, calls
are followed, and lines only in the first calls of a function in a test, and not in long loops: from then on all lines
of that function count as executed, which costs a few needless runs of tests and misses none. Where following calls
would still take more than that, as in tests that do little else than call small functions, a test is no longer
followed: it is one of the `unfollowed`.

Standard library only, Python 3.6 and later.
"""

import sys
import threading
from collections import deque
from time import perf_counter, process_time  # tests may replace what the module has

import pytest

from ..programs.project import real_project_path

FOLLOWED_CALLS = 4
# A call is no longer followed after this many lines in a row that its test has executed before.
STALE_LINES = 1000
# How many times as long as the plain run the traced one may take; what it may take in any case, in seconds of
# processor time; and after how many events that is checked.
MOST, LEAST_S, LOOK_EVERY = 3.0, 0.5, 4096
# How many events are timed then, and how many times as long a real one takes, since Python makes a frame for it.
TRIED, EVENT_FACTOR = 64, 4.0
# The quickest of so many such timings counts: another program may run in the middle of one.
TIMINGS = 8
TOOL = 4
PROCESS_EVENTS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.forkpty"})
monitoring = getattr(sys, "monitoring", None)


class Tracer:
    """A pytest plugin. It is started before collection; what runs until that is over, imports above all, counts for
    the test "". `covered` is {path: {line: [test, ...]}}. Not all that some tests execute is seen: `unfollowed`
    are those that start processes, from Python 3.8 on, and those that were followed for too long.
    """

    def __init__(self, root):
        self.root = root
        self.names = {}
        self.lines = set()
        self.calls = {}
        self.covered = {}
        self.unfollowed = []
        self.unseen = False
        self.test = ""
        self.events = 0
        self.spent_s = 0.0
        self.timings = deque(maxlen=TIMINGS)
        self.began = 0.0
        if hasattr(sys, "addaudithook"):
            self.watch_processes()

    def watch_processes(self):
        """Notes when a test starts a process: it cannot be followed."""

        # A plain function: the trace function raises an event with each look at a frame's code, and calling a bound
        # method as a hook takes three times as long.
        def on_audit(event, arguments):
            if event in PROCESS_EVENTS:
                self.unseen = True

        sys.addaudithook(on_audit)

    def pytest_collection_finish(self, session):
        """Ends what belongs to no test."""
        self.stop("")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        """Follows one test, with its fixtures."""
        self.start(item.nodeid)
        yield
        self.stop(item.nodeid)

    def start(self, nodeid=""):
        """Begins to follow a test; the empty name is for what runs outside of tests."""
        if monitoring is None and not self.began:
            self.began = process_time()
        self.test = nodeid
        self.lines = set()
        self.calls = {}
        self.unseen = False
        if monitoring is None:
            threading.settrace(self.call)
            sys.settrace(self.call)
            return
        if monitoring.get_tool(TOOL) is None:
            monitoring.use_tool_id(TOOL, "gumshoe")
            monitoring.register_callback(TOOL, monitoring.events.LINE, self.line)
        monitoring.restart_events()
        monitoring.set_events(TOOL, monitoring.events.LINE)

    def stop(self, nodeid):
        """Ends following, and keeps the lines and calls of the test."""
        if monitoring is None:
            sys.settrace(None)
            threading.settrace(None)
        else:
            monitoring.set_events(TOOL, 0)
        if self.unseen and nodeid:
            self.unfollowed.append(nodeid)
        for code, count in self.calls.items():
            if count > FOLLOWED_CALLS:
                name = self.name(code.co_filename)
                self.lines.update((name, line) for line in lines_of(code))
        for path, line in self.lines:
            self.covered.setdefault(path, {}).setdefault(line, []).append(nodeid)

    def line(self, code, line):
        """A line is about to run, seen by sys.monitoring."""
        name = self.name(code.co_filename)
        if name is not None:
            self.lines.add((name, line))
        return monitoring.DISABLE  # pyright: ignore[reportOptionalMemberAccess]

    def call(self, frame, event, argument):
        """A function is called, seen by sys.settrace."""
        self.events += 1
        if not self.events % LOOK_EVERY:
            self.look(frame.f_code)
        code = frame.f_code
        name, count = self.count(code, self.calls)
        if name is None or count > FOLLOWED_CALLS:
            return None
        lines, stale = self.lines, 0

        def line(frame, event, argument):
            nonlocal stale
            place = name, frame.f_lineno
            if place not in lines:
                lines.add(place)
                stale = 0
                return line
            stale += 1
            if stale < STALE_LINES:
                return line
            self.calls[code] = FOLLOWED_CALLS + 1
            frame.f_trace = None
            return None

        return line(frame, event, argument)

    def look(self, code):
        """Stops following a test where that has taken too large a share of the time so far.

        How long an event takes is measured here and now: other programs on the machine change it. What is imported is
        followed in any case: nothing could stand in for it.
        """
        now = perf_counter()  # The clock of processor time may stand still for milliseconds.
        for _ in range(TRIED):
            self.count(code, {})
        self.timings.append(perf_counter() - now)
        self.spent_s += min(self.timings) * (1 + EVENT_FACTOR * LOOK_EVERY / TRIED)
        total = process_time() - self.began
        if self.test and total > LEAST_S and self.spent_s > total * (1 - 1 / MOST):
            self.unseen = True
            threading.settrace(None)
            sys.settrace(None)

    def count(self, code, calls):
        """The path in the project of a called function's file, and how often the function was called so far."""
        name = self.name(code.co_filename)
        if name is None:
            return None, 0
        count = calls[code] = calls.get(code, 0) + 1
        return name, count

    def name(self, filename):
        """The path of a file relative to the project, or None if it is outside. Computed once."""
        if filename not in self.names:
            self.names[filename] = real_project_path(filename, self.root)
        return self.names[filename]


def lines_of(code):
    """The lines of a function's own code, nested functions left out."""
    if hasattr(code, "co_lines"):
        return {line for _, _, line in code.co_lines() if line}
    table = code.co_lnotab
    lines, line = {code.co_firstlineno}, code.co_firstlineno
    for step in table[1::2]:
        line += step - 256 if step > 127 else step
        lines.add(line)
    return lines
