"""Hooks into test runners that stop the debugger where a test of pytest, unittest or sympy fails. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14. This module is itself the pytest plugin.
"""

import importlib.machinery
import os
import sys

from ..programs import sympy_hooks

_PLUGIN = __name__
_PLUGINS_BEFORE = os.environ.get("PYTEST_PLUGINS", "")

debugger = None
"""The debugger of this process, set by `install`."""


def install(chosen):
    """Makes test runners report to a debugger: those the program imports from now on, and those already imported."""
    global debugger
    debugger = chosen
    sys.meta_path.insert(0, ImportWatch())
    if "_pytest.config" in sys.modules:
        announce()
    if "unittest.result" in sys.modules:
        _watch_results(sys.modules["unittest.result"].TestResult)
    sympy_hooks.follow(debugger.begin_test, _end_test, _stop_at)
    take_breakpoint_calls()


def announce():
    """Has pytest load this module as a plugin when it starts."""
    os.environ["PYTEST_PLUGINS"] = ",".join(part for part in (_PLUGIN, _PLUGINS_BEFORE) if part)


def pytest_addoption(parser):
    """Called when pytest has loaded this module as a plugin: from now on pytest may run workspace code.

    Its children must not look for the plugin.
    """
    if debugger is not None:
        debugger.engage()
    os.environ.pop("PYTEST_PLUGINS", None)
    if _PLUGINS_BEFORE:
        os.environ["PYTEST_PLUGINS"] = _PLUGINS_BEFORE


def pytest_sessionstart(session):
    """Called when pytest has taken over `breakpoint()`; also keeps time limits from ending a stopped test."""
    take_breakpoint_calls()
    if session.config.pluginmanager.hasplugin("timeout"):
        session.config.hook.pytest_enter_pdb(config=session.config, pdb=None)


def pytest_runtest_logstart(nodeid, location):
    """Called when a test begins, before its set-up."""
    if debugger is not None:
        debugger.begin_test(nodeid)


def pytest_runtest_logfinish(nodeid, location):
    """Called when a test is over, including its tear-down."""
    if debugger is not None:
        debugger.begin_test(None)


def pytest_exception_interact(node, call, report):
    """Called when a test, or the collection of a file, has failed."""
    if debugger is not None:
        debugger.post_mortem(call.excinfo.type, call.excinfo.value, call.excinfo.tb, getattr(node, "nodeid", None))


def take_breakpoint_calls():
    """Makes `breakpoint()` and `pdb.set_trace()` stop here."""
    if debugger is None:
        return
    sys.breakpointhook = debugger.on_breakpoint_call
    pdb = sys.modules.get("pdb")
    if pdb is not None:
        vars(pdb)["set_trace"] = debugger.on_breakpoint_call


class ImportWatch:
    """Hooks into pytest and unittest when, and only if, the program imports them."""

    def find_spec(self, name, path=None, target=None):
        """Finds nothing itself; wraps the loader of `unittest.result` and `pdb`."""
        if name == "_pytest.config":
            announce()
        if name not in ("unittest.result", "pdb"):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                if name == "pdb":
                    take_breakpoint_calls()
                else:
                    _watch_results(module.TestResult)

            spec.loader.exec_module = exec_module
        return spec


def _watch_results(result):
    """Stops at failures that unittest reports, and follows which test runs."""
    result.startTest = _told(result.startTest, _test_name)
    result.stopTest = _told(result.stopTest, lambda test: None)
    for name in ("addError", "addFailure", "addSubTest"):
        setattr(result, name, _watched(getattr(result, name)))


def _told(method, name):
    def begin(self, test):
        if debugger is not None:
            debugger.begin_test(name(test))
        return method(self, test)

    return begin


def _watched(method):
    def add(self, test, *arguments):
        error = arguments[-1]
        if debugger is not None and error is not None:
            debugger.post_mortem(error[0], error[1], error[2], _test_name(test))
        return method(self, test, *arguments)

    return add


def _end_test(test, outcome, error):
    """A test of sympy's runner is over."""
    if outcome in ("failed", "error") and error is not None:
        _stop_at(test, error)
    debugger.begin_test(None)


def _stop_at(test, error):
    debugger.post_mortem(error[0], error[1], error[2], test)


def _test_name(test):
    try:
        return str(test.id())
    except Exception:  # a test's own code may raise anything
        return type(test).__name__
