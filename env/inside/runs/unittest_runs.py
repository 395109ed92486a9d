"""Tells an observer of the tests that unittest or sympy's runner runs, or writes their outcomes as `outcomes` does.

    python __main__.py runs.unittest_runs -- PROGRAM argument...    with the file's name in GUMSHOE_OUTCOMES

Standard library only, Python 3.6 to 3.14. The observer has the methods listed in `pytest_hooks`. What runs between
tests, such as the set-up of a class, belongs to no test.
"""

import functools
import json
import os
import traceback

from ..programs import sympy_hooks
from ..programs.program import NullObserver, run_program
from ..programs.project import project_frames

_FAILURES = ("addError", "addFailure", "addSubTest")
UNITTEST_REPORTS = ("safe_repr", "_common_shorten_repr")
"""Functions that build the messages of failed assertions, as the module `unittest.case` names them."""


def observe(observer):
    """Has every `unittest.TestResult`, and sympy's runner, tell the observer."""
    import unittest.case

    tell_of_reports(unittest.case, UNITTEST_REPORTS, observer)
    result = unittest.TestResult
    state = {"failed": False}
    start_test, stop_test = result.startTest, result.stopTest

    def start(self, test):
        state["failed"] = False
        start_test(self, test)
        observer.begin(test.id())

    def stop(self, test):
        observer.pause(None)
        observer.end(state["failed"])
        stop_test(self, test)

    result.startTest, result.stopTest = start, stop
    for name in _FAILURES:
        setattr(result, name, _failing(getattr(result, name), observer, state))
    expected, skip = result.addExpectedFailure, result.addSkip

    def add_expected(self, test, error):
        observer.pause(error[1])
        _leave_out(state)
        return expected(self, test, error)

    def add_skip(self, test, reason):
        _leave_out(state)
        return skip(self, test, reason)

    result.addExpectedFailure, result.addSkip = add_expected, add_skip
    sympy_hooks.observe(observer)


def _leave_out(state):
    """The test neither passes nor fails, unless it has failed already."""
    state["failed"] = state["failed"] or None


def _failing(method, observer, state):
    def add(self, test, *arguments):
        error = arguments[-1]
        if error is not None:
            observer.pause(error[1])
            state["failed"] = True
        return method(self, test, *arguments)

    return add


def tell_of_reports(module, names, observer):
    """Makes a module's functions that build the messages of failed assertions tell the observer."""
    for name in names:
        function = getattr(module, name, None)
        if function is not None:
            setattr(module, name, _reporting(function, observer))


def _reporting(function, observer):
    @functools.wraps(function)
    def report(*arguments, **options):
        observer.enter_report()
        try:
            return function(*arguments, **options)
        finally:
            observer.leave_report()

    return report


_OUTCOMES = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "error",
    "addSkip": "skipped",
    "addExpectedFailure": "xfailed",
    "addUnexpectedSuccess": "xpassed",
}
_first = {}


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
    if outcome in ("failed", "error"):  # The first failure counts: after one in a subtest, the test goes on.
        message, frames = _first.setdefault(test, (message, frames))
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
    return run_program(arguments[arguments.index("--") + 1 :], NullObserver, as_given=True)
