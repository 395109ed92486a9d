"""Pytest plugins. The module itself writes the outcome of each test as soon as it is known. PYTEST_DONT_REWRITE

Works with pytest 3.6 and later. It appends one JSON line per finished test, `{"id", "outcome", "message", "frames"}`,
to the file named by GUMSHOE_OUTCOMES, and none without that variable. Each line is written at once, so that what is
known survives when the run is killed. If GUMSHOE_ONLY names a file with a JSON list of test ids, only these tests are
run, and only their files are collected. In any case, tests run in this process, and pytest does not stop at a failure,
whatever its options say.

`outcome` is passed, failed, error, skipped, xfailed or xpassed. Until it is known, the line of a test says what would
be true if the process ended now: not_run once it is collected, crashed while it runs. `message` holds the exception,
`frames` the project frames it went through, the test's own and the innermost ones: `{"path", "line", "function",
"code"}`.

Other plugins are registered by those who need them: `observe_pytest` has pytest tell an observer of its tests,
`Collected` hands over what was collected in the place of running it.
"""

import json
import os
import re
import sys

import pytest

from ..programs.channel import append_lines
from ..programs.program import end_despite_threads
from ..programs.project import project_frames
from ..programs.runner_hooks import UNITTEST_REPORTS, tell_of_reports
from ..values import exception_text, plain_lines

MESSAGE_LINES = 6
MESSAGE_LIMIT = 700
# Of one that pytest has shortened: `<object obje...7f4dcdf4d740>`.
_END_OF_ADDRESS = re.compile(r"(?<=\.\.\.)[0-9a-fA-F]{6,}>")
_BADNESS = {"passed": 0, "error": 2, "failed": 3}
_OPTIONS = {
    # pytest-xdist, pytest-forked: tests run in the process that watches them.
    "dist": "no",
    "tx": [],
    "numprocesses": 0,
    "forked": False,
    # All tests run. A run that ends at its first failure does not show what a change breaks.
    "lf": False,
    "stepwise": False,
    "maxfail": 0,
    # What is printed, and the messages of assertions, are read as plain text.
    "color": "no",
}
_REPORTS = ("_saferepr", "_format_assertmsg", "_call_reprcompare", "_format_boolop", "_format_explanation")

plugin = None
"""One more plugin to be registered with this module; set by the code that runs pytest in this process."""


class Outcomes:
    """Gathers the phases of each test and writes the result after its last one."""

    def __init__(self, path, root):
        self.path = path
        self.root = root
        self._results = {}
        self._messages = {}
        self._frames = {}
        self._running = set()
        self._session = None

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Keeps what is known about an exception while it is available."""
        result = yield
        report = result.get_result()
        if call.excinfo is not None and report.outcome == "failed":
            self._describe(call.excinfo, report)

    def pytest_collection_finish(self, session):
        """Writes that none of the tests has been run."""
        append_lines(self.path, ({"id": item.nodeid, "outcome": "not_run"} for item in session.items))

    def pytest_runtest_logstart(self, nodeid):
        """Writes that the process has ended in this test, as long as that may happen."""
        self._running.add(nodeid)
        append_lines(self.path, [{"id": nodeid, "outcome": "crashed"}])

    def pytest_runtest_logfinish(self, nodeid):
        """Writes the outcome of a test whose tear-down has no report."""
        if nodeid in self._running:
            self._write(nodeid, self._results.pop(nodeid, "not_run"))

    def pytest_sessionfinish(self, session):
        """All tests are over."""
        self._session = session

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self):
        """Sees to it that the process ends."""
        if self._session is not None:
            end_despite_threads(int(self._session.exitstatus))

    def pytest_runtest_logreport(self, report):
        """Takes in one phase (setup, call, teardown) of a test."""
        outcome = phase_outcome(report)
        known = self._results.get(report.nodeid) if report.when != "setup" else None
        if "rerun" in (outcome, known):  # pytest-rerunfailures: the last attempt counts
            self._results[report.nodeid] = "rerun"
            self._messages.pop(report.nodeid, None)
            self._frames.pop(report.nodeid, None)
            return
        self._results[report.nodeid] = worse_outcome(known, outcome)
        if outcome in ("failed", "error", "skipped") and report.nodeid not in self._messages:
            self._messages[report.nodeid] = plain_message(report)
        if report.when == "teardown":
            self._write(report.nodeid, self._results.pop(report.nodeid))

    def pytest_exception_interact(self, node, call, report):
        """A file that could not be collected."""
        if report.when == "collect":
            self._describe(call.excinfo, report)

    def pytest_collectreport(self, report):
        """Writes a file that could not be collected as an error."""
        if report.failed:
            self._write(report.nodeid, "error", plain_message(report))

    def _write(self, name, outcome, otherwise=""):
        message = self._messages.pop(name, "") or otherwise
        frames = self._frames.pop(name, [])
        facts = {"id": name or "collection", "outcome": outcome, "message": message, "frames": frames}
        self._running.discard(name)
        append_lines(self.path, [facts])

    def _describe(self, excinfo, report):
        error, frames = excinfo.value, project_frames(excinfo.tb, self.root)
        origin = (error.__cause__ or error.__context__) if report.when == "collect" else None
        if not frames and isinstance(origin, ImportError):  # pytest raises an error of its own instead
            error, frames = origin, project_frames(origin.__traceback__, self.root)
        text = _END_OF_ADDRESS.sub(">", exception_text(type(error), error).strip())
        # The first failure counts: after one in a subtest, the test goes on.
        self._frames.setdefault(report.nodeid, frames)
        self._messages.setdefault(report.nodeid, _short(text if frames else plain_message(report) or text))


class Only:
    """Runs only some tests."""

    def __init__(self, ids, root):
        self.ids = set(ids)
        self.files = {os.path.realpath(os.path.join(root, each.partition("::")[0])) for each in ids}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        """Leaves the others out."""
        others = [item for item in items if item.nodeid not in self.ids]
        items[:] = [item for item in items if item.nodeid in self.ids]
        config.hook.pytest_deselected(items=others)

    def ignores(self, path):
        """Whether a path is a file without such tests."""
        return True if os.path.isfile(path) and os.path.realpath(path) not in self.files else None

    if int(pytest.__version__.partition(".")[0]) >= 7:

        def pytest_ignore_collect(self, collection_path):  # pyright: ignore[reportRedeclaration]
            """Does not even import other files."""
            return self.ignores(str(collection_path))

    else:

        def pytest_ignore_collect(self, path):  # as it was called before
            """Does not even import other files."""
            return self.ignores(str(path))


def worse_outcome(known, outcome):
    """The outcome of a test with another phase or subtest: the worse one, the former among equals, such as two skips.

    Args:
        known: its outcome so far, None for none.
        outcome: that of the phase or subtest.
    """
    if known is None or _BADNESS.get(outcome, 1) > _BADNESS.get(known, 1):
        return outcome
    return known


def phase_outcome(report):
    """The outcome that pytest's report on one phase of a test stands for."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.outcome == "skipped" else "xpassed"
    if report.outcome == "failed" and report.when != "call":
        return "error"
    return report.outcome


