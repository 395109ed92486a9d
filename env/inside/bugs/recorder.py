"""Pytest plugins that watch one run of a suite: outcomes and failures.

Standard library and pytest only, Python 3.6 and later.
"""

import json
import os
import re
import sys
import traceback

import pytest

from ..programs.project import real_project_path
from ..runs.outcomes import phase_outcome, worse_outcome
from ..runs.patches import loaded_files

# Also the end of one that pytest has shortened: `<object obje...7f4dcdf4d740>`.
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}|(?<=\.\.\.)[0-9a-fA-F]{6,}(?=>)")
MESSAGE_LIMIT = 2000
FRAMES_LIMIT = 30


class OutcomeRecorder:
    """A pytest plugin that keeps each test's outcome, and where and why it failed.

    At the end of the session it writes all that to `writer`, in one piece, and ends the process.
    """

    def __init__(self, root, temporary, writer, tracer=None, chance=None):
        self.root = root
        self.temporary = temporary
        self.writer = writer
        self.tracer = tracer
        self.outcomes = {}
        self.failures = {}
        self.seconds = {}
        self.chance = chance
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
        if self.tracer is not None:
            seen["covered"] = self.tracer.covered
            seen["unfollowed"] = self.tracer.unfollowed
            seen["modules"] = outside_modules(self.root)
        self.write(seen)

    def write(self, seen):
        """Writes it and ends the process."""
        answer = json.dumps(seen).encode("utf-8")
        while answer:
            answer = answer[os.write(self.writer, answer) :]
        os._exit(0)

    def pytest_collectreport(self, report):
        """Notes what could not be collected."""
        if report.failed:
            self.collection_errors.append(report.nodeid)

    def pytest_runtest_logstart(self, nodeid):
        """Notes where the random numbers are."""
        if self.chance is not None:
            self.random_before = self.chance.state()
            self.chance.clocks_read_in.clear()

    def pytest_runtest_logfinish(self, nodeid):
        """Keeps where a test has left the random numbers, if it has used them, and which files have read a clock."""
        if self.chance is None:
            return
        after = self.chance.state()
        if after != self.random_before:
            self.random_after[nodeid] = after
        paths = [real_project_path(file, self.root) for file in self.chance.clocks_read_in]
        if any(paths):
            self.clocks[nodeid] = [path for path in paths if path is not None]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Keeps a test's first failure."""
        # Nobody reads the failure as pytest would print it, and printing takes longer than most tests.
        item.repr_failure = item._repr_failure_py = nothing
        result = yield
        report = result.get_result()
        if report.failed and call.excinfo is not None and report.nodeid not in self.failures:
            self.failures[report.nodeid] = self.failure(report, call.excinfo)

    def pytest_runtest_logreport(self, report):
        """Keeps a test's outcome and adds up its seconds."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        known = self.outcomes.get(report.nodeid)
        if known is not None or report.when != "setup" or report.outcome != "passed":
            self.outcomes[report.nodeid] = worse_outcome(known, phase_outcome(report))

    def failure(self, report, excinfo):
        """A failure as JSON: phase, type, message, and the innermost frames in the project."""
        entries = traceback.StackSummary.extract(traceback.walk_tb(excinfo.tb), lookup_lines=False)
        frames = [self.frame(entry) for entry in entries]
        return {
            "when": report.when,
            "type": excinfo.typename,
            "message": self.clean(excinfo.exconly())[:MESSAGE_LIMIT],
            "frames": [frame for frame in frames if frame is not None][-FRAMES_LIMIT:],
        }

    def frame(self, entry):
        """[path, line, function] of a frame in the project, else None."""
        path = real_project_path(entry.filename, self.root)
        return None if path is None else [path, entry.lineno, entry.name]

    def clean(self, text):
        """The text without what differs from run to run and from place to place."""
        text = text.replace(self.temporary, "TMP").replace(self.root + os.sep, "")
        return ADDRESS.sub("0x...", text)


def nothing(*arguments, **options):
    """Stands in for the functions that print failures."""
    return ""


def verdict_of(seen):
    """What a run shows: `killed` by a failing test, `survived`, or why it says nothing."""
    if "status" in seen:
        return seen["status"]
    if seen["collection_errors"] or not seen["outcomes"]:
        return "collection"
    return "killed" if failing(seen["outcomes"]) else "survived"


def failing(outcomes):
    """The tests that fail, in their order."""
    return [test for test, outcome in outcomes.items() if outcome in ("failed", "error")]


def outside_modules(root):
    """What is imported from outside of the project."""
    files = [(name, getattr(module, "__file__", None)) for name, module in sys.modules.copy().items()]
    return sorted(name for name, path in files if isinstance(path, str) and real_project_path(path, root) is None)


def inside_modules(root):
    """The project's own files that are imported, without conftests."""
    return sorted(path for path in loaded_files(root) if os.path.basename(path) != "conftest.py")
