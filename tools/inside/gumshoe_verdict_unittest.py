"""Reports the outcomes of unittest's and sympy's runners for a verdict.

Standard library only, Python 3.6 to 3.14. Django's runner is unittest's with another way of finding tests. A test is
named `module.Class.method`; its title is the first line of its docstring, by which published lists name it.
"""

import functools
import importlib.abc
import importlib.machinery
import os
import sys
import traceback
import unittest

from gumshoe_integrity import Definitions, Watch
from gumshoe_project import project_path

SYMPY = ("sympy.testing.runtests", "sympy.utilities.runtests")
FRAMES, MESSAGE_LIMIT = 4, 700
ASIDE = "the code under test left the test: "


def report_unittest(send, changed):
    """Has every `unittest.TestResult` of this process report."""
    running = {}
    definitions = Definitions(changed)

    def check_code(test):
        kind, name = type(test), getattr(test, "_testMethodName", None)
        module, function = sys.modules.get(kind.__module__), getattr(kind, name or "", None)
        if hasattr(function, "__code__"):
            definitions.load(module)
            if not definitions.holds(function, name, module):
                send("tampered", "the code of {} was replaced".format(test.id()))

    def start(result, test, *rest):
        running[id(test)] = ("", "the test ended without an outcome")
        send("start", test.id())
        check_code(test)

    def stop(result, test, *rest):
        check_code(test)
        outcome, message = running.pop(id(test), ("", "the test was not begun"))
        send("result", test.id(), outcome or "error", message, test.shortDescription() or "")
        for text in watch.differences():
            send("tampered", text)

    def note(outcome, result, test, *rest):
        error = rest[0] if rest and isinstance(rest[0], tuple) else None
        message = "" if error is None else describe(error)
        if id(test) not in running:
            if outcome in ("error", "failed"):
                send("broken", test.id(), message)
            return
        if outcome == "skipped" and through_changed(sys.exc_info()[2], changed):
            outcome, message = "error", ASIDE + "skipped"
        if running[id(test)][0] not in ("error", "failed"):
            running[id(test)] = (outcome, message)

    def subtest(result, test, part, error, *rest):
        if error is not None and id(test) in running:
            running[id(test)] = ("failed", describe(error))

    def after(name, do):
        original = getattr(unittest.TestResult, name)

        @functools.wraps(original)
        def method(self, *arguments, **options):
            value = original(self, *arguments, **options)
            do(self, *arguments)
            return value

        setattr(unittest.TestResult, name, method)

    after("startTest", start)
    after("stopTest", stop)
    after("addSubTest", subtest)
    outcomes = {"addSuccess": "passed", "addError": "error", "addFailure": "failed", "addSkip": "skipped"}
    outcomes.update(addExpectedFailure="xfailed", addUnexpectedSuccess="xpassed")
    for name, outcome in outcomes.items():
        after(name, functools.partial(note, outcome))
    watch = Watch(("unittest",))
    watch.begin(changed)


def report_sympy(send, changed):
    """Has the reporter of sympy's runner report, once its module is imported."""
    sys.meta_path.insert(0, WhenImported(SYMPY, lambda module: watch_reporter(module, send)))


def watch_reporter(module, send):
    """Wraps the methods of sympy's `PyTestReporter`."""
    kind = getattr(module, "PyTestReporter", None)
    if kind is None:
        return
    running = {}

    def entering(self, test):
        place = project_path(test.__code__.co_filename, os.getcwd()) or test.__code__.co_filename
        running["id"] = "{}::{}".format(place, test.__name__)
        send("start", running["id"])

    def ending(outcome, self, *details):
        if "id" in running:
            error = details[0] if details and isinstance(details[0], tuple) else None
            send("result", running.pop("id"), outcome, "" if error is None else describe(error), "")

    def before(name, do):
        original = getattr(kind, name, None)
        if original is not None:

            @functools.wraps(original)
            def method(self, *arguments, **options):
                do(self, *arguments)
                return original(self, *arguments, **options)

            setattr(kind, name, method)

    def broken(self, filename, error, *rest):
        send("broken", project_path(str(filename), os.getcwd()) or str(filename), describe(error))

    before("entering_test", entering)
    before("import_error", broken)
    outcomes = {"test_pass": "passed", "test_fail": "failed", "test_exception": "error", "test_skip": "skipped"}
    outcomes.update(test_xfail="xfailed", test_xpass="xpassed")
    for name, outcome in outcomes.items():
        before(name, functools.partial(ending, outcome))


class WhenImported(importlib.abc.MetaPathFinder):
    """Calls `then(module)` right after one of these modules has been imported."""

    def __init__(self, names, then):
        self._names = names
        self._then = then

    def find_spec(self, name, path=None, target=None):
        if name not in self._names:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                self._then(module)

            spec.loader.exec_module = exec_module
        return spec


def through_changed(trace, changed):
    """Whether an exception came through a file that the patch has changed."""
    while trace is not None:
        if changed(trace.tb_frame.f_code.co_filename):
            return True
        trace = trace.tb_next
    return False


def describe(error):
    """The exception, and where in the project it was."""
    kind, value, trace = error
    try:
        text = "".join(traceback.format_exception_only(kind, value)).strip()
    except Exception:  # The exception's own code may raise anything.
        text = str(kind)
    root = os.getcwd()
    frames = [(project_path(entry.filename, root), entry) for entry in traceback.extract_tb(trace)]
    shown = ["{}:{} in {}".format(path, entry.lineno, entry.name) for path, entry in frames if path is not None]
    return "\n".join([text, *shown[-FRAMES:]])[:MESSAGE_LIMIT]
