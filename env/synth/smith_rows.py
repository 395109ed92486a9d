"""Synthetic bugs as rows of SWE-smith: a patch that puts the bug in, and the tests that fail and pass with it.

`gumshoe tasks ... swesmith:FOLDER/rows.jsonl` reads them again; so does whatever reads SWE-smith's rows. In place of an
image, `project` names the clean project as a task set does.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gumshoe.env.diff import reverse_patch
from gumshoe.records import Oracle, Task
from gumshoe.storage import write_jsonl

__all__ = ["ROWS", "smith_row", "write_rows"]

ROWS = "rows.jsonl"


def smith_row(task: Task, oracle: Oracle) -> dict[str, Any]:
    """The row of one synthetic bug, as `make_bugs` gives it."""
    return {
        "instance_id": task.id.replace("/", "."),
        "repo": task.tags["project"],
        "patch": reverse_patch(oracle.gold_patch),
        "FAIL_TO_PASS": list(oracle.fail_to_pass),
        "PASS_TO_PASS": list(oracle.pass_to_pass),
        "image_name": "",
        "problem_statement": task.problem_statement,
        "strategy": task.tags["operator"],
        "project": task.workspace.path,
    }


def write_rows(folder: Path, tasks: Iterable[tuple[Task, Oracle]]) -> Path:
    """Replaces rows.jsonl in a folder. Equal tasks give equal bytes."""
    path = folder / ROWS
    write_jsonl(path, (smith_row(task, oracle) for task, oracle in tasks))
    return path
