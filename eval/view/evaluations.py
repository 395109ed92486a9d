"""An evaluation for its page: its summary, and the tasks behind every figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe.errors import DatasetError
from gumshoe.eval.results import ALL, Result, Summary
from gumshoe.eval.view.sources import Source, inside

__all__ = ["evaluation_of", "read_results", "read_summary"]


def evaluation_of(source: Source, keys: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The figures of an evaluation.

    Args:
        source: the evaluation.
        keys: by (arm, id of the trajectory), the address of the episode.

    Returns:
        `summary` (None while it is being played), and `results`: arm, task, group, sample, scores, stop, the addresses
        of the episode (`key`) and of the solver's (`solver_key`).

    Raises:
        DatasetError: its files cannot be read.
    """
    return {
        "slug": source.slug,
        "name": source.path.name,
        "summary": read_summary(source),
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
                "solver_key": keys.get((one.arm, one.solver)),
            }
            for one in read_results(source)
        ],
    }


def read_summary(source: Source) -> dict[str, Any] | None:
    """Its summary, as JSON; None while there is none. Raises DatasetError."""
    file = source.path / "summary.json"
    if not inside(file, source.root):
        return None
    try:
        summary = Summary.model_validate_json(_read(file))
    except ValidationError as error:
        raise DatasetError(f"summary.json is no summary: {_first(error)}") from None
    groups = {ALL: summary.tasks.get(ALL, 0), **summary.tasks}
    return {**summary.model_dump(mode="json"), "tasks": groups}


def read_results(source: Source) -> Sequence[Result]:
    """The results that it has. Raises DatasetError."""
    file = source.path / "results.jsonl"
    if not inside(file, source.root):
        return []
    try:
        facts = file.stat()
        return _parsed(file, (facts.st_ino, facts.st_size, facts.st_mtime_ns))
    except OSError as error:
        raise DatasetError(f"results.jsonl cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise DatasetError(f"results.jsonl holds a line that is no result: {_first(error)}") from None


@lru_cache(maxsize=4)
def _parsed(file: Path, state: tuple[int, int, int]) -> Sequence[Result]:
    """The results in a file, read once for each `state` of it."""
    return tuple(Result.model_validate_json(line) for line in _read(file).splitlines() if line.strip())


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DatasetError(f"{file.name} cannot be read: {error.strerror}") from None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'][:200]}"
