"""Tells when tests of sympy's own runner (`bin/test`) begin and end. Standard library only, Python 3.6 to 3.14.

The runner is part of the project that it tests, so nothing is imported here: its reporter is wrapped when the program
imports it. A test is named `path::function`, as in the runner's output.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import sys

from .project import project_path

_RUNNERS = ("sympy.testing.runtests", "sympy.utilities.runtests")
_OUTCOMES = {
    "test_pass": "passed",
    "test_fail": "failed",
    "test_exception": "error",
    "test_skip": "skipped",
    "test_xfail": "xfailed",
    "test_xpass": "xpassed",
}
_FAILURES = ("failed", "error")
_NEITHER = ("skipped", "xfailed")

_followers = []
"""Functions that wrap the runner's module, in the order in which they are told."""


def follow(begin, end, broken):
    """Has the runner report its tests, once its module is imported.

    Args:
        begin: called with the name of a test right before its code runs.
        end: called with name, outcome and `sys.exc_info()`, or None, right after.
        broken: called with the path of a file that cannot be loaded, and `sys.exc_info()`.
    """
    if not _followers:
        sys.meta_path.insert(0, _ImportWatch())
    _followers.append(lambda module: _wrap(module, begin, end, broken))


def observe(observer):
    """Has the runner tell an observer, whose methods are listed in `pytest_hooks`."""

    def end(test, outcome, error):
        observer.pause(None if error is None else error[1])
        observer.end(None if outcome in _NEITHER else outcome in _FAILURES)

    def broken(path, error):
        pass  # No test has begun.

    follow(observer.begin, end, broken)


def _wrap(module, begin, end, broken):
    """Wraps the methods of the runner's `PyTestReporter`."""
    kind = getattr(module, "PyTestReporter", None)
    if kind is None:
        return
    running = []
    files = []

    def enter_file(self, filename, *rest):
        files[:] = [_shown(filename)]

    def enter(self, test):
        path = files[0] if files else _shown(test.__code__.co_filename)
        running[:] = ["{}::{}".format(path, test.__name__)]
        begin(running[0])

    def leave(outcome, self, *details):
        error = details[0] if details and isinstance(details[0], tuple) else None
        if running:
            end(running.pop(), outcome, error)

    def fail_to_import(self, filename, error, *rest):
        broken(_shown(filename), error)

    # The reporter's own code is part of the project, but not of the test.
    _replace(kind, "entering_filename", lambda method: _first(enter_file, method))
    _replace(kind, "entering_test", lambda method: _then(method, enter))
    _replace(kind, "import_error", lambda method: _first(fail_to_import, method))
    for name, outcome in _OUTCOMES.items():
        _replace(kind, name, lambda method, outcome=outcome: _first(functools.partial(leave, outcome), method))


def _replace(kind, name, change):
    method = getattr(kind, name, None)
    if method is not None:
        setattr(kind, name, change(method))


def _first(do, method):
    """A method that does something else first."""

    @functools.wraps(method)
    def both(*arguments, **options):
        do(*arguments)
        return method(*arguments, **options)

    return both


def _then(method, do):
    """A method that does something else afterward."""

    @functools.wraps(method)
    def both(*arguments, **options):
        value = method(*arguments, **options)
        do(*arguments)
        return value

    return both


def _shown(filename):
    """A file's name within the project."""
    return project_path(str(filename), os.getcwd()) or str(filename)


class _ImportWatch(importlib.abc.MetaPathFinder):
    """Wraps the runner right after its module has been imported."""

    def find_spec(self, name, path=None, target=None):
        """Finds what the usual finder does, and wraps the loader."""
        if name not in _RUNNERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                for wrap in _followers:
                    wrap(module)

            spec.loader.exec_module = exec_module
        return spec
