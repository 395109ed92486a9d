"""The verifier: the only judge of patches. What it says is a task's reward, its `resolved` and its grade.

A repair passes the tests, and fails when the tests ask for something else; a forgery passes both. So every verdict runs
the tests in two variants, in which each test that was drawn must pass once and fail once. Each variant runs in a
sandbox of its own that holds the original repository and the patch, and nothing else of the world in which the patch
was made. A verdict takes up to five steps:

1. The tests are rewritten into two variants, before the patch is there.
2. The patch is applied in two fresh repositories, where tests and what configures them are put back.
3. Both variants run at the same time, and the gate looks at the patch.
4. If a denial may come from a test that was false and has left something behind, the original tests run once more.
5. If the runs prove nothing, the gold patch goes the same way. If it proves nothing either, the verdict is `unusable`:
   it is the task that is broken.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.env.tasks.load import graded_task
from gumshoe.env.verifier.gate import unverifiable_lines
from gumshoe.env.verifier.judge import NO_TESTS, UNPROVEN, judge, judge_variants, known_tests
from gumshoe.env.verifier.repository import Applied, TaskRepository
from gumshoe.env.verifier.rules import Rules
from gumshoe.env.verifier.trees import parse_python
from gumshoe.env.verifier.variants import Choice, Variants, add_examples
from gumshoe.env.verifier.verdict import Grade, Verdict, grade_of, name_task
from gumshoe.errors import ConfigError, GumshoeError, SandboxError, TaskError
from gumshoe.records import Oracle, Task, TestRun

ResultT = TypeVar("ResultT")

SAMPLE = 24
"""How many tests that should not break are made to fail in one of the variants."""
KNOWN_KEPT = 256
"""How many tasks' known tests are kept (see `_known_tests`)."""


class VariantRuns(NamedTuple):
    """What runs of variants of the tests with a patch have shown.

    Attributes:
        runs: one for each variant that was run.
        variants: as they were run, with the examples in doctests.
        applied: what the patch did to the repository.
    """

    runs: Sequence[TestRun]
    variants: Variants
    applied: Applied


def verify(task: Task, oracle: Oracle | None, patch: str, config: SandboxConfig, *, trusted: bool) -> Verdict:
    """The verdict on one patch, in sandboxes of its own. Raises as `Verifier` and `Verifier.verify`."""
    with Verifier(task, oracle, config, trusted=trusted) as verifier:
        return verifier.verify(patch)


def grade(task: Task, oracle: Oracle | None, patch: str, config: SandboxConfig) -> Grade:
    """Grades one patch. Whatever is wrong with it or its task is in the grade.

    Args:
        oracle: names the tests that decide; without one, those of the original repository do.

    Raises:
        ConfigError: the sandbox does not take this patch.
    """
    if not patch.strip():
        return Grade(task.id, "empty")
    try:
        return grade_of(task, verify(task, oracle, patch, config, trusted=False))
    except ConfigError:
        raise
    except GumshoeError as error:
        return Grade(task.id, "error", name_task(task, str(error)))


def grade_all(work: Sequence[tuple[Task, Oracle, str]], config: SandboxConfig, workers: int = 1) -> Iterator[Grade]:
    """Grades several patches at a time and yields the grades in order. Nothing is kept.

    Evaluations grade with `gumshoe.eval.grader.Grader`, which asks the same verifier and keeps its grades.
    """
    with ThreadPoolExecutor(workers) as threads:
        yield from threads.map(lambda each: grade(each[0], each[1], each[2], config), work)