def plain_message(report):
    """What pytest would print last about a report."""
    text = report.longrepr
    if isinstance(text, tuple):
        return _short(str(text[-1]))
    crash = getattr(text, "reprcrash", None)
    if crash is not None:
        return _short(str(crash.message))
    lines = [line for line in str(text or "").strip().splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return _short("\n".join(marked or lines[-MESSAGE_LINES:]))


def _short(text):
    lines = plain_lines(text)
    if len(lines) > MESSAGE_LINES:
        lines = [*lines[: MESSAGE_LINES - 1], "..."]
    return "\n".join(lines)[:MESSAGE_LIMIT]


class _PytestHooks:
    """A pytest plugin that tells an observer."""

    def __init__(self, observer):
        self.observer = observer
        self.is_running = False

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Around a whole test."""
        self.observer.begin(item.nodeid)
        ended = yield
        if ended.excinfo is not None:  # pytest.exit and Ctrl-C leave a test without its report
            self.observer.add(item.nodeid, "error")
        self.observer.end(item.nodeid)

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
        self.observer.add(report.nodeid, phase_outcome(report))

    def pytest_collection_finish(self):
        """All test modules have been imported, and with them unittest, if they need it."""
        tell_of_reports(sys.modules.get("unittest.case"), UNITTEST_REPORTS, self.observer)

    def pytest_sessionfinish(self):
        """All tests are over."""
        self.observer.finish()


def observe_pytest(config, observer):
    """Has a pytest run, whose tests run in this process, tell the observer."""
    config.pluginmanager.register(_PytestHooks(observer), "gumshoe_observer")
    tell_of_reports(sys.modules.get("_pytest.assertion.rewrite"), _REPORTS, observer)


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


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Registers what is wanted, and has all tests run in this process."""
    if plugin is not None:
        config.pluginmanager.register(plugin, "gumshoe_plugin")
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "forked", False):
        os.write(2, b"\ntests run in one process: -n and --forked are switched off\n")
    for name, value in _OPTIONS.items():
        if hasattr(config.option, name):
            setattr(config.option, name, value)
    path = os.environ.get("GUMSHOE_OUTCOMES")
    if not path:
        return
    config.pluginmanager.register(Outcomes(path, os.getcwd()), "gumshoe_outcomes_writer")
    only = os.environ.get("GUMSHOE_ONLY")
    if only:
        with open(only) as file:
            ids = json.load(file)
        root = str(getattr(config, "rootpath", None) or config.rootdir)
        config.pluginmanager.register(Only(ids, root), "gumshoe_only")
