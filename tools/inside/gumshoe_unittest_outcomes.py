"""Writes the outcome of each test that unittest or sympy's runner runs, as `gumshoe_outcomes` does for pytest.

Standard library only, Python 3.6 to 3.14.
"""

import json
import traceback

import gumshoe_sympy_hooks

_OUTCOMES = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "error",
    "addSkip": "skipped",
    "addExpectedFailure": "xfailed",
    "addUnexpectedSuccess": "xpassed",
}


def install(path):
    """Has these runners write one JSON line per test, `{"id", "outcome", "message"}`, to a file."""
    import unittest

    def end(test, outcome, error):
        _write(path, test, outcome, error)

    def broken(test, error):
        _write(path, test, "error", error)

    gumshoe_sympy_hooks.follow(lambda test: None, end, broken)
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
        _write(path, test.id(), outcome, arguments[0] if arguments else None)
        return method(self, test, *arguments)

    setattr(result, name, add)


def _write(path, test, outcome, detail):
    message = ""
    if isinstance(detail, tuple):
        message = "".join(traceback.format_exception_only(detail[0], detail[1])).strip()[:700]
    line = json.dumps({"id": test, "outcome": outcome, "message": message}, ensure_ascii=False)
    with open(path, "ab") as file:
        file.write(line.encode("utf-8", "replace") + b"\n")