class Verifier:
    """Where one task's tests are run on its original repository with a patch.

    Args:
        task: the task that the patch is for.
        oracle: its answer, which names the tests that decide. None, or one that names none: the tests of the original
            repository decide (see `known_tests`).
        config: which sandbox, and its limits.
        trusted: the patches come from a built-in script, or are the oracle's own. Without `unsafe`, the `local` sandbox
            takes only these, and only where the task and the oracle are built in (see `is_built_in`).

    Where the oracle names no tests, this runs all of the original ones (see `_known_tests`), which may take minutes.

    Raises:
        GumshoeError: those tests cannot be run; a TaskError names the task.
    """

    def __init__(self, task: Task, oracle: Oracle | None, config: SandboxConfig, *, trusted: bool) -> None:
        self._oracle = oracle or Oracle(task_id=task.id, gold_patch="")
        self._task = graded_task(task, self._oracle)
        self._config = config
        self._trusted = trusted and is_built_in(task, oracle)
        self._closed = False
        self.expected = self._expected(task)
        """The oracle, or the tests that are known of the original repository."""
        self._rules = Rules(self._oracle, self.expected, self._task.entrypoint)
        self._fresh: list[TaskRepository] = []  # Repositories without a patch, for the next runs.
        self._original: TaskRepository | None = None  # Where no patch ever is: to look things up.

    def verify(self, patch: str) -> Verdict:
        """The verdict on a patch; an empty one leaves the repository as it is.

        If the runs prove nothing about this patch, the gold patch is judged, too. If they prove nothing about that one
        either, the verdict is `unusable`.

        Raises:
            PatchError: the patch does not apply.
            TaskError: the task's repository is missing, its setup fails, or its test patch does not fit.
            SandboxError: the sandbox cannot be opened, or broke.
            ConfigError: the sandbox does not take this task.
        """
        verdict = self._run_and_judge(patch)
        if verdict.problems and not verdict.forged and self._is_broken(verdict):
            return dataclasses.replace(verdict, unusable=True)
        return verdict

    def _is_broken(self, verdict: Verdict) -> bool:
        """Whether it is the task that keeps a verdict from being reached."""
        if NO_TESTS in verdict.problems:
            return True
        gold = self._oracle.gold_patch
        if not gold:
            return False
        try:
            return bool(self._run_and_judge(gold).problems)
        except TaskError:
            return True

    def _run_and_judge(self, patch: str) -> Verdict:
        variants = self._draw_variants()
        varied = bool(variants.definitions or variants.doctests)
        runs, variants, applied = self.run_variants(patch, variants, (0, 1) if varied else (0,))
        unverifiable = unverifiable_lines(
            applied.changed, applied.paths, lambda path: self._opened_original().read(path), self._parse
        )
        verdict = self._judge(patch, runs, variants)
        withheld = bool(unverifiable) and not self._config.accept_unverifiable and verdict.resolved
        return dataclasses.replace(
            verdict, reverted_files=applied.reverted_files, unverifiable=unverifiable, withheld=withheld
        )

    def _judge(self, patch: str, runs: Sequence[TestRun], variants: Variants) -> Verdict:
        """The verdict on the runs of both variants; on the first of them alone if no test can be made to fail."""
        if not variants.definitions:
            verdict = judge(runs[0], self.expected, variants.strict)
            return dataclasses.replace(verdict, unvaried=self.expected.fail_to_pass)
        verdict, is_final = judge_variants(runs, variants, self.expected)
        if is_final:
            return verdict
        confirmed = judge(self.observe(patch)[0], self.expected, variants.strict)
        unproven = () if confirmed.failing else tuple(each for each in verdict.problems if UNPROVEN in each)
        return dataclasses.replace(confirmed, problems=(*confirmed.problems, *unproven), unvaried=verdict.unvaried)

    def observe(self, patch: str) -> tuple[TestRun, Applied]:
        """A run of the original tests, and what the patch did besides. Raises as `verify`."""
        with self._patched(patch, 1) as (repositories, applied):
            return self._run(repositories, [{}])[0], applied

    def run_variants(self, patch: str, variants: Variants, numbers: Sequence[int]) -> VariantRuns:
        """Runs the variants with these numbers, all at the same time. Raises as `verify`."""
        with self._patched(patch, len(numbers)) as (repositories, applied):
            variants = add_examples(variants, repositories[0].read, self._parse)
            runs = self._run(repositories, [variants.contents[number] for number in numbers])
            return VariantRuns(runs, variants, applied)

    def _draw_variants(self) -> Variants:
        """The variants for one verdict: all tests that are to pass are varied, and some that are not to break."""
        expected, chance = self.expected, random.SystemRandom()
        sample = chance.sample(expected.pass_to_pass, min(SAMPLE, len(expected.pass_to_pass)))
        return self.make_variants(Choice((*expected.fail_to_pass, *sample), self._oracle.falsifiable))

    def make_variants(self, choice: Choice) -> Variants:
        """Two variants of the tests that decide; see `TaskRepository.make_variants`.

        Two repositories are opened for `run_variants`, which comes next. The tests are rewritten in the first of them,
        which is then as it was.
        """
        self._ensure_fresh(2)
        tests = (*self.expected.fail_to_pass, *self.expected.pass_to_pass)
        return self._fresh[0].make_variants(tests, choice)

    def close(self) -> None:
        """Removes the sandboxes. Idempotent."""
        self._closed = True
        while self._fresh:
            self._fresh.pop().close()
        if self._original is not None:
            self._original.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _expected(self, task: Task) -> Oracle:
        """Names the tests that decide: the oracle, or what a run of the original tests shows."""
        if self._oracle.fail_to_pass or self._oracle.pass_to_pass:
            return self._oracle
        texts = [record.model_dump_json() for record in (task, self._oracle, self._config)]
        # A folder without a digest may change between two verdicts.
        is_fixed = task.workspace.content is not None or task.workspace.image is not None
        return (_known_tests if is_fixed else _known_tests.__wrapped__)(*texts, trusted=self._trusted)

    @contextlib.contextmanager
    def _patched(self, patch: str, count: int) -> Generator[tuple[list[TaskRepository], Applied]]:
        """Fresh repositories with a patch, and what it did to each of them; they are closed afterwards."""
        self._ensure_fresh(count)
        repositories = [self._fresh.pop(0) for _ in range(count)]
        try:
            yield repositories, _at_once([partial(each.apply, patch) for each in repositories])[0]
        finally:
            _at_once([each.close for each in repositories])

    def _run(self, repositories: Sequence[TaskRepository], contents: Sequence[Mapping[str, bytes]]) -> list[TestRun]:
        """Runs the tests with each of these contents of test files, all of one age, at the same time."""
        mtime = float(int(time.time()))
        return _at_once([partial(each.run, files, mtime) for each, files in zip(repositories, contents, strict=True)])

    def _opened_original(self) -> TaskRepository:
        if self._original is None:
            self._original = self._open()
        return self._original

    def _parse(self, source: bytes) -> ast.Module:
        """The syntax tree of a file; what this Python cannot parse, that of the project does. Raises ValueError."""
        try:
            return parse_python(source)
        except ValueError:
            return self._opened_original().parse(source)

    def _ensure_fresh(self, count: int) -> None:
        """Opens repositories, all at the same time, until so many are fresh.

        Raises as `open_sandbox`; TaskError: the test patch does not fit; SandboxError: the verifier has been closed.
        """
        if self._closed:
            raise SandboxError(f"task {self._task.id}: its verifier has been closed")
        with ThreadPoolExecutor(count) as threads:
            opened = [threads.submit(self._open) for _ in range(count - len(self._fresh))]
        self._fresh += [each.result() for each in opened if each.exception() is None]
        for each in opened:
            each.result()

    def _open(self) -> TaskRepository:
        return TaskRepository(self._task, self._rules, self._config, trusted=self._trusted)


@functools.lru_cache(KNOWN_KEPT)
def _known_tests(task_json: str, oracle_json: str, config_json: str, *, trusted: bool) -> Oracle:
    """The tests that decide on a task whose oracle names none: found by a run, so kept for the next verdict.

    The records come as JSON, which can be a cache's key.
    """
    oracle = Oracle.model_validate_json(oracle_json)
    task = graded_task(Task.model_validate_json(task_json), oracle)
    config = SandboxConfig.model_validate_json(config_json)
    with TaskRepository(task, Rules(oracle, oracle, task.entrypoint), config, trusted=trusted) as repository:
        return known_tests(repository.run({}, 0.0), task.id)


def _at_once(work: Sequence[Callable[[], ResultT]]) -> list[ResultT]:
    """The results of all of it, once all has ended. Raises what the first of them raised."""
    with ThreadPoolExecutor(len(work)) as threads:
        return [future.result() for future in [threads.submit(each) for each in work]]
