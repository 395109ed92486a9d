"""SWE-bench: rows of the classic schema (12 columns) and of the harness's 5.x, as tasks in container images.

There are two regimes. In `issue` the agent has the text of the issue; the tests that decide are not in its world. In
`debug` they are: the test patch is applied before the episode, and the tests are read-only.

The tests are run by the row's own command, or as the row's evaluation script runs pytest; where it has neither, with
pytest, or with Django's or sympy's own runner. Sympy's names tests by their functions alone; such a name stands for all
tests that share it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gumshoe.env.diff import parse_patch
from gumshoe.env.tasks.projects import PYTEST
from gumshoe.env.tasks.rows import (
    ACTIVATE,
    ROOT,
    Row,
    RowSource,
    apply_command,
    runnable_test_files,
    script,
    test_targets,
)
from gumshoe.env.tasks.taskset import named
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.tools.runs.commands import is_pytest

REQUIRED = ("instance_id", "repo", "base_commit", "patch", "test_patch", "problem_statement")
TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
DJANGO = ("./tests/runtests.py", "--verbosity", "2", "--settings=test_sqlite", "--parallel", "1")
SYMPY = ("bin/test", "-C", "--verbose")
TIMEOUT_S = 1800.0
IMAGES = ("image", "docker_image", "image_name")
"""The columns that name the image, in SWE-bench 5 and in the sets that follow it."""
PRO_TAG, PRO_IMAGE = "dockerhub_tag", "jefzda/sweap-images:{}"
"""The column from which SWE-bench Pro makes the image, which holds the repository in /app."""
LANGUAGES = ("language", "repo_language")
COMMAND = "test_command"
"""The tag that holds the row's own test command."""
SCRIPTED = re.compile(r"^: '>>>>> Start Test Output'\n(.*)\n: '>>>>> End Test Output'$", re.MULTILINE)
"""The command, if it is one, in the evaluation script of the harness."""


def image_of(instance_id: str) -> str:
    """The name of an instance's image on Docker Hub."""
    return f"swebench/sweb.eval.x86_64.{instance_id.lower().replace('__', '_1776_')}:latest"


def _graded(task: Task, oracle: Oracle) -> Task:
    """The task as a grader runs it: the files of the test patch, which the grader puts there itself."""
    if not oracle.test_patch:
        return task
    own = task.tags.get(COMMAND)
    command = _test_command(task.tags["project"], runnable_test_files(oracle.test_patch), own and shlex.split(own))
    return task.model_copy(update={"entrypoint": command, "setup": (), "readonly": (), "regime": "issue"})


def _instance(row: Row, debug: bool) -> tuple[Task, Oracle]:
    lower = {column: row[column.lower()] for column in TESTS if column.lower() in row.columns}
    row = replace(row, columns={**lower, **row.columns})
    row.require((*REQUIRED, *TESTS), texts=REQUIRED)
    test_patch: str = row["test_patch"]
    for language in (row[column] for column in LANGUAGES if row.get(column)):
        if str(language).lower() != "python":
            raise row.error(f"it is a task in {language}, and only Python can be debugged")
    with named(row.name):
        files = runnable_test_files(test_patch)
        parse_patch(row["patch"])
    command = _own_command(row) or _scripted_command(row, files)
    task = Task(
        id=row["instance_id"],
        source="swebench",
        problem_statement=row["problem_statement"],
        workspace=WorkspaceSpec(image=_image(row), workdir="/app" if row.get(PRO_TAG) else ROOT, activate=ACTIVATE),
        entrypoint=_test_command(row["repo"], files if debug else [], command),
        setup=(script(apply_command(test_patch)),) if debug and test_patch else (),
        readonly=tuple(f"/{path}" for path in test_targets(test_patch)) if debug else (),
        limits=Limits(command_timeout_s=TIMEOUT_S),
        regime="debug" if debug else "issue",
        tags={
            "project": row["repo"],
            "version": str(row.get("version") or ""),
            "base_commit": row["base_commit"],
            **({COMMAND: shlex.join(command)} if command else {}),
        },
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=row["patch"],
        test_patch=test_patch,
        fail_to_pass=row.tests("FAIL_TO_PASS"),
        pass_to_pass=row.tests("PASS_TO_PASS"),
    )
    return task, oracle


def _image(row: Row) -> Any:
    """The image that the row names, or the one that SWE-bench has for it."""
    if row.get(PRO_TAG):
        return PRO_IMAGE.format(row[PRO_TAG])
    return next((row[column] for column in IMAGES if row.get(column)), None) or image_of(row["instance_id"])


def _own_command(row: Row) -> list[str]:
    """The test command that the row names; an empty one if it names none. Raises TaskError."""
    config = row.get("install_config")
    found = (
        row.get("test_cmd") or row.get("test_cmds") or (config.get("test_cmd") if isinstance(config, dict) else None)
    )
    commands = [found] if isinstance(found, str) else found or []
    if len(commands) > 1 or not all(isinstance(each, str) for each in commands):
        raise row.error("its test command is not one command")
    return shlex.split(commands[0]) if commands else []


def _scripted_command(row: Row, files: Sequence[str]) -> list[str]:
    """How the row's evaluation script runs pytest, without the files; an empty list if it does not."""
    found = SCRIPTED.search(row.get("eval_script") or "")
    try:
        words = shlex.split(found[1]) if found else []
    except ValueError:
        return []
    return [word for word in words if word not in files] if words and is_pytest(words) else []


def _test_command(repo: str, files: Sequence[str], own: Sequence[str] | None) -> tuple[str, ...]:
    """Runs the tests in these files, or all of them, in the environment that is active; `own` is the row's command."""
    if own:
        return (*own, *files)
    if repo == "django/django":
        return (*DJANGO, *(file.removeprefix("tests/").removesuffix(".py").replace("/", ".") for file in files))
    return (*(SYMPY if repo == "sympy/sympy" else PYTEST), *files)


SWEBENCH = RowSource(
    make=_instance,
    graded=_graded,
    path="lite",
    split="test",
    regime="issue",
    names={
        "lite": "SWE-bench/SWE-bench_Lite",
        "verified": "SWE-bench/SWE-bench_Verified",
        "full": "SWE-bench/SWE-bench",
    },
)
