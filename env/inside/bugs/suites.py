"""Runs a suite in forks, each with its limits; a run that hangs or dies affects only itself.

Standard library and pytest only, Python 3.6 and later.
"""

import math
import os
import resource
import signal
from typing import Any

import pytest

from ..runs.forks import answer_of
from ..runs.pytest_hooks import Collected, InChild
from .recorder import OutcomeRecorder, verdict_of
from .tracer import Tracer


class EarlyForks:
    """Runs the suite in forks of a process that has pytest loaded, but not configured."""

    def __init__(self, project):
        self.project = project

    def run(self, tests, trace=False):
        """Runs `tests` in a fork and returns what it reported."""
        return answer_of(lambda writer: self.child(tests, trace, writer), self.project.wall_of(trace))

    def child(self, tests, trace, writer):
        """What the fork does. It never returns."""
        enter_child(self.project, trace)
        pytest.main(self.project.arguments + tests, plugins=plugins(self.project, trace, writer))
        os._exit(1)

    def collected(self, work, wall_s):
        """As `LateForks.collected`."""

        def child(writer):
            recorder = OutcomeRecorder(self.project.root, self.project.temporary, writer, chance=self.project.chance)
            pytest.main(self.project.arguments, plugins=[recorder, CollectedSuite(self.project, recorder, work)])
            os._exit(1)

        return answer_of(child, wall_s)

    def twice(self, files, tests):
        """Like `LateForks.twice`, but each run starts from the beginning."""

        def run(chosen):
            reset_and_write(self.project, files)
            return self.run(chosen)

        return first_and_second(run, tests)


class LateForks:
    """Runs the suite in forks of a process that has pytest configured and is about to collect.

    It is a pytest plugin: `work(self)` is called where pytest would collect.
    """

    def __init__(self, project, work):
        self.project = project
        self.work = work
        self.session: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session):
        """Takes the place of the collection: the work is done here, and each fork collects for itself."""
        if self.session is not None:
            # Older versions of pluggy come here twice in a fork that has unregistered another plugin meanwhile.
            return None
        self.session = session
        session.items, session.testscollected = [], 0
        try:
            self.work(self)
        except InChild:
            return None
        return True

    def run(self, tests, trace=False):
        """Runs `tests` in a fork and returns what it reported."""
        return answer_of(lambda writer: self.child(tests, trace, writer), self.project.wall_of(trace))

    def child(self, tests, trace, writer):
        """What the fork does before pytest goes on in it. Always raises InChild."""
        enter_child(self.project, trace)
        if tests:
            self.session.config.args = list(tests)
        for plugin in plugins(self.project, trace, writer):
            self.session.config.pluginmanager.register(plugin)
        raise InChild

    def twice(self, files, tests):
        """Runs `tests` (all if there are none) with these files and, if one fails, runs again: all tests if the first
        run was of some, the failing ones if it was of all. Returns what was seen each time: one item without a second.

        The two runs share one collection, so what differs from one import to the next is not noticed.
        """
        reset_and_write(self.project, files)
        # Collecting is limited by its processor time, and each of the two runs has its own limits.
        seen = answer_of(lambda writer: self.collector(files, tests, writer), 3 * self.project.wall_s)
        return seen if isinstance(seen, list) else [seen]

    def collected(self, work, wall_s):
        """Collects the clean project in a fork; returns what `work(run)` makes of it, or the status of the fork.

        `run(tests, prepare, cpu_s, wall_s)` is for `work`: it runs some of the collected tests in a fork, where
        `prepare()` comes first, with this many seconds of processor and wall-clock time.
        """

        def child(writer):
            self.register(writer, work)

        return answer_of(child, wall_s)

    def collector(self, files, tests, writer):
        """What the fork does: it collects once and runs the tests twice, with `files` laid again in between."""
        enter_child(self.project)
        runs = []

        def twice(run):
            signal.setitimer(signal.ITIMER_PROF, 0)

            def again(chosen):
                if runs:
                    reset_and_write(self.project, files)
                runs.append(chosen)
                return run(chosen)

            return first_and_second(again, tests)

        self.register(writer, twice)

    def register(self, writer, work):
        """Goes on to collect, then does `work`, and writes what that returns."""
        manager = self.session.config.pluginmanager
        terminal = manager.get_plugin("terminalreporter")
        if terminal is not None:
            manager.unregister(terminal)
        recorder = OutcomeRecorder(self.project.root, self.project.temporary, writer, chance=self.project.chance)
        for plugin in (recorder, CollectedSuite(self.project, recorder, work)):
            manager.register(plugin)
        raise InChild


class CollectedSuite(Collected):
    """A pytest plugin that hands what was collected to `work`, and ends the process with what that returns."""

    def __init__(self, project, recorder, work):
        super().__init__(self.judge)
        self.project = project
        self.recorder = recorder
        self.judge_with = work

    def judge(self, session):
        """Calls `work` with a function that runs some of the tests in a fork, which has collected them already."""
        if self.recorder.collection_errors:
            self.recorder.finish()
        items = session.items

        def run(chosen, prepare=None, cpu_s=None, wall_s=None):
            return answer_of(
                lambda writer: self.child(session, items, chosen, prepare, cpu_s, writer),
                self.project.wall_s if wall_s is None else wall_s,
            )

        self.recorder.write(self.judge_with(run))

    def child(self, session, items, chosen, prepare, cpu_s, writer):
        """What the fork does before pytest runs `chosen` in it. Always raises InChild."""
        enter_child(self.project, cpu_s=cpu_s)
        wanted = set(chosen)
        session.items = [item for item in items if not wanted or item.nodeid in wanted]
        self.recorder.writer = writer
        if prepare is not None:
            prepare()
        raise InChild


def first_and_second(run, tests):
    """What `run` has seen of `tests`, and of the others or the failing ones where a test fails; see `twice`."""
    first = run(tests)
    if verdict_of(first) != "killed":
        return [first]
    return [first, run([] if tests else sorted(first["failures"]))]


def reset_and_write(project, files):
    """Makes the project the clean one with these files."""
    project.restore()
    project.write(files)


def plugins(project, trace, writer):
    """The pytest plugins of a run; with `trace`, the tracer is one of them and has been started."""
    if not trace:
        return [OutcomeRecorder(project.root, project.temporary, writer, chance=project.chance)]
    tracer = Tracer(project.root)
    tracer.start()
    return [OutcomeRecorder(project.root, project.temporary, writer, tracer, project.chance), tracer]


def enter_child(project, trace=False, cpu_s=None):
    """Sets the limits of a fork: processor seconds and memory."""
    cpu_s = cpu_s or project.cpu_s * (project.trace_factor if trace else 1.0)
    # The timer is fine-grained; the limit, in whole seconds, is for what a fork of the tests uses up.
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    whole = math.ceil(cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
    memory = project.memory if allowed == resource.RLIM_INFINITY else min(project.memory, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
