"""Episodes as records, whatever they are stored in: a line of a run, a row of a dataset, a journal in progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from gumshoe.collect.data.journal import read_journal
from gumshoe.collect.data.messages import AnsweredTurn, assemble, foreign_task, from_messages, reading
from gumshoe.errors import DatasetError
from gumshoe.eval.view.sources import inside
from gumshoe.records import (
    Completion,
    ContextPack,
    Observation,
    PolicyInfo,
    Provenance,
    Score,
    Step,
    StopReason,
    TaskRef,
    Trajectory,
    Usage,
)
from gumshoe.storage import describe

BATCH = 64
"""Rows of a shard that are decoded at a time."""
JSON_COLUMNS = frozenset(
    {
        *("messages", "tools", "steps", "sampled", "context_pack", "task_tags", "usage", "provenance"),
        *("prompt", "completion", "chosen", "rejected"),
    }
)


def read_trajectory_line(data: bytes) -> Trajectory:
    """The finished episode in a line of a run. Raises DatasetError."""
    try:
        return Trajectory.model_validate_json(data)
    except ValidationError as error:
        raise DatasetError(f"this is not a trajectory: {describe(error)}") from None


def read_trajectory_row(row: Mapping[str, Any]) -> Trajectory:
    """A dataset's row as an episode. Raises DatasetError.

    What the columns do not hold is missing: the data of observations, and when each step was. `resolved` is a score.
    """
    messages, tools = conversation_in(row), [tool for tool in row.get("tools") or () if isinstance(tool, dict)]
    episode = from_messages(messages, tools, name=str(row.get("task_id") or "unnamed"), source=_text(row, "source"))
    resolved = row.get("resolved")
    with reading("this row"):
        return episode.model_copy(
            update={
                "id": _text(row, "id"),
                "task": TaskRef(
                    id=_text(row, "task_id"),
                    hash="",
                    source=_text(row, "source"),
                    regime="debug",
                    tags=row.get("task_tags") or {},
                ),
                "policy": PolicyInfo(kind=_text(row, "policy"), model=_text(row, "model"), agent=_text(row, "agent")),
                "steps": tuple(_with_table(episode.steps, row.get("steps") or ())),
                "stop": StopReason(row["stop"]) if row.get("stop") else StopReason.UNKNOWN,
                "patch": _text(row, "patch"),
                "context_pack": ContextPack.model_validate(row["context_pack"]) if row.get("context_pack") else None,
                "scores": () if resolved is None else (Score(name="resolved", value=float(resolved)),),
                "usage": Usage.model_validate(row.get("usage") or {}),
                "provenance": Provenance.model_validate(
                    {"gumshoe": "", "python": "", "sandbox": "", **(row.get("provenance") or {})}
                ),
            }
        )


def read_live_episode(path: Path, root: Path) -> Trajectory | None:
    """The episode whose journal is at `path`; prompts are not in it.

    None if the journal has disappeared, is damaged, or leads out of `root`.
    """
    if not inside(path, root):
        return None
    try:
        content = read_journal(path)
    except DatasetError:
        return None
    if content.episode is None:
        return None
    name = str(content.episode.get("id", ""))
    turns = [
        AnsweredTurn(turn.completion, tuple(_observed(turn.completion, turn.observations or ())))
        for turn in content.turns
    ]
    episode = assemble(
        turns,
        task=foreign_task(name.rpartition("#")[0] or name, source=""),
        policy=PolicyInfo(kind="", model=turns[0].completion.model if turns else "", agent=""),
        tools=(),
    )
    steps = tuple(step.model_copy(update={"decision": step.stated}) for step in episode.steps)
    return episode.model_copy(update={"id": name, "steps": steps})


def conversation_in(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conversation in a dataset's row: its messages, or a prompt with its completion, the better one of two."""
    columns = (row.get(name) for name in ("messages", "prompt", "completion", "chosen"))
    return [
        message for column in columns if isinstance(column, list) for message in column if isinstance(message, dict)
    ]


def read_new_lines(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of the whole lines from the byte `start` on; one that is still being written is left out."""
    with path.open("rb") as file:
        file.seek(start)
        for data in file:
            if not data.endswith(b"\n"):
                return
            yield start, data[:-1]
            start += len(data)


def read_line(path: Path, offset: int, length: int) -> bytes:
    """The bytes of a line. Raises DatasetError if the file has changed."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(length + 1)
    except OSError as error:
        raise DatasetError(f"{path.name} cannot be read: {error.strerror}") from None
    if len(data) != length + 1 or not data.endswith(b"\n"):
        raise DatasetError(f"{path.name} has changed: reload the page")
    return data[:-1]


def read_shard(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet shard, their JSON columns decoded. Raises DatasetError."""
    yield from _rows(path, lambda file: file.iter_batches(BATCH))


def read_row(path: Path, number: int) -> dict[str, Any]:
    """One row of a Parquet shard; only its row group is read. Raises DatasetError."""

    def only(file: Any) -> Iterator[Any]:
        left = number
        for group in range(file.metadata.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if left < size:
                yield file.read_row_group(group).slice(left, 1)
                return
            left -= size

    row = next(_rows(path, only), None)
    if row is None:
        raise DatasetError(f"{path.name} has changed: reload the page")
    return row


def _rows(path: Path, tables: Any) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for table in tables(file):
                for row in table.to_pylist():
                    yield {name: _decode(value) if name in JSON_COLUMNS else value for name, value in row.items()}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{path.name} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _with_table(steps: Sequence[Step], table: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    """The steps with what only the step table of a row says of them."""
    entries = {entry["step"]: entry for entry in reversed(table)}
    for step in steps:
        entry = entries.get(step.index, {})
        known = {name: entry[name] for name in ("decision", "confidence", "rationale", "reward") if name in entry}
        failures = [line.get("failure") for line in table if line["step"] == step.index]
        seen = [
            one.model_dump() | {"failure": {"kind": failure, "message": ""} if failure else None}
            for one, failure in zip(step.observations, failures or [None] * len(step.observations), strict=False)
        ]
        yield Step.model_validate(step.model_dump() | known | {"observations": seen})


def _observed(completion: Completion, texts: Sequence[str]) -> Iterator[Observation]:
    for call, text in zip(completion.tool_calls, texts, strict=False):
        yield Observation(tool=call.name, text=text)


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def _decode(value: Any) -> Any:
    """The JSON in a column, where it is in text, alone or in a list."""
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, str):
        return value
    try:
        return from_json(value)
    except ValueError:
        return value
