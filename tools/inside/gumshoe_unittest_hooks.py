"""Tells an observer when tests of unittest begin, fail and end. Standard library only, Python 3.6 to 3.14.

The observer has the methods that `gumshoe_pytest_hooks` names. What runs between tests, such as the set-up of a class,
is part of none.
"""

_FAILURES = ("addError", "addFailure", "addSubTest")


def observe(observer):
    """Has every `unittest.TestResult` tell the observer."""
    import unittest

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
    expected = result.addExpectedFailure

    def add(self, test, error):
        observer.pause(error[1])
        return expected(self, test, error)

    result.addExpectedFailure = add


def _failing(method, observer, state):
    def add(self, test, *arguments):
        error = arguments[-1]
        if error is not None:
            observer.pause(error[1])
            state["failed"] = True
        return method(self, test, *arguments)

    return add
