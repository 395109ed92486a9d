"""Writes the outcomes of the tests that unittest or sympy's runner runs, as `outcomes` does with pytest.

python __main__.py runs.unittest_runs -- PROGRAM argument...    with the file's name in GUMSHOE_OUTCOMES
"""

import os

from ..programs.channel import append_lines
from ..programs.program import run_program
from ..programs.project import after_import, project_frames
from ..programs.runner_hooks import FAILED, listen
from ..values import exception_text


class _Writer:
    """A listener that appends a line for each outcome to a file, `{"id", "outcome", "message", "title", "frames"}`."""

    def __init__(self, path):
        self._path = path
        self._root = os.getcwd()
        self._failures = {}
        self._running = set()

    def begin(self, test):
        """Writes that the process has ended in this test, which is true as long as nothing else is written."""
        self._running.add(test)
        append_lines(self._path, [{"id": test, "outcome": "crashed"}])

    def end(self, test):
        """Writes the outcome of a test without any: parts of it were skipped."""
        if test in self._running:
            self.add(test, "skipped")

    def add(self, test, outcome, error=None, case=None):
        """Writes an outcome."""
        message, frames = "", []
        if error is not None:
            message = exception_text(error[0], error[1]).strip()[:700]
            frames = project_frames(error[2], self._root)
        if outcome in FAILED:  # The first failure counts: after one in a subtest, the test goes on.
            message, frames = self._failures.setdefault(test, (message, frames))
        title = getattr(case, "shortDescription", str)() or ""
        self._running.discard(test)
        facts = {"id": test, "outcome": outcome, "message": message, "title": title, "frames": frames}
        append_lines(self._path, [facts])


def write_outcomes(path):
    """Has the outcomes of tests that run in this process from now on written to a file."""
    listen(_Writer(path))


def _never_stop(module):
    module.TestResult.failfast = property(lambda self: False, lambda self, value: None)


def main(arguments):
    """Runs a program. Returns its exit code."""
    write_outcomes(os.environ["GUMSHOE_OUTCOMES"])
    # Runs are compared with each other: one that ends at its first failure does not show what a change breaks.
    after_import("unittest.result", _never_stop)
    return run_program(arguments[arguments.index("--") + 1 :], as_given=True)
