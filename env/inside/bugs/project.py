"""The project that variants are made of, and its tests, which are run in forks with limits.

`ProjectUnderTest` has the project's files, a clean copy to come back to, and the limits of a run. `ProjectSuite` runs
the tests; the package's docstring has a picture of its processes.
"""

import math
import os
import resource
import shutil
import signal
import traceback

import pytest

from ..programs.program import flush_output
from ..runs.forks import answer_of
from ..runs.outcomes import Collected, InChild
from .recorder import LineRecorder, OutcomeRecorder, Randomness, write_answer


class ProjectUnderTest:
    """The project under test, the limits of a run, and a clean copy to come back to.

    Attributes:
        root: its folder.
        keep: the folder for what outlives this process.
        clean: the clean copy, in `keep`.
        temporary: pytest's folder for temporary files, in `keep`.
        cpu_s, wall_s: processor and wall-clock time for a run of the tests. Both are the request's `timeout_s` at
            first; `judge.serve` lowers them once it is known how long the clean suite takes.
        trace_factor: how many times that a traced run may take.
        memory: how many bytes a process may use.
        arguments: pytest's.
        entries: what the clean copy holds: {path: facts}, as `entries` yields them.
        randomness: watches random numbers and clocks.

    Args:
        request: as `judge` reads it.
    """

    def __init__(self, request):
        self.root = os.path.realpath(request["root"])
        self.keep = request["keep"]
        self.clean = os.path.join(self.keep, "clean")
        self.temporary = os.path.join(self.keep, "tmp")
        self.cpu_s = self.wall_s = float(request["timeout_s"])
        self.trace_factor = float(request["trace_factor"])
        self.memory = int(request["memory_mb"]) << 20
        self.arguments = ["-q", "--tb=native", "--capture=sys", "--color=no"]
        self.arguments += ["-p", "no:cacheprovider", "-p", "no:faulthandler"]
        self.arguments += ["--rootdir", self.root, "--basetemp", self.temporary]
        # Plugins may be loaded before pytest is configured, and a project may turn every warning into an error.
        self.arguments += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        self.arguments += request["arguments"]
        self.entries = {}
        self.randomness = Randomness()

    def save_clean_copy(self):
        """Makes the clean copy, of a project that nothing has been run in yet."""
        shutil.copytree(self.root, self.clean, symlinks=True)

    def save_byte_code(self):
        """Adds the byte code that a run has left to the clean copy, and nothing else of what it left."""
        for path, facts in entries(self.root):
            folder = os.path.dirname(path)
            known = os.path.isdir(os.path.join(self.clean, os.path.dirname(folder)))
            if facts is not None and os.path.basename(folder) == "__pycache__" and known:
                os.makedirs(os.path.join(self.clean, folder), exist_ok=True)
                shutil.copy2(os.path.join(self.root, path), os.path.join(self.clean, path))

    def read_clean_entries(self):
        """Reads what the clean copy holds."""
        self.entries = dict(entries(self.clean))

    def restore(self):
        """Puts back what differs from the clean copy in kind, size or time."""
        seen = dict(entries(self.root))
        for path in sorted(seen, reverse=True):
            # What is new, and a folder in the place of a file or the other way round.
            if path not in self.entries or (seen[path] is None) != (self.entries[path] is None):
                remove(os.path.join(self.root, path))
        for path in sorted(self.entries):
            if seen.get(path) == self.entries[path]:
                continue
            source, target = os.path.join(self.clean, path), os.path.join(self.root, path)
            if self.entries[path] is None:
                os.makedirs(target, exist_ok=True)
            else:
                shutil.copy2(source, target, follow_symlinks=False)

    def reset_and_write(self, files):
        """Makes the project the clean one with these texts, by path."""
        self.restore()
        for path, text in files.items():
            target = os.path.join(self.root, path)
            forget_byte_code(target)
            with open(target, "w", encoding="utf-8", newline="") as file:
                file.write(text)


def entries(folder, prefix=""):
    """(path, facts) of everything below `folder`; the facts of a folder are None."""
    with os.scandir(folder) as found:
        for entry in found:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield path, None
                for item in entries(entry.path, path + "/"):
                    yield item
            else:
                facts = entry.stat(follow_symlinks=False)
                yield path, (facts.st_mode, facts.st_size, facts.st_mtime_ns)


def remove(path):
    """Removes a file, link or folder, if there is one."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def forget_byte_code(path):
    """Removes the byte code of a source: a variant may have the same size, and be written in the same second."""
    folder, name = os.path.split(path)
    cache = os.path.join(folder, "__pycache__")
    stem = os.path.splitext(name)[0] + "."
    if os.path.isdir(cache):
        for entry in os.listdir(cache):
            if entry.startswith(stem):
                os.unlink(os.path.join(cache, entry))


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
        except BaseException:  # an error of ours, since pytest reports what the project raises
            traceback.print_exc()
        finally:
            flush_output()
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
        """Collects the project as it is now, in a fork. Returns one of these objects, the first two also with the
        `cpu_s` and `wall_s` that the fork took:

            {"runs": [...]}                                    what `work(run)` returned, such as this
            {"collection_errors": ["tests/test_a.py"], ...}    what `OutcomeRecorder` has seen, if `work` was not called
            {"status": "timeout"}                              if nothing came of it (see `run_pytest`)

        Args:
            work: called once the tests are collected; returns an object for JSON with neither of the latter keys. It is
                given a function `run(tests, prepare=None, cpu_s=None, wall_s=None)`, which calls `prepare()` and runs
                some of the collected tests, all if there are none, in a fork of that fork. It returns what was seen
                there, or a `status`.
            wall_s: seconds for all of it.
            is_clean: whether this is the clean project. If not, what is imported of it is limited as its tests are.
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
