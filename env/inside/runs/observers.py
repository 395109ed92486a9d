"""What watches a test run is an observer: it is told when tests begin, run, fail and end.

Standard library only, Python 3.6 to 3.14. Here unittest and sympy's runner tell it; `pytest_hooks` has pytest do so.
"""

import functools

from ..programs.runner_hooks import Listener, after_import, counts_as, listen

UNITTEST_REPORTS = ("safe_repr", "_common_shorten_repr")
"""Functions that build the messages of failed assertions, by their names in the module `unittest.case`."""


class Observer:
    """Is told of tests as they run. What runs between tests, such as the set-up of a class, belongs to no test."""

    def begin(self, test):
        """A test begins; its set-up follows."""

    def run(self):
        """The test's own code follows, or its tear-down."""

    def pause(self, error):
        """A phase is over; `error` is its exception, or None. What follows is not part of the test."""

    def end(self, failed):
        """The test is over; None means that it was skipped, or was expected to fail."""

    def finish(self):
        """All tests are over."""

    def report(self):
        """An assertion has failed: its message is about to be built."""


class _Passing(Listener):
    """Passes on to an observer what unittest and sympy's runner tell a listener."""

    def __init__(self, observer):
        self._observer = observer
        self._failed = False

    def begin(self, test):
        """A test begins."""
        self._failed = False
        self._observer.begin(test)

    def add(self, test, outcome, error=None, case=None):
        """A test has an outcome."""
        if error is not None:
            self._observer.pause(error[1])
        self._failed = counts_as(outcome, self._failed)

    def end(self, test):
        """A test is over."""
        self._observer.pause(None)
        self._observer.end(self._failed)


def observe(observer):
    """Has unittest and sympy's runner tell the observer."""
    listen(_Passing(observer))
    after_import("unittest.case", lambda module: tell_of_reports(module, UNITTEST_REPORTS, observer))


def tell_of_reports(module, names, observer):
    """Makes a module's functions that build the messages of failed assertions tell the observer."""
    for name in names:
        function = getattr(module, name, None)
        if function is not None:
            setattr(module, name, _reporting(function, observer))


def _reporting(function, observer):
    @functools.wraps(function)
    def report(*arguments, **options):
        observer.report()
        return function(*arguments, **options)

    return report
