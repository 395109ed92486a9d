"""Reports the outcomes of unittest's and sympy's runners for a verdict.

Standard library only, Python 3.6 to 3.14. Django's runner is unittest's with another way of finding tests. A test is
named `module.Class.method`; its title is the first line of its docstring, which is how published lists name it.
"""

import functools
import os
import sys
import traceback
import unittest

import gumshoe_sympy_hooks
from gumshoe_integrity import Definitions, RunnerState
from gumshoe_project import project_path

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
    watch = RunnerState(("unittest",))
    watch.begin(changed)


def report_sympy(send):
    """Has the reporter of sympy's runner report, once its module is imported."""

    def end(test, outcome, error):
        send("result", test, outcome, "" if error is None else describe(error), "")

    gumshoe_sympy_hooks.follow(
        begin=lambda test: send("start", test),
        end=end,
        broken=lambda path, error: send("broken", path, describe(error)),
    )


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
