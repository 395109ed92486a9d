"""The solver in front of every task with every arm's pack, and beside them without one, with a static and the
oracle's one.
"""

from __future__ import annotations

import hashlib
import json
import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gumshoe.collect.control import Control
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import DatasetError, GumshoeError
from gumshoe.eval.config import SolverConfig
from gumshoe.eval.solver.packs import oracle_pack, static_pack
from gumshoe.eval.solver.scripted import repair
from gumshoe.records import ContextPack, Oracle, Task

__all__ = ["REFERENCE_ARMS", "Job", "SolverRuns", "reference_jobs"]

REFERENCE_ARMS = {
    "no_pack": "solver alone",
    "static": "static pack",
    "oracle_pack": "oracle pack",
}


@dataclass(frozen=True)
class Job:
    """One task for the solver, with the pack of an arm, or for one of the reference arms."""

    arm: str
    task: Task
    oracle: Oracle
    pack: ContextPack | None


class SolverRuns:
    """The solver's outcomes, kept in a JSON-lines file so that none is worked out twice.

    Equal packs give equal repairs: they are played once, whichever arms they come from.

    Args:
        config: the solver.
        path: the file; read if it is there, appended to.
        sandbox: where programs run.
        seed: order of the changes that are tried.
    """

    def __init__(self, config: SolverConfig, path: Path, sandbox: SandboxConfig, seed: int) -> None:
        self._config = config
        self._path = path
        self._sandbox = sandbox
        self._seed = seed
        self._guard = threading.Lock()
        self._known = _read(path)

    def run(
        self, jobs: Iterable[Job], control: Control, workers: int, on_tick: Callable[[], None] = lambda: None
    ) -> dict[tuple[str, str], float]:
        """1.0 where the job of (arm, task id) was solved, 0.0 where not; jobs that were not reached are missing.

        Raises GumshoeError: a sandbox failed.
        """
        wanted = list(jobs)
        todo: queue.SimpleQueue[tuple[str, Job]] = queue.SimpleQueue()
        for key, job in {self._key(job): job for job in wanted}.items():
            if key not in self._known:
                todo.put((key, job))
        errors: list[GumshoeError] = []
        threads = [
            threading.Thread(target=self._work, args=(todo, control, errors), daemon=True) for _ in range(workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.25)
                on_tick()
        if errors:
            raise errors[0]
        found = {(job.arm, job.task.id): self._known.get(self._key(job)) for job in wanted}
        return {place: float(solved) for place, solved in found.items() if solved is not None}

    def _work(self, todo: queue.SimpleQueue[tuple[str, Job]], control: Control, errors: list[GumshoeError]) -> None:
        while not control.finishing and not errors:
            try:
                key, job = todo.get_nowait()
            except queue.Empty:
                return
            try:
                self._keep(key, job, *self._solve(job))
            except GumshoeError as error:
                errors.append(error)

    def _solve(self, job: Job) -> tuple[bool, int]:
        sandbox = open_sandbox(job.task, self._sandbox, trusted=True)
        try:
            workspace = Workspace(job.task, sandbox)
            outcome = repair(workspace, _pack_of(job, workspace), tries=self._config.tries, seed=self._seed)
        finally:
            sandbox.close()
        return outcome.solved, outcome.tries

    def _keep(self, key: str, job: Job, solved: bool, tries: int) -> None:
        row = {"key": key, "task_id": job.task.id, "solved": solved, "tries": tries}
        with self._guard:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(row)}\n")
            self._known[key] = solved

    def _key(self, job: Job) -> str:
        """What the outcome depends on, as a digest."""
        if job.arm in ("static", "oracle_pack"):
            looked_at: object = job.arm
        else:
            looked_at = None if job.pack is None else [(one.path, one.start, one.end) for one in job.pack.locations]
        facts = [job.task.hash, looked_at, self._config.tries, self._seed]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


def _pack_of(job: Job, workspace: Workspace) -> ContextPack | None:
    if job.arm == "static":
        return static_pack(workspace)
    return oracle_pack(job.oracle) if job.arm == "oracle_pack" else job.pack


def reference_jobs(tasks: Iterable[tuple[Task, Oracle]]) -> list[Job]:
    """The jobs that need no seeker."""
    return [Job(arm, task, oracle, None) for task, oracle in tasks for arm in REFERENCE_ARMS]


def _read(path: Path) -> dict[str, bool]:
    """Outcomes by key; a torn last line is left out. Raises DatasetError."""
    if not path.exists():
        return {}
    known: dict[str, bool] = {}
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            path.write_text(text.removesuffix(line), encoding="utf-8")
            break
        try:
            row: Mapping[str, object] = json.loads(line)
            known[str(row["key"])] = row["solved"] is True
        except (ValueError, KeyError, TypeError):
            raise DatasetError(f"{path} line {number} is no outcome of the solver: remove the file") from None
    return known
