"""Runs the scripted solver on every attempt; what it finds is kept, so that nothing is computed twice."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.run.control import run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ConfigError
from gumshoe.eval.arms.arm import Attempt, AttemptKey, EvalRun, Hooks, Pair, Solution
from gumshoe.eval.arms.solvers.repair import Repair, repair_each
from gumshoe.eval.checks import Checks, count_lines
from gumshoe.eval.config import SolverConfig
from gumshoe.records import Task

__all__ = ["ScriptedSolver"]


class ScriptedSolver:
    """Tries small changes by rule on the lines that a pack points to.

    Equal packs give equal repairs, which are computed once, whichever arms the packs come from. The attempts on a task
    share a sandbox and the results of what was tried for any of them.

    Args:
        config: the solver.
        path: file of known results; read if it exists, and appended to.
        sandbox: where programs run.
        seed: for the order in which changes are tried; together with the sample, it gives the seed of an attempt.
    """

    title = "solver"

    def __init__(self, config: SolverConfig, path: Path, sandbox: SandboxConfig, seed: int) -> None:
        self.name = f"scripted, {config.tries} tries"
        self._tries = config.tries
        self._path = path
        self._sandbox = sandbox
        self._seed = seed

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """It is a fault if the tests of a task are hidden, so that no change can be tried."""
        hidden = next((task.id for task, _ in tasks if task.regime != "debug"), None)
        with checks.collect():
            if hidden is not None:
                raise ConfigError(
                    f"task {hidden} hides its tests, which the scripted solver needs: set solver.kind=policy, or "
                    "tasks.options.regime=debug"
                )
        return max(0, attempts - count_lines(self._path))

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """The outcome of each attempt; attempts that were not reached are missing. Raises SandboxError."""
        cache = JsonlCache(self._path)
        groups: dict[tuple[str, int], dict[str, Attempt]] = {}
        for one in attempts:
            if cache.get(self._key(one)) is None:
                groups.setdefault((one.task.id, one.sample), {})[self._key(one)] = one
        run_parallel(
            groups.values(),
            lambda group: self._solve_task(group, cache),
            workers=run.config.workers,
            control=run.control,
            on_tick=hooks.tick,
        )
        known = {one.key: cache.get(self._key(one)) for one in attempts}
        return {key: _solution(facts) for key, facts in known.items() if facts is not None}

    def close(self) -> None:
        """Nothing stays open."""

    def _solve_task(self, attempts: Mapping[str, Attempt], cache: JsonlCache) -> None:
        """Works on attempts of one task and one sample."""
        task, sample = next((one.task, one.sample) for one in attempts.values())
        began = time.monotonic()
        found = self._repair(task, list(attempts.values()), self._seed + sample)
        seconds = (time.monotonic() - began) / len(attempts)
        for (key, attempt), repair in zip(attempts.items(), found, strict=True):
            cache.keep(
                key,
                {
                    "task_id": attempt.task.id,
                    "solved": repair.solved,
                    "tries": repair.tries,
                    "patch": repair.patch,
                    "tests": repair.tests,
                    "seconds": round(seconds, 3),
                },
            )

    def _repair(self, task: Task, attempts: Sequence[Attempt], seed: int) -> list[Repair]:
        sandbox = open_sandbox(task, self._sandbox, trusted=True)
        try:
            packs = [one.pack for one in attempts]
            return repair_each(Workspace(task, sandbox), packs, tries=self._tries, seed=seed)
        finally:
            sandbox.close()

    def _key(self, attempt: Attempt) -> str:
        """What the outcome depends on, as a digest."""
        pack = attempt.pack
        places = None if pack is None else [(place.path, place.start, place.end) for place in pack.locations]
        return digest(attempt.task.hash, places, self._tries, self._seed + attempt.sample)


def _solution(facts: Mapping[str, object]) -> Solution:
    tries, seconds = facts["tries"], facts["seconds"]
    assert isinstance(tries, int)
    assert isinstance(seconds, int | float)
    return Solution(
        float(bool(facts["solved"])),
        patch=str(facts["patch"]),
        steps=tries,
        seconds=seconds,
        tests=str(facts.get("tests", "")),
    )
