"""What watches one run of a suite: outcomes and failures, random numbers and clocks, the lines of each test."""

import functools
import json
import os
import random
import re
import sys
import time
import traceback

import pytest

from ..programs.project import module_files, real_project_path
from ..programs.runner_hooks import FAILED
from ..runs.lines import make_follower
from ..runs.outcomes import phase_outcome, worse_outcome

# Also the end of one that pytest has shortened: `<object obje...7f4dcdf4d740>`.
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}|(?<=\.\.\.)[0-9a-fA-F]{6,}(?=>)")
MESSAGE_LIMIT = 2000
FRAMES_LIMIT = 30
STALE_CALLS = 4
"""Calls of a function in a row without a new line, after which all of its lines count as executed by the test."""
MOST_CALLS = 500_000
"""Calls after which a test is followed no longer: following a test that does little else would take many times as long
as the test. They add some tenths of a second."""
PROCESS_EVENTS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.forkpty"})


class OutcomeRecorder:
    """A pytest plugin that keeps each test's outcome, and where and why it failed.

    At the end of the session it writes all that to `writer`, as one JSON object, and ends the process:

        outcomes           {test: outcome}, as `runs.outcomes` names them
        failures           {test: {"when": phase, "type", "message", "frames": [[path, line, function], ...]}}
        collection_errors  [what could not be collected, ...]
        seconds            {test: how long it took}
        random_after       {test: state of the random numbers}, of tests that have used any
        clocks             {test: [path of a file that read a clock, ...]}
        exit_code          pytest's
        covered, unfollowed, modules    only with `lines`: what that has recorded, and what is imported from outside

    Args:
        root: the real path of the project.
        temporary: pytest's folder for temporary files.
        writer: a descriptor.
        lines: what records lines in the same run, if anything does.
        randomness: what watches random numbers and clocks, if anything does.
    """

    def __init__(self, root, temporary, writer, lines=None, randomness=None):
        self.root = root
        self.temporary = temporary
        self.writer = writer
        self.lines = lines
        self.outcomes = {}
        self.failures = {}
        self.seconds = {}
        self.randomness = randomness
        self.random_before = None
        self.random_after = {}
        self.clocks = {}
        self.collection_errors = []
        self.exit_code = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session, exitstatus):
        """Sends the outcomes."""
        self.exit_code = int(exitstatus)
        self.finish()

    def finish(self):
        """Writes what was seen and ends the process."""
        seen = {
            "outcomes": self.outcomes,
            "failures": self.failures,
            "collection_errors": self.collection_errors,
            "seconds": self.seconds,
            "random_after": self.random_after,
            "clocks": self.clocks,
            "exit_code": self.exit_code,
        }
        if self.lines is not None:
            seen["covered"] = self.lines.covered
            seen["unfollowed"] = self.lines.unfollowed
            seen["modules"] = outside_modules(self.root)
        write_answer(self.writer, seen)
        os._exit(0)

    def pytest_collectreport(self, report):
        """Notes what could not be collected."""
        if report.failed:
            self.collection_errors.append(report.nodeid)

    def pytest_runtest_logstart(self, nodeid):
        """Forgets what earlier tests have drawn and read, and notes where the random numbers are."""
        if self.randomness is not None:
            self.randomness.numbers = 0
            self.randomness.clocks_read_in.clear()
            self.random_before = self.randomness.state()

    def pytest_runtest_logfinish(self, nodeid):
        """Keeps where a test has left the random numbers, if it has used them, and which files have read a clock."""
        if self.randomness is None:
            return
        after = self.randomness.state()
        if after != self.random_before:
            self.random_after[nodeid] = after
        paths = [real_project_path(file, self.root) for file in self.randomness.clocks_read_in]
        if any(paths):
            self.clocks[nodeid] = [path for path in paths if path is not None]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Keeps a test's first failure."""
        # Nobody reads the failure as pytest would print it, and printing takes longer than most tests.
        item.repr_failure = item._repr_failure_py = _print_nothing
        result = yield
        report = result.get_result()
        if report.failed and call.excinfo is not None and report.nodeid not in self.failures:
            self.failures[report.nodeid] = self._failure(report, call.excinfo)

    def pytest_runtest_logreport(self, report):
        """Keeps a test's outcome and adds up its seconds."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        known = self.outcomes.get(report.nodeid)
        if known is not None or report.when != "setup" or report.outcome != "passed":
            self.outcomes[report.nodeid] = worse_outcome(known, phase_outcome(report))

    def _failure(self, report, excinfo):
        """A failure as JSON: phase, type, message, and the innermost frames in the project."""
        frames = [
            [real_project_path(frame.f_code.co_filename, self.root), line, frame.f_code.co_name]
            for frame, line in traceback.walk_tb(excinfo.tb)
        ]
        return {
            "when": report.when,
            "type": excinfo.typename,
            "message": self._stable(excinfo.exconly())[:MESSAGE_LIMIT],
            "frames": [frame for frame in frames if frame[0] is not None][-FRAMES_LIMIT:],
        }

    def _stable(self, text):
        """The text without what differs from run to run and from place to place."""
        text = text.replace(self.temporary, "TMP").replace(self.root + os.sep, "")
        return ADDRESS.sub("0x...", text)


CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns")


class ObservedFunction:
    """Stands in for a function of a module and tells `observe` about each call: its result, and the file that called.

    An object and not a function, since a function in a class would become a method.
    """

    def __init__(self, module, name, observe):
        self.original = getattr(module, name)
        functools.update_wrapper(self, self.original)
        self.__module__ = module.__name__
        self.observe = observe

    def __call__(self, *arguments):
        """As the original."""
        result = self.original(*arguments)
        self.observe(result, sys._getframe(1).f_code.co_filename)
        return result

    def __reduce__(self):
        # Copied and pickled by its name, as the original.
        return self.__name__


class Randomness:
    """Watches the system's random numbers and clocks. Python's shared random numbers need nobody to watch them.

    A module that was imported before keeps the originals.
    """

    def __init__(self):
        self.numbers = 0
        self.clocks_read_in = set()

    def watch(self):
        """Takes the place of the functions."""
        os.urandom = random._urandom = ObservedFunction(os, "urandom", self.note_numbers)  # type: ignore[attr-defined]
        for name in CLOCKS:
            if hasattr(time, name):  # Python 3.6 has none in nanoseconds
                setattr(time, name, ObservedFunction(time, name, self.note_clock))

    def note_numbers(self, numbers, caller):
        """Keeps what the system's random numbers were."""
        self.numbers = hash((self.numbers, numbers))

    def note_clock(self, seconds, caller):
        """Keeps which file has read a clock."""
        self.clocks_read_in.add(caller)

    def state(self):
        """Where the random numbers are. What a seed does not repeat differs from run to run."""
        return hash((random.getstate(), self.numbers))


