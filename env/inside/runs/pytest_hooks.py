"""Tells an observer when tests of pytest begin, run, fail and end, or forks before they do. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later.
"""

import sys

import pytest

from .observers import UNITTEST_REPORTS, tell_of_reports

_REPORTS = ("_saferepr", "_format_assertmsg", "_call_reprcompare", "_format_boolop", "_format_explanation")


class _PytestHooks:
    """A pytest plugin that tells an observer."""

    def __init__(self, observer):
        self.observer = observer
        self.failed = False
        self.is_running = False

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Around a whole test."""
        self.failed = False
        self.observer.begin(item.nodeid)
        try:
            yield
        finally:
            self.observer.pause(None)
            self.observer.end(self.failed)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        """Around a test's own code, when its set-up is done."""
        yield from self._run()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item, nextitem):
        """Around its tear-down."""
        yield from self._run()

    def _run(self):
        self.observer.run()
        self.is_running = True
        yield
        self.is_running = False

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """After each phase and each subtest, before anything looks at its result."""
        kept = getattr(item, "_excinfo", None)  # what unittest caught, as pytest keeps it until the report is made
        error = call.excinfo or (kept[0] if kept else None)
        self.observer.pause(error.value if error is not None else None)
        yield
        if self.is_running:
            self.observer.run()

    def pytest_runtest_logreport(self, report):
        """A phase of the test has its report."""
        if report.outcome == "failed":
            self.failed = True
        elif (report.outcome == "skipped" or hasattr(report, "wasxfail")) and not self.failed:
            self.failed = None

    def pytest_collection_finish(self):
        """All test modules have been imported, and with them unittest, if they need it."""
        tell_of_reports(sys.modules.get("unittest.case"), UNITTEST_REPORTS, self.observer)

    def pytest_sessionfinish(self):
        """All tests are over."""
        self.observer.finish()


def observe_pytest(config, observer):
    """Has a pytest run, whose tests run in this process (see `outcomes`), tell the observer."""
    config.pluginmanager.register(_PytestHooks(observer), "gumshoe_observer")
    tell_of_reports(sys.modules.get("_pytest.assertion.rewrite"), _REPORTS, observer)


plugin = None
"""What this module registers where pytest loads it as a plugin; set by the code that runs pytest in this process."""


def pytest_configure(config):
    """Registers the plugin."""
    if plugin is not None:
        config.pluginmanager.register(plugin, "gumshoe_plugin")


class InChild(BaseException):
    """Unwinds a fresh fork back into pytest, which then goes on in it."""


class Collected:
    """A pytest plugin that does something else where pytest would run the tests that it has collected.

    Importing a project and collecting its tests takes far longer than one test: here that is done once for many forks.

    Args:
        work: called with the session in place of the loop over its tests. In a fork that it starts, it raises InChild
            for the tests to be run.
    """

    def __init__(self, work):
        self.work = work

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        """Takes the place of the loop over the tests; in a fork, the loop follows."""
        try:
            self.work(session)
        except InChild:
            return None
        return True
