"""SWE-bench: rows of the classic schema (12 columns) and of the harness's 5.x, as tasks in container images.

There are two regimes. In `issue` the agent has the text of the issue; the tests that decide are not in its world. In
`debug` they are: the test patch is applied before the episode, and the tests are read-only.

The tests are run with pytest, or with Django's own runner. What is not covered: sympy, whose runner names tests in a
way of its own, so its tests count as missing; the official grader knows it.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from gumshoe.env.tasks.patch import parse_patch
from gumshoe.env.tasks.rows import read_rows
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec

__all__ = ["grading_task", "image_of", "load_swebench"]

Regime = Literal["debug", "issue"]
REQUIRED = ("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement")
TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
ROOT = "/testbed"
ACTIVATE = "source /opt/miniconda3/bin/activate testbed"
DJANGO = "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1"
PYTEST = "python -m pytest -q"
TIMEOUT_S = 1800.0


def load_swebench(
    path: str | Path = "SWE-bench/SWE-bench_Lite", split: str = "test", regime: str = "issue"
) -> list[tuple[Task, Oracle]]:
    """The instances in a .jsonl, .json or .parquet file, or of a dataset on the hub, in their order.

    Args:
        path: a file, or the name of a dataset.
        split: split of the dataset, where it is one.
        regime: `issue` or `debug`.

    Raises:
        TaskError: the source cannot be read, or a row lacks a column or holds something else there.
    """
    if regime not in ("issue", "debug"):
        raise TaskError(f"no regime {regime!r}: give issue or debug")
    return [_instance(row, number, regime) for number, row in enumerate(read_rows(path, split), 1)]


def image_of(instance_id: str) -> str:
    """The name of an instance's image on Docker Hub."""
    return f"swebench/sweb.eval.x86_64.{instance_id.lower().replace('__', '_1776_')}:latest"


def grading_task(task: Task, oracle: Oracle) -> Task:
    """The task as a grader runs it: the files of the test patch, wherever the agent may not know them."""
    if task.source != "swebench" or not oracle.test_patch:
        return task
    command = _test_command(task.tags["project"], _test_files(oracle.test_patch))
    return task.model_copy(update={"entrypoint": command})


def _instance(row: Mapping[str, Any], number: int, regime: Regime) -> tuple[Task, Oracle]:
    name = row.get("instance_id")
    where = f"task {name}" if isinstance(name, str) and name else f"row {number}"
    missing = [column for column in (*REQUIRED, *TESTS) if row.get(column) is None]
    if missing:
        raise TaskError(f"{where}: column {missing[0]} is missing")
    wrong = [column for column in REQUIRED if not isinstance(row[column], str)]
    if wrong:
        raise TaskError(f"{where}: column {wrong[0]} is not a text")
    test_patch: str = row["test_patch"]
    try:
        files = _test_files(test_patch)
        parse_patch(row["patch"])
    except TaskError as error:
        raise TaskError(f"{where}: {error}") from None
    debug = regime == "debug"
    task = Task(
        id=row["instance_id"],
        source="swebench",
        problem_statement=row["problem_statement"],
        workspace=WorkspaceSpec(image=row.get("image") or image_of(row["instance_id"]), workdir=ROOT),
        entrypoint=_test_command(row["repo"], files if debug else []),
        setup=(_apply_command(test_patch),) if debug and test_patch else (),
        readonly=tuple(f"/{path}" for path in _targets(test_patch)) if debug else (),
        limits=Limits(command_timeout_s=TIMEOUT_S),
        regime=regime,
        tags={"project": row["repo"], "version": str(row.get("version") or ""), "base_commit": row["base_commit"]},
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=row["patch"],
        test_patch=test_patch,
        fail_to_pass=_tests(row, "FAIL_TO_PASS", where),
        pass_to_pass=_tests(row, "PASS_TO_PASS", where),
    )
    return task, oracle


def _tests(row: Mapping[str, Any], column: str, where: str) -> tuple[str, ...]:
    """A list of test ids; the classic schema keeps it as JSON in a text."""
    value: Any = row[column]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise TaskError(f"{where}: column {column} is not a JSON list: {error}") from None
    if not isinstance(value, list) or not all(isinstance(test, str) for test in value):
        raise TaskError(f"{where}: column {column} is not a list of test ids")
    return tuple(value)


def _test_files(test_patch: str) -> list[str]:
    """The test files that stand in the repository once the test patch is applied."""
    return [path for path in _targets(test_patch) if path.endswith(".py")]


def _targets(patch: str) -> list[str]:
    return list(dict.fromkeys(file.target for file in parse_patch(patch) if file.target is not None))


def _test_command(repo: str, files: Sequence[str]) -> tuple[str, ...]:
    """Runs the tests in these files, or all of them, in the image's environment."""
    if repo == "django/django":
        labels = [file.removeprefix("tests/").removesuffix(".py").replace("/", ".") for file in files]
        command = f"{DJANGO} {shlex.join(labels)}"
    else:
        command = f"{PYTEST} {shlex.join(files)}"
    return ("bash", "-c", f"{ACTIVATE} && exec {command.strip()}")


def _apply_command(patch: str) -> tuple[str, ...]:
    end = f"END_{hashlib.sha256(patch.encode()).hexdigest()[:16]}"
    text = patch if patch.endswith("\n") else f"{patch}\n"
    return ("bash", "-c", f"git apply --whitespace=nowarn - <<'{end}'\n{text}{end}\n")
