"""Records which lines of the project's own files each test executes, at a small multiple of the plain run's time.

From Python 3.12 on the interpreter reports each line once a test and is then told to be quiet about it. Before, calls
are followed, and lines only in the first calls of a function in a test: from then on all lines of that function count
as executed, which costs a few needless runs of tests and misses none.

Standard library only, Python 3.6 and later.
"""

import os
import sys
import threading

import pytest

FOLLOWED_CALLS = 4
TOOL = 4
PROCESS_EVENTS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.forkpty"})
monitoring = getattr(sys, "monitoring", None)


class Tracer:
    """A pytest plugin. It is started before collection; what runs until that is over, imports above all, counts for
    the test "". `covered` is {path: {line: [test, ...]}}. `starters` are the tests that start processes, from Python
    3.8 on: what these execute is not seen.
    """

    def __init__(self, root):
        self.root = root
        self.names = {}
        self.lines = set()
        self.calls = {}
        self.covered = {}
        self.starters = []
        self.starts = False
        if hasattr(sys, "addaudithook"):
            sys.addaudithook(self.audit)

    def audit(self, event, arguments):
        if event in PROCESS_EVENTS:
            self.starts = True

    def pytest_collection_finish(self, session):
        self.stop("")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        self.start()
        yield
        self.stop(item.nodeid)

    def start(self):
        self.lines = set()
        self.calls = {}
        self.starts = False
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
        if monitoring is None:
            sys.settrace(None)
            threading.settrace(None)
        else:
            monitoring.set_events(TOOL, 0)
        if self.starts and nodeid:
            self.starters.append(nodeid)
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
        code = frame.f_code
        name = self.name(code.co_filename)
        if name is None:
            return None
        calls = self.calls[code] = self.calls.get(code, 0) + 1
        if calls > FOLLOWED_CALLS:
            return None
        lines = self.lines

        def line(frame, event, argument):
            lines.add((name, frame.f_lineno))
            return line

        return line(frame, event, argument)

    def name(self, filename):
        if filename not in self.names:
            self.names[filename] = inside(filename, self.root)
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


def inside(filename, root):
    """The file's path relative to the project, None where it is not in it."""
    if filename.startswith("<"):
        return None
    path = os.path.realpath(filename)
    return os.path.relpath(path, root).replace(os.sep, "/") if path.startswith(root + os.sep) else None
