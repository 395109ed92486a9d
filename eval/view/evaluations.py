"""An evaluation for its page: its summary, and the tasks behind every figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe.errors import DatasetError
from gumshoe.eval.results import ALL, Result, Summary
from gumshoe.eval.view.sources import Source, inside

__all__ = ["evaluation_of", "scores_of_task"]


def evaluation_of(source: Source, keys: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The figures of an evaluation.

    Args:
        source: the evaluation.
        keys: by (arm, id of the trajectory), the address of the episode.

    Returns:
        `summary` (None while it is being played), and `results`: arm, task, group, sample, scores, stop, key.

    Raises:
        DatasetError: its files cannot be read.
    """
    return {
        "slug": source.slug,
        "name": source.path.name,
        "summary": _summary(source),
        "results": [
            {
                "arm": one.arm,
                "task": one.task_id,
                "split": one.split,
                "sample": one.sample,
                "stop": one.stop.value if one.stop else None,
                "scores": one.scores,
                "tags": one.tags,
                "key": keys.get((one.arm, one.trajectory)),
            }
            for one in _results(source)
        ],
    }


def scores_of_task(source: Source, task: str, trajectory: str, arm: str) -> dict[str, Any]:
    """What the evaluation says of one episode, and what its solver did with the other packs of the task.

    `scores` are the episode's own; `solver` has an entry for each arm in which the solver was measured on the task.
    """
    found = [one for one in _results(source) if one.task_id == task]
    summary = _summary(source)
    titles = {one["name"]: one["title"] for one in summary["arms"]} if summary else {}
    own = next((one for one in found if one.arm == arm and one.trajectory == trajectory), None)
    return {
        "evaluation": source.slug,
        "arm": arm,
        "title": titles.get(arm, arm),
        "scores": own.scores if own is not None else {},
        "solver": [
            {"arm": one.arm, "title": titles.get(one.arm, one.arm), "solved": one.scores["solved"]}
            for one in found
            if one.sample == 0 and one.scores.get("solved") is not None
        ],
    }


def _summary(source: Source) -> dict[str, Any] | None:
    file = source.path / "summary.json"
    if not inside(file, source.root):
        return None
    try:
        summary = Summary.model_validate_json(_read(file))
    except ValidationError as error:
        raise DatasetError(f"summary.json is no summary: {_first(error)}") from None
    groups = {ALL: summary.tasks.get(ALL, 0), **summary.tasks}
    return {**summary.model_dump(mode="json"), "tasks": groups}


def _results(source: Source) -> Sequence[Result]:
    file = source.path / "results.jsonl"
    if not inside(file, source.root):
        return []
    try:
        return [Result.model_validate_json(line) for line in _read(file).splitlines() if line.strip()]
    except ValidationError as error:
        raise DatasetError(f"results.jsonl holds a line that is no result: {_first(error)}") from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DatasetError(f"{file.name} cannot be read: {error.strerror}") from None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'][:200]}"
