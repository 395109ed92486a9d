"""Arms that are not played here: what other explorers have answered, read as packs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe import __version__
from gumshoe.collect.control import Control
from gumshoe.collect.rollout import task_ref
from gumshoe.collect.runner import RunResult
from gumshoe.errors import DatasetError
from gumshoe.eval.arms import PlayedArm
from gumshoe.eval.config import AnswersConfig, ArmConfig, EvalConfig
from gumshoe.eval.fetch import fetch_sources
from gumshoe.eval.scorers.sources import Sources
from gumshoe.eval.solver.packs import read_codescout, read_fastcontext
from gumshoe.records import ContextPack, Message, Oracle, PolicyInfo, Provenance, StopReason, Task, Trajectory

__all__ = ["answered_arm"]

Pairs = Sequence[tuple[Task, Oracle]]


def answered_arm(config: EvalConfig, arm: ArmConfig, tasks: Pairs, control: Control) -> PlayedArm:
    """The arm with an episode without turns for each task: its pack is what the file says; nothing where it is silent.

    Raises:
        DatasetError: the file cannot be read, or a line of it is no answer.
        SandboxError: the files of a task in an image cannot be read, which names of functions are looked up in.
    """
    assert arm.answers is not None
    answers = _read(Path(config.fill(arm.answers.path)))
    rough = {task.id: _pack(arm.answers, answers.get(task.id), Sources([]), task.id) for task, _ in tasks}
    episodes = [_episode(arm, task, rough[task.id]) for task, _ in tasks]
    path = Path(config.out) / "answers.jsonl"
    fetched = fetch_sources(tasks, episodes, config.sandbox, path, control, config.workers)
    sources = Sources((task for task, _ in tasks), fetched)
    found = [(0, _episode(arm, task, _pack(arm.answers, answers.get(task.id), sources, task.id))) for task, _ in tasks]
    return PlayedArm(arm, RunResult(len(found), len(found), 0, 0, None), tuple(found))


def _pack(config: AnswersConfig, answer: Any, sources: Sources, task_id: str) -> ContextPack | None:
    if answer is None:
        return None
    if config.format == "fastcontext":
        return read_fastcontext(answer if isinstance(answer, str) else "")
    if config.format == "codescout":
        given = json.loads(answer) if isinstance(answer, str) else answer
        return read_codescout(given if isinstance(given, dict) else {}, sources, task_id)
    try:
        return ContextPack.model_validate(answer)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DatasetError(f"{config.path}: the pack of {task_id} is wrong: {first['msg']}") from None


def _episode(arm: ArmConfig, task: Task, pack: ContextPack | None) -> Trajectory:
    assert arm.answers is not None
    return Trajectory(
        id=f"{task.id}#answer",
        task=task_ref(task),
        policy=PolicyInfo(kind=arm.answers.format, agent="seeker"),
        tools=(),
        messages=(Message(role="user", content=task.problem_statement),),
        steps=(),
        stop=StopReason.UNKNOWN if pack is None else StopReason.REPORTED,
        context_pack=pack,
        provenance=Provenance(gumshoe=__version__, python="", sandbox="none"),
    )


def _read(path: Path) -> dict[str, Any]:
    """The answers by task id."""
    answers: dict[str, Any] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DatasetError(f"the answers {path} cannot be read: {error}") from None
    for number, line in enumerate(lines, start=1):
        try:
            row: Mapping[str, Any] = json.loads(line)
            answers[str(row.get("task_id") or row["instance_id"])] = row["answer"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DatasetError(f"{path} line {number} is no answer: it needs task_id and answer") from None
    return answers
