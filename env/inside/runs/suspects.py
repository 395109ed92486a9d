"""Counts which lines failing and passing tests run, as a plugin of pytest. PYTEST_DONT_REWRITE

Works with pytest 3.6 and later. It does nothing without the variable GUMSHOE_LINES, which names the file to write:
`{"failed": n, "passed": n, "running": n, "lines": {path: {line: [failing, passing]}}, "distances": {path: {line: n}}}`.
`failing` and `passing` are the numbers of tests that ran the line; lines that no failing test ran are left out.
`distances` says, by the line at which a function begins, how many calls lie between it and the frame that failed. Paths
are relative to the project; tests, installed packages and the standard library are left out. The whole file is
rewritten at most once a second, and at the end, so that what is known survives when the run is killed. A test that has
run for some seconds is recorded as failing while it runs, with `running` being 1, and its current frame counts as the
one that failed: if the run is killed, it is a test that never ended.

A test is its set-up, its own code and its tear-down, up to the exception that fails it: what runs after that, and what
builds the message of a failed assertion, is not counted. Child processes are not seen; nor are, with `sys.settrace`,
threads that were there before the test.

Tests of unittest, Django's runner and sympy's are counted by a program that runs theirs:

    GUMSHOE_SUSPECTS=request.json python __main__.py runs.suspects -- -m unittest -v

The request is `{"record": path}`. If the program runs pytest after all, the plugin writes the record. A program that
runs none of these leaves no record, nor does one that runs its tests in other processes.
"""

import _thread
import json
import os
import sys
import time
from traceback import walk_stack, walk_tb

from ..programs.program import STARTER, read_request, run_program
from ..programs.project import holds_tests, project_path
from ..programs.runner_hooks import Observer, observe
from .lines import make_follower

_open, _dumps, _sleep, _time = open, json.dumps, time.sleep, time.time

_current_frames = vars(sys)["_current_frames"]
WRITE_EVERY_S = 1.0
LONG_TEST_S = 3.0
STALE_CALLS = 30
"""Calls of a function in a row without a new line, after which lines that it runs in the same test may be missed."""


class SpectrumObserver(Observer):
    """Adds up what failing and passing tests ran."""

    def __init__(self, path, root):
        self._path = path
        self._follower = make_follower(lambda file: project_path(file, root), holds_tests, STALE_CALLS)
        self._lines = {}
        self._distances = {}
        self._tests = {"failed": 0, "passed": 0}
        self._error = None
        self._written = _time()
        self._began = None
        self._main = _thread.get_ident()
        self._watched = False
        self._lock = _thread.allocate_lock()

    @property
    def has_tests(self):
        """Whether a test has run."""
        return any(self._tests.values())

    def start_test(self, test):
        """A test begins."""
        if not self._watched:
            self._watched = True
            self._main = _thread.get_ident()
            _thread.start_new_thread(self._watch, ())  # Not in the thread list that tests may look at.
        self._error = None
        self._began = _time()
        self._follower.start()

    def run(self):
        """The test goes on after a pause, unless it has failed already."""
        if self._error is None:
            self._follower.on = True

    def pause(self, error):
        """The test failed with `error`, or pytest does something of its own: nothing is counted."""
        self._follower.on = False
        if self._error is None:
            self._error = error

    def report(self):
        """An assertion has failed: its message is being built, and nothing that follows is counted."""
        self._follower.on = False

    def end_test(self, failed):
        """The test ends: its lines count as those of a failed or a passed test, or not at all."""
        self._follower.stop()
        self._began = None
        error = self._error if failed else None
        self._error = None
        with _Held(self._lock):
            if failed is not None:
                self._tests["failed" if failed else "passed"] += 1
                self._count(self._lines, self._follower.lines_until(error), failed)
            if failed:
                trace = getattr(error, "__traceback__", None)
                self._measure(self._distances, [frame.f_code for frame, _ in walk_tb(trace)])
            self._follower.clear()
        if _time() - self._written >= WRITE_EVERY_S:
            self.finish()

    @staticmethod
    def _count(lines, ran, failed):
        for place in ran:
            lines.setdefault(place, [0, 0])[0 if failed else 1] += 1

    def _measure(self, distances, codes):
        """Takes in how far the functions of a failing test are from the innermost of `codes`, where it failed."""
        for place, distance in self._follower.distances(codes).items():
            distances[place] = min(distance, distances.get(place, distance))

    def finish(self):
        """Writes what is known."""
        with _Held(self._lock):
            self._write(self._tests, self._lines, self._distances)

    def _watch(self):
        """Writes what a long-running test has done so far; it may never end."""
        while True:
            _sleep(WRITE_EVERY_S)
            with _Held(self._lock):
                began = self._began
                if began is not None and _time() - began >= LONG_TEST_S:
                    self._write_running()

    def _write_running(self):
        tests = dict(self._tests, failed=self._tests["failed"] + 1, running=1)
        lines = {place: list(counts) for place, counts in list(self._lines.items())}
        distances = dict(self._distances)
        self._count(lines, self._follower.lines_until(self._error), True)
        self._measure(distances, _codes_below(_current_frames().get(self._main)))
        self._write(tests, lines, distances)

    def _write(self, tests, counted, measured):
        lines, distances = {}, {}
        for (path, line), counts in counted.items():
            if counts[0]:
                lines.setdefault(path, {})[line] = counts
        for (path, line), distance in measured.items():
            distances.setdefault(path, {})[line] = distance
        beside = "{}.{}".format(self._path, os.getpid())
        with _open(beside, "w") as file:
            file.write(_dumps(dict(tests, lines=lines, distances=distances)))
        os.replace(beside, self._path)
        self._written = _time()


class _Held:
    """Holds a lock, or goes on without it after a second: it may have been copied by a fork while it was held."""

    def __init__(self, lock):
        self._lock = lock

    def __enter__(self):
        self._acquired = self._lock.acquire(True, 1.0)

    def __exit__(self, *error):
        if self._acquired:
            self._lock.release()


def _codes_below(frame):
    """The code of a frame and of its callers, outermost first."""
    return [] if frame is None else [each.f_code for each, _ in walk_stack(frame)][::-1]


def pytest_configure(config):
    """Has pytest tell of its tests where the variable is set; they have to run in this process."""
    path = os.environ.get("GUMSHOE_LINES")
    if path:
        from .outcomes import observe_pytest  # which needs pytest

        observe_pytest(config, SpectrumObserver(path, os.getcwd()))


def main(arguments):
    """Carries out the request. Returns the exit code of the program, 2 for one that is not Python."""
    program, request = read_request(arguments, "GUMSHOE_SUSPECTS", "runs.suspects")
    if request is None:
        return 2
    # The program may run pytest in this process or in a child, where the plugin needs nothing but the record: so these
    # variables stay. `trace` takes its own back with `withdraw_plugin`: its recorder is in this process alone.
    os.environ["GUMSHOE_LINES"] = request["record"]
    os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, (__name__, os.environ.get("PYTEST_PLUGINS"))))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (os.path.dirname(os.path.dirname(STARTER)), os.environ.get("PYTHONPATH")))
    )
    spectrum = SpectrumObserver(request["record"], os.getcwd())
    observe(spectrum)
    try:
        return run_program(program)
    finally:
        if spectrum.has_tests:
            spectrum.finish()