class LineRecorder:
    """A pytest plugin that records which lines of the project each test executes. It begins when it is made; what runs
    until the tests are collected, imports above all, counts for the test "".

    No line that a test executes is missing, but some may be there that it does not execute; except for the tests that
    are not followed to their end.

    Attributes:
        covered: {path: {line: [test, ...]}}.
        unfollowed: tests that start processes, from Python 3.8 on, and those that the follower gave up.
    """

    def __init__(self, root):
        self.covered = {}
        self.unfollowed = []
        self._starts_process = False
        if hasattr(sys, "addaudithook"):
            self._watch_processes()
        self._follower = make_follower(lambda file: real_project_path(file, root), lambda path: False, STALE_CALLS)
        self._follower.start()  # Without a limit of calls: no run of a test could stand in for an import.

    def _watch_processes(self):
        # A plain function: the trace function raises an event with each look at a frame's code, and calling a bound
        # method as a hook takes three times as long.
        def on_audit(event, arguments):
            if event in PROCESS_EVENTS:
                self._starts_process = True

        sys.addaudithook(on_audit)

    def pytest_collection_finish(self, session):
        """Ends what belongs to no test."""
        self._follower.stop()
        self._take("")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        """Follows one test, with its fixtures."""
        self._starts_process = False
        self._follower.start(MOST_CALLS)
        yield
        self._follower.stop()
        if self._starts_process or self._follower.gave_up:
            self.unfollowed.append(item.nodeid)
        self._take(item.nodeid)

    def _take(self, test):
        """Takes in what has run, for a test."""
        for path, line in self._follower.possible_lines():
            self.covered.setdefault(path, {}).setdefault(line, []).append(test)
        self._follower.clear()


def _print_nothing(*arguments, **options):
    return ""


def write_answer(writer, answer):
    """Writes an object as JSON."""
    left = json.dumps(answer).encode("utf-8")
    while left:
        left = left[os.write(writer, left) :]


def verdict_of(seen):
    """What a run shows: `killed` by a failing test, `survived`, or why it says nothing."""
    if "status" in seen:
        return seen["status"]
    if seen["collection_errors"] or not seen["outcomes"]:
        return "collection"
    return "killed" if failing(seen["outcomes"]) else "survived"


def failing(outcomes):
    """The tests that fail, in their order."""
    return [test for test, outcome in outcomes.items() if outcome in FAILED]


def outside_modules(root):
    """What is imported from outside of the project."""
    return sorted(name for name, path in module_files().items() if real_project_path(path, root) is None)
