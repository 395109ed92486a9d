"""Hooks into test runners that stop the debugger where a test of pytest, unittest or sympy fails. PYTEST_DONT_REWRITE

This module is itself the pytest plugin.
"""

import sys

from ..programs.project import after_import
from ..programs.runner_hooks import FAILED, announce_plugin, listen, withdraw_plugin

debugger = None
"""The debugger of this process, set by `install`."""


def install(chosen):
    """Makes test runners report to a debugger: those the program imports from now on, and those already imported.

    A debugger is any object with `engage()`, `begin_test(name)`, where None means that no test runs,
    `post_mortem(kind, value, trace, test)` and `on_breakpoint_call`, which takes the place of `breakpoint()`.
    """
    global debugger
    debugger = chosen
    after_import("_pytest.config", lambda _: announce_plugin(__name__))
    after_import("pdb", lambda _: take_breakpoint_calls())
    listen(_Stops())
    take_breakpoint_calls()


class _Stops:
    """A listener that stops where a test of unittest or sympy's runner fails."""

    def begin(self, test):
        """Says which test runs."""
        debugger.begin_test(test)

    def add(self, test, outcome, error=None, case=None):
        """Stops where a test failed."""
        if outcome in FAILED and error is not None:
            debugger.post_mortem(error[0], error[1], error[2], test)

    def end(self, test):
        """Says that no test runs."""
        debugger.begin_test(None)


def pytest_addoption(parser):
    """Called when pytest has loaded this module as a plugin: from now on pytest may run workspace code."""
    debugger.engage()
    withdraw_plugin()


def pytest_sessionstart(session):
    """Called when pytest has taken over `breakpoint()`; also keeps time limits from ending a stopped test."""
    take_breakpoint_calls()
    if session.config.pluginmanager.hasplugin("timeout"):
        session.config.hook.pytest_enter_pdb(config=session.config, pdb=None)


def pytest_runtest_logstart(nodeid, location):
    """Called when a test begins, before its set-up."""
    debugger.begin_test(nodeid)


def pytest_runtest_logfinish(nodeid, location):
    """Called when a test is over, including its tear-down."""
    debugger.begin_test(None)


def pytest_exception_interact(node, call, report):
    """Called when a test, or the collection of a file, has failed."""
    debugger.post_mortem(call.excinfo.type, call.excinfo.value, call.excinfo.tb, getattr(node, "nodeid", None))


def take_breakpoint_calls():
    """Makes `breakpoint()` and `pdb.set_trace()` stop here."""
    sys.breakpointhook = debugger.on_breakpoint_call
    pdb = sys.modules.get("pdb")
    if pdb is not None:
        vars(pdb)["set_trace"] = debugger.on_breakpoint_call
