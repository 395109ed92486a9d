"""Writes the outcome of each test that unittest or sympy's runner runs, as `outcomes` does for pytest.

    python __main__.py runs.unittest_outcomes -- PROGRAM argument...    with the file's name in GUMSHOE_OUTCOMES

Standard library only, Python 3.6 to 3.14.
"""

import json
import os
import traceback

from ..programs import sympy_hooks
from ..programs.program import Nobody, run_program
from ..programs.project import project_frames

_OUTCOMES = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "error",
    "addSkip": "skipped",
    "addExpectedFailure": "xfailed",
    "addUnexpectedSuccess": "xpassed",
}


def install(path):
    """Has these runners write one JSON line per test, `{"id", "outcome", "message", "title", "frames"}`, to a file."""
    import unittest

    def end(test, outcome, error):
        _write(path, test, outcome, error)

    def broken(test, error):
        _write(path, test, "error", error)

    sympy_hooks.follow(lambda test: None, end, broken)
    for name, outcome in _OUTCOMES.items():
        _wrap(unittest.TestResult, name, outcome, path)
    add_sub_test = unittest.TestResult.addSubTest

    def add(self, test, subtest, err):
        if err is not None:
            _write(path, test.id(), "failed", err)
        return add_sub_test(self, test, subtest, err)

    unittest.TestResult.addSubTest = add


def _wrap(result, name, outcome, path):
    method = getattr(result, name)

    def add(self, test, *arguments):
        title = getattr(test, "shortDescription", str)() or ""
        _write(path, test.id(), outcome, arguments[0] if arguments else None, title)
        return method(self, test, *arguments)

    setattr(result, name, add)


def _write(path, test, outcome, detail, title=""):
    message, frames = "", []
    if isinstance(detail, tuple):
        message = "".join(traceback.format_exception_only(detail[0], detail[1])).strip()[:700]
        frames = project_frames(detail[2], os.getcwd())
    facts = {"id": test, "outcome": outcome, "message": message, "title": title, "frames": frames}
    line = json.dumps(facts, ensure_ascii=False)
    with open(path, "ab") as file:
        file.write(line.encode("utf-8", "replace") + b"\n")


def run_to_the_end():
    """Keeps unittest from stopping at the first failure."""
    import unittest

    unittest.TestResult.failfast = property(lambda self: False, lambda self, value: None)


def main(arguments):
    """Runs a program. Returns its exit code."""
    install(os.environ["GUMSHOE_OUTCOMES"])
    run_to_the_end()
    return run_program(arguments[arguments.index("--") + 1 :], Nobody, as_given=True)
