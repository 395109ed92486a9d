"""The pytest plugin that reports outcomes for a verdict. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later.
"""

import importlib
import os
import time

import pytest
from _pytest.assertion import rewrite
from gumshoe_integrity import Definitions, RunnerState
from gumshoe_originals import Originals, compile_ahead
from gumshoe_outcomes import Outcomes, plain_message

RUNNER = ("_pytest", "pytest", "pluggy", "unittest", "gumshoe_outcomes", "gumshoe_verdict_pytest")
# The runner is checked again after a test only once this many times the cost of a check has passed.
CHECK_EVERY = 20
REPLACED = "the code of {} was replaced"
ELSEWHERE = "the tests of {} were loaded from {}"
ASIDE = "the code under test left the test: "


def load(tests=()):
    """Loads pytest's own plugins and returns their RunnerState and what is known of test files, for the Reporter.

    Args:
        tests: paths of test files to get ready, relative to the current folder.
    """
    import _pytest.config

    for name in getattr(_pytest.config, "default_plugins", ()):
        try:
            importlib.import_module("_pytest.{}".format(name))
        except ImportError:  # Pytest reports this itself if it needs the module.
            continue
    return RunnerState(RUNNER), compile_ahead(os.getcwd(), tests)


class Reporter(Outcomes):
    """Reports the start and the outcome of every test, and what tampers with the runner.

    A test passes if pytest says so, the body of the test has returned to this plugin, and the runner is unchanged.

    Args:
        send: sends one report.
        changed: whether the patch changed the file of this name.
        loaded: the RunnerState, which begins with the session, and what is known of test files; see `load`.
        deciding: paths of the files with the tests that decide.
        ends: whether the end of the session is the last thing that can be reported.
    """

    def __init__(self, send, changed, loaded, deciding, ends=False):
        super().__init__("", os.getcwd())
        self._send = send
        self._changed = changed
        self._ends = ends
        self._returned = set()
        self._running = None
        self._bodies = {}
        self._definitions = Definitions(changed)
        self._watch, ahead = loaded
        self._cost = self._checked = 0.0
        self._reported = set()
        self._config = None
        self._remote = False
        self._modules = {}
        # True for pytest's own repository, whose tests run and change the very pytest that runs them.
        self._own = os.path.realpath(pytest.__file__).startswith(os.path.realpath(self.root) + os.sep)
        if not self._own:
            Originals(self.root, deciding, ahead).hold()

    def pytest_configure(self, config):
        """Begins to watch pytest for tampering."""
        self._config = config
        self._remote = config.pluginmanager.hasplugin("dsession")
        if self._own:
            self._watch = None
        else:
            rewrite.exec = self._execute
            self._begin_watch()

    def _begin_watch(self):
        """Records the runner's current state; anything that intruded before is reported."""
        began = time.monotonic()
        self._watch.begin(self._changed)
        for text in self._watch.intruders(self._config.hook):
            self._tampered(text)
        self._checked = time.monotonic()
        self._cost = self._checked - began

    def pytest_collection_finish(self, session):
        """Notes the code of every test."""
        for item in session.items:
            self._check_file(item)
            function = getattr(item, "function", None)
            self._bodies[item.nodeid] = body = _body(function)
            name = getattr(item, "originalname", None) or item.name
            if body[0] and not self._definitions.holds(function, name, getattr(item, "module", None)):
                self._tampered(REPLACED.format(item.nodeid))

    def _execute(self, code, namespace):
        """Replaces the built-in `exec` where pytest executes test modules."""
        __tracebackhide__ = True
        self._definitions.note(code)
        self._modules[id(namespace)] = namespace, code.co_filename
        exec(code, namespace)  # noqa: S102 - as pytest does

    def _check_file(self, item):
        """Checks that a test's module is that of the file in which the test was found."""
        module = getattr(item, "module", None)
        _, file = self._modules.get(id(getattr(module, "__dict__", None)), (None, None))
        found = str(getattr(item, "path", None) or getattr(item, "fspath", ""))
        if file is not None and found.endswith(".py") and os.path.realpath(file) != os.path.realpath(found):
            self._tampered(ELSEWHERE.format(found, file))

    def pytest_collectreport(self, report):
        """A file that could not be collected."""
        if report.failed:
            message = self._messages.pop(report.nodeid, "") or plain_message(report)
            self._send("broken", report.nodeid or "collection", message)

    def pytest_runtest_logstart(self, nodeid):
        """Reports that a test begins."""
        self._send("start", nodeid)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Has every test return to this plugin."""
        run = item.runtest
        returned = self._returned
        function = self._check_function(item)

        def runtest():
            self._check_function(item)  # Fixtures run code of the workspace, too.
            self._running = item.nodeid
            try:
                value = run()
            finally:
                self._running = None
            returned.add(item.nodeid)
            return value

        item.runtest = runtest
        yield
        item.__dict__.pop("runtest", None)
        # A plugin may have put another function into the item in the meantime, for example to run an asynchronous test.
        self._check_function(item, function)
        self._check()

    def _check_function(self, item, function=None):
        """Checks that a test, or the given function that it had before it ran, is still what was collected."""
        function = function or getattr(item, "function", None)
        body = _body(function)
        if any(now is not before for now, before in zip(body, self._bodies.get(item.nodeid, body))):
            self._tampered(REPLACED.format(item.nodeid))
        return function

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        """Keeps what is known about an exception, and refuses skips that the code under test raises."""
        result = yield
        report = result.get_result()
        if call.excinfo is not None and report.outcome == "failed":
            self._describe(call.excinfo, report)
        elif call.excinfo is not None and self._left_by_code(call.excinfo.tb):
            self._messages[report.nodeid] = ASIDE + call.excinfo.typename
            self._results[report.nodeid] = "error"

    def pytest_runtest_logreport(self, report):
        """Takes in the report of a phase of a test."""
        passed = report.when == "call" and report.outcome == "passed"
        if passed and report.nodeid == self._running:
            return  # A subtest: the test itself goes on, and its own report follows.
        if passed and not self._remote and not hasattr(report, "wasxfail") and report.nodeid not in self._returned:
            self._tampered("{} is reported as passed, but its body did not return".format(report.nodeid))
        if getattr(report, "outcome", None) == "rerun":
            self._results.pop(report.nodeid, None)
            self._returned.discard(report.nodeid)
            return
        super().pytest_runtest_logreport(report)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtestloop(self, session):
        """After the last test, runs one that must fail, to show whether failures are still reported."""
        yield
        self._check(always=True)
        if not self._remote and session.items and not session.config.option.collectonly:
            self._try_failure(session)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        """Checks for tampering a last time and reports the end."""
        yield
        self._check(always=True)
        if self._ends:
            self._send("end", int(session.exitstatus))

    def _try_failure(self, session):
        from _pytest.runner import call_and_report

        try:
            item = FailingItem.from_parent(session, name="gumshoe_must_fail")
        except (AttributeError, TypeError):
            item = FailingItem("gumshoe_must_fail", session)
        try:
            report = call_and_report(item, "call", log=False)
        except Exception:  # A plugin that cannot bear such an item.
            return
        if report.outcome != "failed":
            self._tampered("a test that must fail is reported as {}".format(report.outcome))

    def _left_by_code(self, trace):
        """Whether an exception that is no failure (a skip, an expected failure) came through a changed file."""
        while trace is not None:
            if self._changed(trace.tb_frame.f_code.co_filename):
                return True
            trace = trace.tb_next
        return False

    def _check(self, always=False):
        now = time.monotonic()
        if self._watch is None or not (always or now - self._checked > CHECK_EVERY * self._cost):
            return
        for text in self._watch.differences(self._config.hook):
            self._tampered(text)
        self._checked = time.monotonic()
        self._cost = self._checked - now

    def _tampered(self, text):
        if text not in self._reported:
            self._reported.add(text)
            self._send("tampered", text[:300])

    def _write(self, name, outcome, otherwise):
        """Sends the result instead of writing it to a file."""
        message = self._messages.pop(name, "") or otherwise
        self._frames.pop(name, None)
        self._send("result", name, outcome, "" if outcome == "passed" else message, "")


def _body(function):
    """What determines a function's behavior: its code and its globals."""
    return getattr(function, "__code__", None), getattr(function, "__globals__", None)


class FailingItem(pytest.Item):
    """A test that must fail."""

    def runtest(self):
        """Fails: a run in which it passes was tampered with."""
        raise AssertionError("this test must fail")

    def repr_failure(self, excinfo, style=None):
        """Nobody reads it."""
        return str(excinfo.value)

    def reportinfo(self):
        """A place that is not a file of the project."""
        return "gumshoe_must_fail", 0, "gumshoe_must_fail"
