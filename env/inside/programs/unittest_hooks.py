"""Tells an observer when tests of unittest begin, fail and end. Standard library only, Python 3.6 to 3.14.

The observer has the methods listed in `pytest_hooks`. What runs between tests, such as the set-up of a class,
belongs to no test.
"""

import functools

_FAILURES = ("addError", "addFailure", "addSubTest")
UNITTEST_REPORTS = ("safe_repr", "_common_shorten_repr")
"""Functions that build the messages of failed assertions, as the module `unittest.case` names them."""


def observe(observer):
    """Has every `unittest.TestResult` tell the observer."""
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
