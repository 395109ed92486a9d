"""Writes tasks as rows for the official SWE-bench harness, with what their images are built from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.env.export.context import context_refusal, named, write_context
from gumshoe.env.export.harness_rows import eval_script, harness_row
from gumshoe.env.tasks.rows import ROOT
from gumshoe.env.verifier.repository import launch
from gumshoe.env.verifier.rules import named_test_files
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import new_folder

__all__ = ["Exported", "export_tasks"]

ROWS, BUILD = "rows.jsonl", "build.sh"
BASE = "gumshoe-base"
COMMIT = f"""\
RUN git init -q . && git add -A -f . \\
 && git -c user.name=gumshoe -c user.email=gumshoe@localhost commit -q -m base && git tag {BASE}
"""


@dataclass(frozen=True)
class Exported:
    """How many tasks were written, and why others were not, by their ids."""

    count: int
    refused: dict[str, str]


def export_tasks(tasks: Iterable[tuple[Task, Oracle]], out: Path, *, base_image: str | None = None) -> Exported:
    """Writes tasks to a new folder.

    Args:
        tasks: with their answers.
        out: replaced when all is written.
        base_image: what images are built from; None: the Python image for the task's version.

    Raises:
        TaskError: no task can be exported.
    """
    refused: dict[str, str] = {}
    count = 0
    with new_folder(out) as fresh:
        for task, oracle in tasks:
            reason = _refusal(task, oracle)
            if reason is None:
                try:
                    _write_row(task, oracle, fresh, base_image)
                    count += 1
                except TaskError as error:
                    reason = str(error).removeprefix(f"task {task.id}: ")
            if reason is not None:
                refused[task.id] = reason
        if not count:
            first = next(iter(refused.items()), None)
            raise TaskError("no task can be exported to swebench" + (f": {first[0]}: {first[1]}" if first else ""))
    return Exported(count, refused)


def _refusal(task: Task, oracle: Oracle) -> str | None:
    """Why the harness cannot judge a task; None where it can."""
    if task.source == "swebench":
        return None
    if not oracle.fail_to_pass:
        return "its answer names no test that is to pass, and the harness needs one"
    argv = launch(task.entrypoint, "").argv
    if not any(word in ("pytest", "bare-pytest") for word in argv[:4]):
        return f"its tests are run by `{shlex.join(task.entrypoint)}`, and the harness reads the output of pytest"
    return context_refusal(task)


def _write_row(task: Task, oracle: Oracle, out: Path, base: str | None) -> None:
    """Adds a task's row to rows.jsonl; one that comes as a folder gets an image to build, too. Raises TaskError."""
    if task.source == "swebench":
        row = _row_of_instance(task, oracle)
    else:
        row = _row_of_folder(task, oracle)
        placed = task.model_copy(update={"workspace": task.workspace.model_copy(update={"workdir": ROOT})})
        place = f"images/{row['instance_id']}"
        write_context(placed, out / place, base, COMMIT)
        with (out / BUILD).open("a", encoding="utf-8") as script:
            script.write(f'docker build -t {row["image"]} "$(dirname "$0")"/{place}\n')
    with (out / ROWS).open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def _row_of_instance(task: Task, oracle: Oracle) -> dict[str, Any]:
    known = {"repo": task.tags["project"], "base_commit": task.tags["base_commit"], "version": task.tags["version"]}
    return harness_row({**_columns(task, oracle, task.id), **known, "image": task.workspace.image})


def _row_of_folder(task: Task, oracle: Oracle) -> dict[str, Any]:
    name = named(task.id)
    hidden = oracle.test_patch if task.regime == "issue" else ""
    repo = Path(str(task.workspace.path))
    tests = [path for path in named_test_files(oracle) if (repo / path).is_file()]
    return {
        **_columns(task, oracle, name),
        "test_patch": hidden,
        "repo": f"gumshoe/{task.tags.get('project') or name}",
        "base_commit": BASE,
        "version": "",
        "image": f"gumshoe/{name}:{task.hash[:12]}",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "eval_script": eval_script(hidden, BASE, f"{shlex.join(task.entrypoint)} -rA", tests),
    }


def _columns(task: Task, oracle: Oracle, name: str) -> dict[str, Any]:
    return {
        "instance_id": name,
        "problem_statement": task.problem_statement,
        "patch": oracle.gold_patch,
        "test_patch": oracle.test_patch,
        "FAIL_TO_PASS": json.dumps(oracle.fail_to_pass),
        "PASS_TO_PASS": json.dumps(oracle.pass_to_pass),
    }
