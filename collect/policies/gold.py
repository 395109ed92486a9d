"""The gold patch as the teacher needs it: lines to look at, and calls of `rewrite` that make exactly its changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import JsonValue
from unidiff.patch import Hunk, PatchedFile, PatchSet

from gumshoe.env.diff import gold_lines
from gumshoe.errors import TaskError
from gumshoe.records import Oracle

IDLE = re.compile(r"\s*(?:#|import\s|from\s.*\simport\s|$)")
"""A line that does nothing when it runs, or only imports."""


@dataclass(frozen=True)
class GoldEdit:
    """Lines `start` to `end` of a file become `code`. `end` is `start - 1` if lines are only inserted.

    `start` is None for a new file.
    """

    path: str
    start: int | None
    end: int | None
    code: str

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments of the call of `rewrite` that makes it."""
        if self.start is None:
            return {"path": self.path, "code": self.code}
        return {"path": self.path, "code": self.code, "start": self.start, "end": self.end}


@dataclass(frozen=True)
class Gold:
    """`lines`: those of the buggy files that are touched, by path; `cause`: those among them that do more than import
    and comment, or all if none does; `changes`: last line first within a file; `texts`: the lines that the patch shows,
    by path and number.
    """

    lines: Mapping[str, frozenset[int]]
    cause: Mapping[str, frozenset[int]]
    changes: tuple[GoldEdit, ...]
    texts: Mapping[str, Mapping[int, str]]

    @property
    def places(self) -> list[tuple[str, int]]:
        """The first line of the cause in each file, in the patch's order."""
        return [(path, min(numbers)) for path, numbers in self.cause.items() if numbers]


def read_gold(oracle: Oracle) -> Gold:
    """The gold patch taken apart.

    Raises TaskError for an empty one, and for one that edits cannot make: it deletes, renames or replaces whole files.
    """
    lines = {path: frozenset(numbers) for path, numbers in gold_lines(oracle.gold_patch).items()}
    files = PatchSet(oracle.gold_patch)
    changes = [change for file in files for change in _changes(file, oracle.task_id)]
    if not changes:
        raise TaskError(f"task {oracle.task_id} has an empty gold patch: there is nothing to teach")
    texts = {
        file.path: {
            line.source_line_no: line.value for hunk in file for line in hunk if line.source_line_no is not None
        }
        for file in files
    }
    return Gold(lines, _cause(changes, texts) or lines, tuple(changes), texts)


def _cause(changes: Sequence[GoldEdit], texts: Mapping[str, Mapping[int, str]]) -> dict[str, frozenset[int]]:
    """The lines that changes replace, or before which they insert, without those of imports and comments."""
    found: dict[str, set[int]] = {}
    for change in changes[::-1]:
        if change.start is None or change.end is None:
            continue
        removed = [texts[change.path][line] for line in range(change.start, change.end + 1)]
        if not all(IDLE.match(line) for line in [*removed, *change.code.splitlines()]):
            last = max(change.end, change.start - 1, 1)
            found.setdefault(change.path, set()).update(range(min(change.start, last), last + 1))
    return {path: frozenset(lines) for path, lines in found.items()}


def _changes(file: PatchedFile, task_id: str) -> list[GoldEdit]:
    if file.is_removed_file or file.is_rename or file.is_binary_file:
        raise TaskError(f"the gold patch of {task_id} removes, renames or replaces {file.path} as a whole")
    if file.is_added_file:
        return [GoldEdit(file.path, None, None, "".join(line.value for hunk in file for line in hunk))]
    found = [change for hunk in file for change in _runs(file.path, hunk)]
    return found[::-1]


def _runs(path: str, hunk: Hunk) -> Iterator[GoldEdit]:
    """Each run of changed lines between context lines."""
    following = hunk.source_start + (1 if hunk.source_length == 0 else 0)
    lines = [line for line in hunk if line.is_context or line.is_added or line.is_removed]
    for is_context, run in groupby(lines, key=lambda line: line.is_context):
        of_run = list(run)
        replaced = sum(not line.is_added for line in of_run)
        if not is_context:
            added = "".join(line.value for line in of_run if line.is_added)
            yield GoldEdit(path, following, following + replaced - 1, added)
        following += replaced
