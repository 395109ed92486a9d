"""Where packs come from without an episode: nowhere, reading alone, the gold patch, another explorer's answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe import __version__
from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.episode.spec import task_ref
from gumshoe.collect.run.parallel import run_parallel
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import AnyTasks, EvalRun, Hooks, Packs, Pair
from gumshoe.eval.arms.explorers import FORMATS, ExplorerAnswer, NameLookup
from gumshoe.eval.arms.readers import oracle_pack, static_pack
from gumshoe.eval.config import AnswersConfig
from gumshoe.eval.scorers.fetch import check_sources, fetch_sources
from gumshoe.eval.scorers.sources import Sources
from gumshoe.records import ContextPack, Message, PolicyInfo, Provenance, StopReason, Task, Trajectory
from gumshoe.storage import describe, read_jsonl

__all__ = ["AnswerPacks", "NoPacks", "OraclePacks", "StaticPacks"]


class NoPacks(AnyTasks):
    """The solver gets the problem statement alone."""

    policy = None

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """None instead of a pack, for every task and sample."""
        return _each_sample(run, {})


class OraclePacks(AnyTasks):
    """The lines that the gold patch touches: the most that any report could say about places."""

    policy = None

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """A pack for each task. Raises TaskError for a gold patch that cannot be read."""
        return _each_sample(run, {task.id: oracle_pack(oracle) for task, oracle in run.tasks})


class StaticPacks(AnyTasks):
    """The functions that the problem statement names, found by reading alone and kept in a file: it takes a sandbox."""

    policy = None

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """A pack for each task. Raises SandboxError."""
        cache = JsonlCache(run.out / "solver" / "static.jsonl")

        def read(task: Task) -> None:
            sandbox = open_sandbox(task, run.config.sandbox, trusted=True)
            try:
                pack = static_pack(Workspace(task, sandbox))
            finally:
                sandbox.close()
            cache.keep(digest(task.hash), {"task_id": task.id, "pack": pack.model_dump(mode="json")})

        todo = [task for task, _ in run.tasks if cache.get(digest(task.hash)) is None]
        run_parallel(todo, read, workers=run.config.workers, control=run.control, on_tick=hooks.tick)
        known = {task.id: cache.get(digest(task.hash)) for task, _ in run.tasks}
        found = {name: ContextPack.model_validate(facts["pack"]) for name, facts in known.items() if facts is not None}
        packs = _each_sample(run, found)
        return Packs({key: pack for key, pack in packs.packs.items() if pack is not None})


class AnswerPacks:
    """Another explorer's answers, read from a file: an episode without turns for each task.

    Args:
        config: the file and its format.
        path: the file, its variables filled in.

    Raises:
        DatasetError: the file cannot be read, or one of its lines is not an answer.
    """

    def __init__(self, config: AnswersConfig, path: Path) -> None:
        self._config = config
        self._path = path
        self._given = self._read()
        self.policy = PolicyInfo(kind=config.format, agent="seeker")

    def check(self, tasks: Sequence[Pair]) -> None:
        """Raises DatasetError if no line answers one of the tasks."""
        if not any(task.id in self._given for task, _ in tasks):
            named = f"; it has {next(iter(self._given))}, for example" if self._given else ""
            raise DatasetError(f"{self._path} answers none of the tasks, such as {tasks[0][0].id}{named}")

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """A pack for each task; without an answer in the file, an empty pack and an episode that handed over nothing.

        Raises:
            DatasetError: an answer is not in its format.
            TaskError: a task has neither its image here nor a repository with its base commit.
            SandboxError: the files of a task in an image, needed to look up function names, cannot be read.
        """
        check_sources((task for task, _ in run.tasks), run.config.sandbox, run.repositories)
        rough = [self._episode(task, self._answer(task, Sources([]))) for task, _ in run.tasks]
        path, config = run.out / "answers.jsonl", run.config
        fetched = fetch_sources(run.tasks, rough, config.sandbox, path, run.control, config.workers, run.repositories)
        sources = Sources((task for task, _ in run.tasks), fetched)
        answers = {task.id: self._answer(task, sources) for task, _ in run.tasks}
        episodes = {(task.id, 0): self._episode(task, answers[task.id]) for task, _ in run.tasks}
        return Packs(
            {key: one.context_pack or ContextPack() for key, one in episodes.items()},
            episodes,
            ranked={
                name: answer.ranked
                for name, answer in answers.items()
                if answer is not None and answer.ranked is not None
            },
        )

    def _episode(self, task: Task, answer: ExplorerAnswer | None) -> Trajectory:
        return Trajectory(
            id=f"{task.id}#answer",
            task=task_ref(task),
            policy=self.policy,
            tools=(),
            messages=(Message(role="user", content=task.problem_statement),),
            steps=(),
            stop=StopReason.UNKNOWN if answer is None else StopReason.REPORTED,
            context_pack=None if answer is None else answer.pack,
            provenance=Provenance(gumshoe=__version__, python="", sandbox="none"),
        )

    def _answer(self, task: Task, sources: Sources) -> ExplorerAnswer | None:
        given = self._given.get(task.id)
        if given is None:
            return None
        try:
            return FORMATS[self._config.format].read(given, NameLookup(sources, task.id))
        except ValidationError as error:
            raise DatasetError(f"{self._path}: the pack of {task.id} is invalid: {describe(error)}") from None
        except json.JSONDecodeError:
            raise DatasetError(f"{self._path}: the answer to {task.id} is not JSON") from None
        except ValueError as error:
            raise DatasetError(f"{self._path}: the answer to {task.id} cannot be read: {error}") from None

    def _read(self) -> dict[str, Any]:
        """What each line gives, by task id."""
        column = FORMATS[self._config.format].column
        given: dict[str, Any] = {}
        for number, row in read_jsonl(self._path):
            name = row.get("task_id") or row.get("instance_id")
            if not name or column not in row:
                raise DatasetError(
                    f"{self._path} line {number} is not an answer: it needs task_id and {column} "
                    f"(format {self._config.format})"
                )
            given[str(name)] = row["answer"] if column == "answer" else row
        return given


def _each_sample(run: EvalRun, packs: Mapping[str, ContextPack]) -> Packs:
    """The pack of each task, for every sample; None where there is none."""
    samples = range(run.config.tasks.samples)
    return Packs({(task.id, sample): packs.get(task.id) for task, _ in run.tasks for sample in samples})
