"""The scripted solver in front of every job; what it found is kept, so that nothing is worked out twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from gumshoe.collect.control import Control
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.eval.config import SolverConfig
from gumshoe.eval.memo import Memo, digest, work_off
from gumshoe.eval.solver.jobs import ALONE, Job, Solved
from gumshoe.eval.solver.packs import oracle_pack, static_pack
from gumshoe.eval.solver.scripted import Repair, repair_each
from gumshoe.records import ContextPack, Task

__all__ = ["ScriptedRuns"]


class ScriptedRuns:
    """The scripted solver's outcomes.

    Equal packs give equal repairs: they are worked out once, whichever arms they come from. The jobs of a task share
    a sandbox, and what was tried for one of them.

    Args:
        config: the solver.
        path: file of what is known; read if it is there, appended to.
        sandbox: where programs run.
        seed: of the order of the changes that are tried; with the sample it makes the seed of a job.
    """

    def __init__(self, config: SolverConfig, path: Path, sandbox: SandboxConfig, seed: int) -> None:
        self._config = config
        self._sandbox = sandbox
        self._seed = seed
        self._memo = Memo(path)

    def run(
        self, jobs: Iterable[Job], control: Control, workers: int, on_tick: Callable[[], None] = lambda: None
    ) -> dict[tuple[str, str, int], Solved]:
        """What came of each job, by arm, task id and sample; jobs that were not reached are missing.

        Raises GumshoeError: a sandbox failed.
        """
        wanted = list(jobs)
        groups: dict[tuple[str, int], dict[str, Job]] = {}
        for job in wanted:
            if self._memo.get(self._key(job)) is None:
                groups.setdefault((job.task.id, job.sample), {})[self._key(job)] = job
        work_off(groups.values(), self._solve, workers=workers, control=control, on_tick=on_tick)
        known = {job.place: self._memo.get(self._key(job)) for job in wanted}
        return {place: _solved(facts) for place, facts in known.items() if facts is not None}

    def _solve(self, jobs: Mapping[str, Job]) -> None:
        """Works out jobs of one task and one sample."""
        task, sample = next((job.task, job.sample) for job in jobs.values())
        began = time.monotonic()
        found = self._repair(task, list(jobs.values()), self._seed + sample)
        seconds = (time.monotonic() - began) / len(jobs)
        for (key, job), outcome in zip(jobs.items(), found, strict=True):
            self._memo.keep(
                key,
                {
                    "task_id": job.task.id,
                    "solved": outcome.solved,
                    "tries": outcome.tries,
                    "patch": outcome.patch,
                    "tests": outcome.tests,
                    "seconds": round(seconds, 3),
                },
            )

    def _repair(self, task: Task, jobs: Sequence[Job], seed: int) -> list[Repair]:
        sandbox = open_sandbox(task, self._sandbox, trusted=True)
        try:
            workspace = Workspace(task, sandbox)
            packs = [_pack_of(job, workspace) for job in jobs]
            return repair_each(workspace, packs, tries=self._config.tries, seed=seed)
        finally:
            sandbox.close()

    def _key(self, job: Job) -> str:
        """What the outcome depends on, as a digest."""
        looked_at: object = None
        if job.arm in ("static", "oracle_pack"):
            looked_at = job.arm
        elif job.pack is not None:
            looked_at = [(place.path, place.start, place.end) for place in job.pack.locations]
        return digest(job.task.hash, looked_at, self._config.tries, self._seed + job.sample)


def _pack_of(job: Job, workspace: Workspace) -> ContextPack | None:
    if job.arm == "static":
        return static_pack(workspace)
    if job.arm == "oracle_pack":
        return oracle_pack(job.oracle)
    return None if job.arm in ALONE else job.pack


def _solved(facts: Mapping[str, object]) -> Solved:
    tries, seconds = facts["tries"], facts["seconds"]
    assert isinstance(tries, int)
    assert isinstance(seconds, int | float)
    return Solved(
        float(bool(facts["solved"])),
        patch=str(facts["patch"]),
        steps=tries,
        seconds=seconds,
        tests=str(facts.get("tests", "")),
    )
