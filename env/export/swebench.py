"""Rows for the official SWE-bench harness, and what their images are built from."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from gumshoe.env.export.context import context_refusal, named, write_context
from gumshoe.env.export.harness_rows import eval_script, harness_row
from gumshoe.env.tasks.rows import ROOT
from gumshoe.env.verifier.repository import launch
from gumshoe.env.verifier.rules import named_test_files
from gumshoe.records import Oracle, Task

__all__ = ["swebench_refusal", "write_swebench_row"]

ROWS, BUILD = "rows.jsonl", "build.sh"
BASE = "gumshoe-base"
COMMIT = f"""\
RUN git init -q . && git add -A -f . \\
 && git -c user.name=gumshoe -c user.email=gumshoe@localhost commit -q -m base && git tag {BASE}
"""


def swebench_refusal(task: Task, oracle: Oracle) -> str | None:
    """Why the harness cannot judge a task; None where it can."""
    if task.source == "swebench":
        return None
    if not oracle.fail_to_pass:
        return "its answer names no test that is to pass, and the harness needs one"
    argv = launch(task.entrypoint, "").argv
    if not any(word in ("pytest", "bare-pytest") for word in argv[:4]):
        return f"its tests are run by `{shlex.join(task.entrypoint)}`, and the harness reads the output of pytest"
    return context_refusal(task)


def write_swebench_row(task: Task, oracle: Oracle, out: Path, base: str | None) -> None:
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
