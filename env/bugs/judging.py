"""Judges candidates by the tests of their project.

`ProjectJudge` judges those of one project in one sandbox, and `JudgePool` those of all projects, in several sandboxes
at a time. A journal keeps the verdicts: what was judged before an interruption is not judged again.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, Self

from pydantic import TypeAdapter

from gumshoe.cache import JsonlCache
from gumshoe.env.bugs.candidates import Candidate
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.projects import Project, reason_of
from gumshoe.env.config import SandboxConfig
from gumshoe.env.inside.bugs import OTHER_RUNS, RUNS_IMPORTED, RUNS_IN_PLACE
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import FAILING, PASSING
from gumshoe.storage import parse_json
from gumshoe.tools.runs.commands import our_program

STARTUP_S = 60.0
# Tracing the lines of the first run costs time.
TRACE_FACTOR = 3.0
# At most: one that cannot be judged in place after all is imported then.
RUNS_OF_CANDIDATE = RUNS_IN_PLACE + RUNS_IMPORTED


@dataclass(frozen=True)
class FailedTest:
    """Why one test failed. `frames` are (path, line, function) within the project, innermost last."""

    type: str
    message: str
    frames: tuple[tuple[str, int, str], ...]


VerdictStatus = Literal[
    "killed",  # some tests fail, others pass: a bug
    "survived",  # no test fails, or none that counts in the tasks
    "all_fail",  # every test fails
    "uncovered",  # no test executes a changed line; nothing was run
    "collection",  # the tests cannot be collected, or some of them are gone
    "timeout",  # a run used up its time
    "crashed",  # the process died
    "flaky",  # two runs differ, or a test that fails draws random numbers without a seed
]
"""What becomes of a candidate. The program in the sandbox, `env/inside/bugs/judge.py`, gives all but `all_fail`."""


@dataclass(frozen=True)
class CandidateVerdict:
    """What became of a candidate.

    Attributes:
        passing: the tests that pass with a bug, as the tasks name them.
        failures: those that fail, and why; None for what is no bug.
    """

    status: VerdictStatus
    passing: tuple[str, ...] = ()
    failures: Mapping[str, FailedTest] | None = None


_VERDICTS = TypeAdapter(CandidateVerdict)


class UnfitTests(TaskError):
    """No verdict can rest on some tests of the clean project.

    Attributes:
        tests: their ids.
        why: `flaky` (they fail, or differ between two runs), `uses random numbers without a seed` or `measures time`.
    """

    def __init__(self, message: str, tests: tuple[str, ...], why: str = "flaky") -> None:
        super().__init__(message)
        self.tests = tests
        self.why = why


class ProjectJudge:
    """A sandbox that holds one clean project and tries variants of it. Not for several threads at a time.

    Args:
        timeout_s: wall-clock seconds that one run of the tests may take; the traced one may take TRACE_FACTOR times
            that.

    Attributes:
        passing: the tests that pass in the clean project; empty before anything is judged.

    Raises:
        TaskError: the project is not a folder.
        SandboxError: the sandbox does not start.
    """

    def __init__(self, project: Project, config: SandboxConfig, *, timeout_s: float = 10.0) -> None:
        self._name = project.name
        self._suite = project.suite
        self._timeout_s = timeout_s
        self._memory_mb = config.memory_mb
        self.passing: tuple[str, ...] = ()
        clean = self._suite.task(f"synth/{project.name}", str(project.path))
        self._sandbox = open_sandbox(clean, config, trusted=True)
        self._folder = f"{self._sandbox.support}/synth"
        try:
            self._sandbox.prepare_support()
        except BaseException:
            self.close()
            raise

    def judge(self, candidates: Sequence[Candidate]) -> list[CandidateVerdict]:
        """The verdicts on candidates for bugs of this project, in their order.

        Raises:
            TaskError: the project has no tests, or they do not pass as they are.
            SandboxError: the sandbox broke.
        """
        rows = [{"id": one.digest, "files": {one.path: one.text}, "lines": {one.path: one.lines}} for one in candidates]
        clean, *answers = self._request(rows)
        self.passing = self.passing or self._accepted(clean)
        if [answer["id"] for answer in answers] != [row["id"] for row in rows]:
            raise SandboxError(f"project {self._name}: the judge died before it had judged all candidates")
        return [self._verdict(answer) for answer in answers]

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        self._sandbox.close()

    def _accepted(self, seen: Mapping[str, Any]) -> tuple[str, ...]:
        """The passing tests of a project that is fit to have bugs. Raises TaskError for one that is not."""
        if "status" in seen:
            raise TaskError(f"project {self._name}: {self._ending(seen['status'])}")
        if seen["collection_errors"]:
            raise TaskError(f"project {self._name}: {seen['collection_errors'][0]} cannot be collected by pytest")
        failing = [test for test, outcome in seen["outcomes"].items() if outcome in FAILING]
        if failing:
            reason = f"project {self._name}: {failing[0]} fails without any bug: fix the project first"
            raise UnfitTests(reason, (*failing, *seen["unstable"]))
        passing = tuple(test for test, outcome in seen["outcomes"].items() if outcome in PASSING)
        if not passing:
            raise TaskError(f"project {self._name} has no passing tests: add tests/test_*.py")
        if seen["unstable"]:
            reason = f"project {self._name}: two runs of {seen['unstable'][0]} differ: make it deterministic"
            raise UnfitTests(reason, tuple(seen["unstable"]))
        if self._suite.repeatable:
            timed = [test for test, paths in seen["clocks"].items() if any(map(holds_tests, paths))]
            for tests, why in ((seen["unseeded"], "uses random numbers without a seed"), (timed, "measures time")):
                if tests:
                    raise UnfitTests(f"project {self._name}: {tests[0]} {why}", tuple(tests), why)
        return passing

    def _ending(self, status: str) -> str:
        """Why a run of the clean project's tests has no result."""
        if status == "timeout":
            return (
                f"its tests take more than {self._timeout_s:g} s, or {TRACE_FACTOR:g} times that while coverage is "
                f"traced: give more with {self._suite.limit}"
            )
        return f"its test run ended without a result ({status})"

    def _verdict(self, answer: Mapping[str, Any]) -> CandidateVerdict:
        if answer["status"] != "killed":
            return CandidateVerdict(answer["status"])
        outcomes: Mapping[str, str] = answer["outcomes"]
        if any(test not in outcomes for test in self.passing):
            return CandidateVerdict("collection")
        failing = [test for test in self.passing if outcomes[test] in FAILING]
        if len(failing) == len(self.passing):
            return CandidateVerdict("all_fail")
        passing = self._suite.named(test for test in self.passing if outcomes[test] in PASSING)
        named = {name: answer["failures"][test] for test in failing for name in self._suite.named([test])}
        if not named:
            return CandidateVerdict("survived")
        failures = {
            name: FailedTest(facts["type"], facts["message"], tuple(map(tuple, facts["frames"])))
            for name, facts in named.items()
        }
        return CandidateVerdict("killed", passing, failures)

    def _request(self, candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        results = f"{self._folder}/results.jsonl"
        request = {
            "root": self._sandbox.root,
            "keep": f"{self._folder}/keep",
            "results": results,
            "timeout_s": self._timeout_s,
            "trace_factor": TRACE_FACTOR,
            "arguments": list(self._suite.arguments),
            "memory_mb": self._memory_mb,
            "candidates": candidates,
        }
        runs = TRACE_FACTOR + OTHER_RUNS + RUNS_OF_CANDIDATE * len(candidates)
        result = self._sandbox.run(
            [self._sandbox.python, *our_program(self._sandbox.support, "bugs.judge")],
            input=json.dumps(request).encode(),
            env={"PYTHONHASHSEED": "0"},
            timeout=STARTUP_S + runs * (self._timeout_s + 1.0),
        )
        if result.exit_code is None or result.timed_out:
            raise SandboxError(f"project {self._name}: the judge took more than {result.duration_s:.0f} s")
        try:
            text = self._sandbox.read_file(results, inside=False)
        except FileNotFoundError:
            text = b""
        if not text.strip():
            raise TaskError(f"project {self._name}: pytest does not start there: {reason_of(result.output)}")
        try:
            return [parse_json(line) for line in text.splitlines()]
        except ValueError as error:
            raise TaskError(f"project {self._name}: the judge's results are not JSON: {error}") from None


def known_or_judged(
    journal: JsonlCache,
    project: str,
    batch: Sequence[Candidate],
    judge: Callable[[Sequence[Candidate]], Sequence[CandidateVerdict]],
) -> list[CandidateVerdict]:
    """The verdicts on `batch`, in its order; `judge` is asked for those that the journal does not have.

    A journal is valid for projects, tests and limits as they were when its verdicts were reached.
    """
    keys = [f"{project}:{candidate.digest}" for candidate in batch]
    new = [(key, one) for key, one in zip(keys, batch, strict=True) if journal.get(key) is None]
    if new:
        for (key, _), verdict in zip(new, judge([candidate for _, candidate in new]), strict=True):
            journal.keep(key, asdict(verdict))
    return [_VERDICTS.validate_python(journal.get(key)) for key in keys]


class JudgePool:
    """Judges batches in threads, each in a sandbox of its project that no other thread is using.

    Args:
        config: where, how many at a time, and how long a run of the tests may take.
        journal: has verdicts of earlier runs, and takes in the new ones.
    """

    def __init__(self, config: SynthConfig, journal: JsonlCache | None = None) -> None:
        self._config = config
        self._journal = journal
        self._threads = ThreadPoolExecutor(config.workers)
        self._lock = threading.Lock()
        self._idle: dict[str, list[ProjectJudge]] = defaultdict(list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(cancel_futures=True)
        for name in list(self._idle):
            self.release(name)

    def submit(self, project: Project, batch: Sequence[Candidate]) -> Future[list[CandidateVerdict]]:
        """Begins to `judge` a batch as soon as a thread is free."""
        return self._threads.submit(self.judge, project, batch)

    def judge(self, project: Project, batch: Sequence[Candidate]) -> list[CandidateVerdict]:
        """The verdicts on `batch`. Raises TaskError and SandboxError as ProjectJudge does."""
        if self._journal is None:
            return self._judge(project, batch)
        return known_or_judged(self._journal, project.name, batch, partial(self._judge, project))

    def release(self, project: str) -> None:
        """Closes the sandboxes of the project with this name, which no longer needs them."""
        with self._lock:
            judges = self._idle.pop(project, [])
        for judge in judges:
            judge.close()

    def _judge(self, project: Project, batch: Sequence[Candidate]) -> list[CandidateVerdict]:
        judge = self._take(project)
        try:
            verdicts = judge.judge(batch)
        except BaseException:
            judge.close()
            raise
        with self._lock:
            self._idle[project.name].append(judge)
        return verdicts

    def _take(self, project: Project) -> ProjectJudge:
        with self._lock:
            idle = self._idle[project.name]
            if idle:
                return idle.pop()
        return ProjectJudge(project, self._config.sandbox, timeout_s=self._config.timeout_s)
