"""A pytest plugin that counts which lines failing and passing tests run. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later. It does nothing without the variable GUMSHOE_LINES,
which names the file to write: `{"failed": n, "passed": n, "lines": {path: {line: [failing, passing, order]}}}`, where
`failing` and `passing` are numbers of tests that ran the line, and `order` says when the first failing test ran it last
(0: not at all). Paths are relative to the project; tests, installed packages and the standard library are left out.
The file is written anew at most once a second and at the end, whole each time, so that what is known survives when the
run is killed.

Only the thread that runs the test and threads that it starts are seen, and no child processes.
"""

import json
import os
import sys
import threading
import time

import pytest
from gumshoe_project import holds_tests, project_path

WRITE_EVERY_S = 1.0


class Lines:
    """Follows each test line by line, and adds up what failing and passing ones ran."""

    def __init__(self, path, root):
        self._path = path
        self._root = root
        self._wanted = {}
        self._lines = {}
        self._tests = {"failed": 0, "passed": 0}
        self._seen = {}
        self._steps = 0
        self._failed = False
        self._written = time.time()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Follows one test from its set-up to its end."""
        self._seen = {}
        self._failed = False
        before = sys.gettrace()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)
            self._count()
            if time.time() - self._written >= WRITE_EVERY_S:
                self._write()

    def pytest_runtest_logreport(self, report):
        """A phase of the test is over."""
        if report.outcome == "failed":
            self._failed = True

    def pytest_sessionfinish(self):
        """All tests are over."""
        self._write()

    def _enter(self, frame, event, argument):
        filename = frame.f_code.co_filename
        wanted = self._wanted.get(filename)
        if wanted is None:
            path = project_path(filename, self._root)
            wanted = self._wanted[filename] = "" if path is None or holds_tests(path) else path
        return self._step if wanted else None

    def _step(self, frame, event, argument):
        if event == "line":
            self._steps += 1
            self._seen[frame.f_code.co_filename, frame.f_lineno] = self._steps
        return self._step

    def _count(self):
        first = self._failed and not self._tests["failed"]
        self._tests["failed" if self._failed else "passed"] += 1
        # A thread that a test has left behind may still be adding lines.
        seen = self._seen.copy()
        for order, place in enumerate(sorted(seen, key=lambda place: seen[place]), start=1):
            counts = self._lines.setdefault(place, [0, 0, 0])
            counts[0 if self._failed else 1] += 1
            if first:
                counts[2] = order

    def _write(self):
        lines = {}
        for (filename, line), counts in self._lines.items():
            lines.setdefault(self._wanted[filename], {})[line] = counts
        beside = "{}.{}".format(self._path, os.getpid())
        with open(beside, "w") as file:
            json.dump(dict(self._tests, lines=lines), file)
        os.replace(beside, self._path)
        self._written = time.time()


def pytest_configure(config):
    """Registers the plugin where it is wanted; tests that xdist hands to other processes cannot be added up."""
    path = os.environ.get("GUMSHOE_LINES")
    if path and not config.pluginmanager.hasplugin("dsession") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Lines(path, os.getcwd()), "gumshoe_lines_writer")
