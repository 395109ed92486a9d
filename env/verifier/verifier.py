"""The verifier: the only judge of patches. What it says is a task's reward, its `resolved` and its grade.

A repair passes the tests, and fails when the tests ask for something else; a forgery passes both. So every verdict runs
the tests in two variants, in which each test that was drawn must pass once and fail once. Each variant runs in a
sandbox of its own that holds the original repository and the patch, and nothing else of the world in which the patch
was made.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType
from typing import Self

from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.env.verifier.judge import UNPROVEN, Verdict, judge, judge_variants, known_tests
from gumshoe.env.verifier.original import verified_task
from gumshoe.env.verifier.proof import SAMPLE, Proof, prove
from gumshoe.env.verifier.repository import Applied, TaskRepository, Variants
from gumshoe.env.verifier.rules import Rules
from gumshoe.errors import SandboxError
from gumshoe.records import Oracle, Task, TestRun

__all__ = ["Verifier", "verify"]

KNOWN_KEPT = 256
THREADS = 16


def verify(task: Task, oracle: Oracle | None, patch: str, config: SandboxConfig, *, trusted: bool) -> Verdict:
    """The verdict on one patch, in sandboxes of its own. Raises as `Verifier` and `Verifier.verify`."""
    with Verifier(task, oracle, config, trusted=trusted) as verifier:
        return verifier.verify(patch)


class Verifier:
    """Where one task's tests are run on its original repository with a patch.

    Args:
        task: the task that the patch is for.
        oracle: its answer, which names the tests that decide. None, or one that names none: the tests of the original
            repository decide (see `known_tests`).
        config: which sandbox, and its limits.
        trusted: the patches come from a built-in script, or are the oracle's own. The `local` sandbox takes only these,
            and only where the task and the oracle are built in (see `is_built_in`).

    Raises:
        GumshoeError: the sandbox cannot be opened, or the test patch does not fit; a TaskError names the task.
    """

    def __init__(self, task: Task, oracle: Oracle | None, config: SandboxConfig, *, trusted: bool) -> None:
        self._oracle = oracle or Oracle(task_id=task.id, gold_patch="")
        self._task = verified_task(task, self._oracle)
        self._config = config
        self._trusted = trusted and is_built_in(task, oracle)
        self._key = f"{task.hash} {task.workspace.path}"
        self._variants: Variants | None = None
        self._closed = False
        self._fresh = [self._open(self._oracle)]

    def verify(self, patch: str) -> Verdict:
        """The verdict on a patch; an empty one leaves the repository as it is.

        Raises:
            TaskError: the patch does not apply.
            SandboxError: the sandbox broke.
        """
        verdict = self._judge(patch)
        withheld = bool(verdict.unverifiable) and not self._config.accept_unverifiable and verdict.resolved
        return dataclasses.replace(verdict, withheld=withheld)

    def _judge(self, patch: str) -> Verdict:
        self.prepare()
        variants, self._variants = self._variants, None
        if variants is None or not variants.definitions:
            run, applied = self.observe(patch)
            verdict = judge(run, self.expected, applied, variants.strict if variants else ())
            return dataclasses.replace(verdict, unvaried=self.expected.fail_to_pass)
        ran = self._run_all(patch, [variants.files(number) for number in (0, 1)])
        verdict, is_final = judge_variants([run for run, _ in ran], variants, self.expected, ran[0][1])
        if is_final:
            return verdict
        run, applied = self.observe(patch)
        confirmed = judge(run, self.expected, applied, variants.strict)
        unproven = () if confirmed.failing else tuple(each for each in verdict.problems if UNPROVEN in each)
        return dataclasses.replace(confirmed, problems=(*confirmed.problems, *unproven), unvaried=verdict.unvaried)

    def observe(self, patch: str) -> tuple[TestRun, Applied]:
        """A run of the original tests, and what the patch did besides. Raises as `verify`."""
        return self._run_all(patch, [{}])[0]

    def prepare(self) -> None:
        """Does early what needs no patch: makes the variants, and starts what runs them. Raises as `verify`."""
        if self._variants is None:
            expected, chance = self.expected, random.SystemRandom()
            sample = chance.sample(expected.pass_to_pass, min(SAMPLE, len(expected.pass_to_pass)))
            self._variants = self.make_variants((*expected.fail_to_pass, *sample), self._oracle.falsifiable)

    def prove(self, patch: str) -> Proof:
        """Finds out which tests can be made to fail on a repaired repository, and how. Raises as `verify`.

        Args:
            patch: the gold patch.
        """
        named = (*self.expected.fail_to_pass, *self.expected.pass_to_pass)
        run, applied = self.observe(patch)
        return prove(
            run,
            applied,
            lambda proven: self.make_variants(named, proven, draw=False, everything=proven is None),
            lambda files: [each for each, _ in self._run_all(patch, files)],
        )

    def make_variants(
        self,
        vary: Sequence[str],
        proven: Mapping[str, Sequence[int]] | None,
        *,
        draw: bool = True,
        everything: bool = False,
    ) -> Variants:
        """Two variants of the tests that decide; see `TaskRepository.make_variants`."""
        expected = self.expected
        self._reopen(2)
        tests = (*expected.fail_to_pass, *expected.pass_to_pass)
        return self._fresh[0].make_variants(tests, vary, proven, draw=draw, everything=everything)

    def close(self) -> None:
        """Removes the sandboxes. Idempotent."""
        self._closed = True
        while self._fresh:
            self._fresh.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @functools.cached_property
    def expected(self) -> Oracle:
        """The oracle, or the tests that are known of the original repository."""
        if self._oracle.fail_to_pass or self._oracle.pass_to_pass:
            return self._oracle
        known = _known.get(self._key)
        if known is None:
            with self._open(self._oracle) as repository:
                known = known_tests(repository.run({}), self._task.id)
            if self._task.workspace.content is not None or self._task.workspace.image is not None:
                while len(_known) >= KNOWN_KEPT:
                    _known.pop(next(iter(_known)), None)
                _known[self._key] = known
        return known

    def _run_all(self, patch: str, contents: Sequence[Mapping[str, bytes]]) -> list[tuple[TestRun, Applied]]:
        """Runs the tests with each of these contents of test files, all at the same time, and each with the patch."""
        self._reopen(len(contents))
        used = [self._fresh.pop(0) for _ in contents]
        try:
            if len(used) == 1:
                return [used[0].run_with(patch, contents[0], self.expected)]
            running = [
                _threads(os.getpid()).submit(each.run_with, patch, files, self.expected)
                for each, files in zip(used, contents, strict=True)
            ]
            wait(running)
            return [each.result() for each in running]
        finally:
            for each in used:
                each.close()

    def _reopen(self, count: int) -> None:
        if self._closed:
            raise SandboxError(f"task {self._task.id}: its verifier has been closed")
        while len(self._fresh) < count:
            self._fresh.append(self._open(self.expected))

    def _open(self, expected: Oracle) -> TaskRepository:
        rules = Rules(self._oracle, expected, self._task.entrypoint)
        return TaskRepository(self._task, rules, self._config, trusted=self._trusted)


_known: dict[str, Oracle] = {}
"""The known tests of tasks whose oracle names none, by the task."""


@functools.cache
def _threads(process: int) -> ThreadPoolExecutor:
    del process
    return ThreadPoolExecutor(THREADS, thread_name_prefix="gumshoe-variant")
