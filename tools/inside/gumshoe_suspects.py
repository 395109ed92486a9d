"""Counts which lines failing and passing tests run, as a plugin of pytest. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later. It does nothing without the variable GUMSHOE_LINES,
which names the file to write: `{"failed": n, "passed": n, "lines": {path: {line: [failing, passing]}}, "distances":
{path: {line: n}}}`. `failing` and `passing` are numbers of tests that ran the line; lines that no failing test ran are
left out. `distances` has, by the line at which a function begins, how many calls lie between it and the frame that
failed. Paths are relative to the project; tests, installed packages and the standard library are left out. The file is
written anew at most once a second and at the end, whole each time, so that what is known survives when the run is
killed.

A test is its set-up and its own code, up to the exception that fails it: what runs after that, and what builds the
message of a failed assertion, is not counted. Only the thread that runs the test and threads that it starts are seen,
and no child processes.
"""

import json
import os
import time

from gumshoe_lines import make_follower
from gumshoe_project import project_path

WRITE_EVERY_S = 1.0


class Spectrum:
    """The observer: adds up what failing and passing tests ran."""

    def __init__(self, path, root):
        self._path = path
        self._root = root
        self._follower = make_follower(root)
        self._lines = {}
        self._distances = {}
        self._tests = {"failed": 0, "passed": 0}
        self._error = None
        self._written = time.time()

    @property
    def has_tests(self):
        """Whether a test has run."""
        return any(self._tests.values())

    def begin(self, test):
        self._error = None
        self._follower.start()

    def run(self):
        if self._error is None:
            self._follower.on = True

    def pause(self, error):
        self._follower.on = False
        if self._error is None:
            self._error = error

    def enter_report(self):
        self._follower.on = False

    def leave_report(self):
        pass  # The assertion has failed: nothing that follows is counted.

    def end(self, failed):
        self._follower.stop()
        error = self._error if failed else None
        self._error = None
        self._tests["failed" if failed else "passed"] += 1
        for path, line in self._follower.lines_until(error):
            counts = self._lines.setdefault((path, line), [0, 0])
            counts[0 if failed else 1] += 1
        if failed:
            self._measure(error)
        self._follower.clear()
        if time.time() - self._written >= WRITE_EVERY_S:
            self.finish()

    def _measure(self, error):
        """Takes in how far the functions of a failing test are from the frame that failed."""
        trace = getattr(error, "__traceback__", None)
        frames = []
        while trace is not None:
            if project_path(trace.tb_frame.f_code.co_filename, self._root) is not None:
                frames.append(trace.tb_frame.f_code)
            trace = trace.tb_next
        for place, distance in self._follower.distances(frames).items():
            self._distances[place] = min(distance, self._distances.get(place, distance))

    def finish(self):
        """Writes what is known."""
        lines, distances = {}, {}
        for (path, line), counts in self._lines.items():
            if counts[0]:
                lines.setdefault(path, {})[line] = counts
        for (path, line), distance in self._distances.items():
            distances.setdefault(path, {})[line] = distance
        beside = "{}.{}".format(self._path, os.getpid())
        with open(beside, "w") as file:
            json.dump(dict(self._tests, lines=lines, distances=distances), file)
        os.replace(beside, self._path)
        self._written = time.time()


def pytest_configure(config):
    """Registers the plugin where it is wanted; tests that xdist hands to other processes cannot be added up."""
    path = os.environ.get("GUMSHOE_LINES")
    if path:
        from gumshoe_pytest_hooks import observe

        observe(config, Spectrum(path, os.getcwd()))
