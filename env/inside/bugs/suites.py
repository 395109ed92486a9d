"""Runs a suite in forks, each with its limits. The package's docstring has a picture of the processes."""

import math
import os
import resource
import signal

import pytest

from ..runs.forks import answer_of
from ..runs.outcomes import Collected, InChild
from .recorder import LineRecorder, OutcomeRecorder, write_answer


def run_pytest(arguments, make_plugins, wall_s):
    """Runs pytest in a fork. Returns what its OutcomeRecorder writes, or a `status` (see `answer_of`).

    The status is `collection` if pytest does not start, for which it gives its reasons on standard error.

    Args:
        arguments: of pytest.
        make_plugins: called in the fork with the descriptor to write to; returns its plugins.
        wall_s: seconds after which it is killed.
    """

    def child(writer):
        try:
            pytest.main(arguments, plugins=make_plugins(writer))
            write_answer(writer, {"status": "collection"})
        finally:
            os._exit(1)

    return answer_of(child, wall_s)


def silence(*descriptors):
    """Leads descriptors to nowhere: what tests print or read is not for the host's channels."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in descriptors:
        os.dup2(null, descriptor)


class ProjectSuite:
    """The tests of a project. This process has pytest loaded, and has never imported the project."""

    def __init__(self, project):
        self.project = project

    def run(self, tests, trace=False):
        """Collects and runs `tests`, all if there are none, in a fork. Returns what was seen.

        Args:
            tests: the ids of tests.
            trace: whether to record which lines each test executes, which takes longer.
        """
        project = self.project
        factor = project.trace_factor if trace else 1.0

        def plugins(writer):
            limit_fork(project, factor * project.cpu_s)
            lines = LineRecorder(project.root) if trace else None
            return [self._recorder(writer, lines), *([lines] if trace else [])]

        return run_pytest(project.arguments + tests, plugins, factor * project.wall_s)

    def collected(self, work, wall_s, is_clean=True):
        """Collects the project as it is now, in a fork. Returns what `work(run)` makes of it there, a `status`
        if it does not come to that, or what was seen if the project cannot be collected.

        `run(tests, prepare=None, cpu_s=None, wall_s=None)` is for `work`: it calls `prepare()` and runs some of the
        collected tests, all if there are none, in a fork of that fork, and returns what was seen. What is imported of a
        project that is not clean is limited as its tests are.
        """

        def plugins(writer):
            if not is_clean:
                limit_fork(self.project, self.project.cpu_s)
            recorder = self._recorder(writer)
            return [recorder, _CollectedSuite(self.project, recorder, work)]

        return run_pytest(self.project.arguments, plugins, wall_s)

    def _recorder(self, writer, lines=None):
        project = self.project
        return OutcomeRecorder(project.root, project.temporary, writer, lines, project.randomness)


class _CollectedSuite(Collected):
    """A pytest plugin that hands what was collected to `work`, and ends the process with what that returns."""

    def __init__(self, project, recorder, work):
        super().__init__(self._work_on)
        self._project = project
        self._recorder = recorder
        self._work = work

    def _work_on(self, session):
        if self._recorder.collection_errors:
            self._recorder.finish()
        items = session.items

        def run(tests, prepare=None, cpu_s=None, wall_s=None):
            def child(writer):
                """Goes on as pytest, with some of the tests. Always raises InChild."""
                limit_fork(self._project, cpu_s or self._project.cpu_s)
                wanted = set(tests)
                session.items = [item for item in items if not wanted or item.nodeid in wanted]
                self._recorder.writer = writer
                if prepare is not None:
                    prepare()
                raise InChild

            return answer_of(child, wall_s or self._project.wall_s)

        write_answer(self._recorder.writer, self._work(run))
        os._exit(0)


def limit_fork(project, cpu_s):
    """Limits this process to so many seconds of processor time, and to the project's memory."""
    # The timer is fine-grained; the limit, in whole seconds, is for what a fork of the tests uses up.
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    whole = math.ceil(cpu_s) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    allowed = resource.getrlimit(resource.RLIMIT_AS)[1]
    memory = project.memory if allowed == resource.RLIM_INFINITY else min(project.memory, allowed)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
