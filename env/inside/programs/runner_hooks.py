"""Hooks into test runners: who listens to them, and how unittest and sympy's own runner (`bin/test`) are made to tell.

A runner is wrapped once the program has imported it, so nothing is imported that the program would not import itself.
For pytest there are plugins: `debugger.hooks` and `runs.outcomes`.
"""

import functools
import os

from .project import after_import, project_path, trace_below

PASSED = ("passed", "xfailed")
FAILED = ("failed", "error")
"""Outcomes of tests that count as failures."""
_LEFT_OUT = ("skipped", "xfailed", "xpassed")
_UNITTEST = {
    "addSuccess": "passed",
    "addFailure": "failed",
    "addError": "error",
    "addSkip": "skipped",
    "addExpectedFailure": "xfailed",
    "addUnexpectedSuccess": "xpassed",
}
_SYMPY = {
    "test_pass": "passed",
    "test_fail": "failed",
    "test_exception": "error",
    "test_skip": "skipped",
    "test_xfail": "xfailed",
    "test_xpass": "xpassed",
}
_SYMPY_MODULES = ("sympy.testing.runtests", "sympy.utilities.runtests")
UNITTEST_REPORTS = ("safe_repr", "_common_shorten_repr")
"""Functions that build the messages of failed assertions, by their names in the module `unittest.case`."""


class Observer:
    """A listener (see `listen`) that watches tests while they run. What runs between tests, such as the set-up of a
    class, belongs to no test.

    Subclasses have `start_test` and `end_test` in the place of `begin` and `end`, and learn more: when the test's code
    pauses, and whether the test has failed.
    """

    _failed = False

    def start_test(self, test):
        """A test begins; its set-up follows."""

    def run(self):
        """The test's own code follows, or its tear-down. Only pytest tells."""

    def pause(self, error):
        """A phase is over; `error` is its exception, or None. What follows is not part of the test."""

    def report(self):
        """An assertion has failed: its message is about to be built."""

    def end_test(self, failed):
        """The test is over; None means that it was skipped or was expected to fail."""

    def finish(self):
        """All tests are over. Only pytest tells."""

    def begin(self, test):
        """A test begins."""
        self._failed = False
        self.start_test(test)

    def add(self, test, outcome, error=None, case=None):
        """A test has an outcome, which may be one of several."""
        if error is not None:
            self.pause(error[1])
        if outcome in FAILED:
            self._failed = True
        elif outcome in _LEFT_OUT:
            self._failed = self._failed or None

    def end(self, test):
        """A test is over."""
        self.pause(None)
        self.end_test(self._failed)


def observe(observer):
    """Has unittest and sympy's runner tell an observer."""
    listen(observer)
    after_import("unittest.case", lambda module: tell_of_reports(module, UNITTEST_REPORTS, observer))


_run_tests = set()


def has_run_tests():
    """Whether a listener was told of a test that unittest ran; those of sympy's runner are not noted."""
    return bool(_run_tests)


def listen(listener):
    """Has unittest and sympy's runner tell a listener of their tests, by its methods:

    - `begin(test)`: a test begins; its set-up follows. Its name is unittest's id, or `path::function` with sympy.
    - `add(test, outcome, error=None, case=None)`: it has an outcome; each failing subtest adds one. What fails outside
      of tests, such as the set-up of a class or the import of a file, has one, but neither begins nor ends.
      `error` is `sys.exc_info()` of a failure, expected or not; `case` unittest's object for a test, not for a subtest.
    - `end(test)`: it is over, with its tear-down.
    """
    after_import("unittest.result", lambda module: _wrap_unittest(module.TestResult, listener))
    for name in _SYMPY_MODULES:
        after_import(name, lambda module: _wrap_sympy(getattr(module, "PyTestReporter", None), listener))


def tell_of_reports(module, names, observer):
    """Makes a module's functions that build the messages of failed assertions tell an observer first."""
    for name in names:
        _tell(module, name, lambda *_: observer.report())


# - wrapping


def _wrap_unittest(result, listener):
    """Wraps methods of `unittest.TestResult`."""

    def add(outcome, _, case, detail=None):
        error = detail if isinstance(detail, tuple) else None  # A skipped test has a reason there.
        listener.add(_name_of(case), outcome, error, case)

    def add_subtest(_, case, subtest, error):
        if error is not None:
            listener.add(_name_of(case), "failed", error)

    _tell(result, "startTest", lambda _, case: listener.begin(_name_of(case)), after=True)
    _tell(result, "stopTest", lambda _, case: listener.end(_name_of(case)))
    _tell(result, "addSubTest", add_subtest)
    for method, outcome in _UNITTEST.items():
        _tell(result, method, functools.partial(add, outcome))


def _wrap_sympy(reporter, listener):
    """Wraps methods of sympy's reporter, if there is one. Its code is part of the project, but not of the test."""
    if reporter is None:
        return
    running, files = [], []
    runner = reporter.test_fail.__code__.co_filename

    def enter_file(_, filename, *rest):
        files[:] = [_path_of(filename)]

    def begin(_, function):
        path = files[0] if files else _path_of(function.__code__.co_filename)
        running[:] = ["{}::{}".format(path, function.__name__)]
        listener.begin(running[0])

    def add(outcome, _, *details):
        error = details[0] if details and isinstance(details[0], tuple) else None
        if error is not None:
            error = (error[0], error[1], trace_below(error[2], runner) or error[2])
        if running:
            test = running.pop()
            listener.add(test, outcome, error)
            listener.end(test)

    def fail_to_import(_, filename, error, *rest):
        listener.add(_path_of(filename), "error", error)

    _tell(reporter, "entering_filename", enter_file)
    _tell(reporter, "entering_test", begin, after=True)
    _tell(reporter, "import_error", fail_to_import)
    for method, outcome in _SYMPY.items():
        _tell(reporter, method, functools.partial(add, outcome))


def _tell(owner, name, function, after=False):
    """Makes a method of a class, or a function of a module, call another function with its arguments: first, unless
    `after` is true.
    """
    original = getattr(owner, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def wrapped(*arguments, **options):
        if not after:
            function(*arguments)
        value = original(*arguments, **options)
        if after:
            function(*arguments)
        return value

    setattr(owner, name, wrapped)


def _name_of(case):
    try:
        name = str(case.id())
    except Exception:  # a test's own code may raise anything
        name = type(case).__name__
    _run_tests.add(name)
    return name


def _path_of(filename):
    """A file's path in the project."""
    return project_path(str(filename), os.getcwd()) or str(filename)


# - a plugin of pytest


_plugins_before = None


def announce_plugin(name):
    """Has pytest load a module as a plugin when it starts in this process."""
    global _plugins_before
    if _plugins_before is None:
        _plugins_before = os.environ.get("PYTEST_PLUGINS", "")
    os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, (name, _plugins_before)))


def withdraw_plugin():
    """Puts the variable back once the plugin is loaded: the children of the program must not look for the plugin."""
    if _plugins_before:
        os.environ["PYTEST_PLUGINS"] = _plugins_before
    else:
        os.environ.pop("PYTEST_PLUGINS", None)
