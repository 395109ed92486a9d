"""Where packs come from without an episode: nowhere, reading alone, the gold patch, another explorer's answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe import __version__
from gumshoe.collect.spec import task_ref
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import EvalRun, Hooks, Packs, Pair
from gumshoe.eval.arms.readers import oracle_pack, read_codescout, read_fastcontext, static_pack
from gumshoe.eval.config import AnswersConfig
from gumshoe.eval.scorers.fetch import fetch_sources
from gumshoe.eval.scorers.sources import Sources
from gumshoe.eval.work.cache import JsonlCache, digest
from gumshoe.eval.work.parallel import run_parallel
from gumshoe.records import ContextPack, Message, PolicyInfo, Provenance, StopReason, Task, Trajectory
from gumshoe.storage import describe, read_jsonl

__all__ = ["AnswerPacks", "NoPacks", "OraclePacks", "StaticPacks"]


class NoPacks:
    """The solver gets the problem statement alone."""

    policy = None

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """No pack for every task and sample."""
        return _each_sample(run, {})


class OraclePacks:
    """The lines that the gold patch touches: the most that any report could say about places."""

    policy = None

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """A pack for each task. Raises TaskError for a gold patch that cannot be read."""
        return _each_sample(run, {task.id: oracle_pack(oracle) for task, oracle in run.tasks})


class StaticPacks:
    """The functions that the problem statement names, found by reading alone; kept in a file, as it takes a sandbox."""

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
    """What another explorer has answered, read from a file: an episode without turns for each task.

    Args:
        config: the file and its format.
        path: the file, its variables filled in.
    """

    def __init__(self, config: AnswersConfig, path: Path) -> None:
        self._config = config
        self._path = path
        self.policy = PolicyInfo(kind=config.format, agent="seeker")

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """A pack for each task; where the file has no answer, an empty one, and an episode that handed nothing over.

        Raises:
            DatasetError: the file cannot be read, or a line of it is no answer.
            SandboxError: the files of a task in an image cannot be read, which names of functions are looked up in.
        """
        answers = _read(self._path)
        rough = [self._episode(pair, answers, Sources([])) for pair in run.tasks]
        path, config = run.out / "answers.jsonl", run.config
        fetched = fetch_sources(run.tasks, rough, config.sandbox, path, run.control, config.workers)
        sources = Sources((task for task, _ in run.tasks), fetched)
        episodes = {(pair[0].id, 0): self._episode(pair, answers, sources) for pair in run.tasks}
        return Packs({key: one.context_pack or ContextPack() for key, one in episodes.items()}, episodes)

    def _episode(self, pair: Pair, answers: dict[str, Any], sources: Sources) -> Trajectory:
        task = pair[0]
        pack = self._pack(answers.get(task.id), sources, task.id)
        return Trajectory(
            id=f"{task.id}#answer",
            task=task_ref(task),
            policy=self.policy,
            tools=(),
            messages=(Message(role="user", content=task.problem_statement),),
            steps=(),
            stop=StopReason.UNKNOWN if pack is None else StopReason.REPORTED,
            context_pack=pack,
            provenance=Provenance(gumshoe=__version__, python="", sandbox="none"),
        )

    def _pack(self, answer: Any, sources: Sources, task_id: str) -> ContextPack | None:
        if answer is None:
            return None
        try:
            return READERS[self._config.format](answer, sources, task_id)
        except ValidationError as error:
            raise DatasetError(f"{self._path}: the pack of {task_id} is invalid: {describe(error)}") from None
        except ValueError:
            raise DatasetError(f"{self._path}: the answer to {task_id} is not JSON") from None


def _fastcontext(answer: Any, sources: Sources, task_id: str) -> ContextPack:
    return read_fastcontext(answer if isinstance(answer, str) else "")


def _codescout(answer: Any, sources: Sources, task_id: str) -> ContextPack:
    given = json.loads(answer) if isinstance(answer, str) else answer
    return read_codescout(given if isinstance(given, dict) else {}, sources, task_id)


def _pack(answer: Any, sources: Sources, task_id: str) -> ContextPack:
    return ContextPack.model_validate(answer)


READERS: Mapping[str, Callable[[Any, Sources, str], ContextPack]] = {
    "fastcontext": _fastcontext,
    "codescout": _codescout,
    "pack": _pack,
}


def _read(path: Path) -> dict[str, Any]:
    """The answers by task id."""
    answers: dict[str, Any] = {}
    for number, row in read_jsonl(path):
        try:
            answers[str(row.get("task_id") or row["instance_id"])] = row["answer"]
        except KeyError:
            raise DatasetError(f"{path} line {number} is not an answer: it needs task_id and answer") from None
    return answers


def _each_sample(run: EvalRun, packs: Mapping[str, ContextPack]) -> Packs:
    """The pack of each task, for every sample; None where there is none."""
    samples = range(run.config.tasks.samples)
    return Packs({(task.id, sample): packs.get(task.id) for task, _ in run.tasks for sample in samples})
