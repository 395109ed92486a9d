"""SWE-smith: rows whose patch puts a bug into a working repository; the fix is its reverse.

The image holds the working repository in /testbed. The bug is put in and becomes the repository's only commit, so
that its history does not reveal the fix. In the regime `debug` the failing tests are there and read-only; in `issue`
the files that hold them are taken away first, as SWE-smith's own branches do, and only a grader puts them back.

The rows.jsonl that `gumshoe synth` writes can be read too: its rows name a project folder instead of an image.
"""

from __future__ import annotations

import shlex

from gumshoe.env.diff import apply_patch, reverse_patch, source_paths
from gumshoe.env.tasks.projects import PYTEST, resolve_project, workspace_from_folder
from gumshoe.env.tasks.rows import ACTIVATE, MAX_BYTES, ROOT, Row, RowSource, apply_command, script
from gumshoe.env.tasks.taskset import named
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.storage import read_bounded

REQUIRED = ("instance_id", "patch")
TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
TIMEOUT_S = 600.0
SHOWN = 5
GIT = "git -c safe.directory='*' -c user.name=gumshoe -c user.email=gumshoe@localhost -c commit.gpgsign=false"
# What is ignored stays as it is; everything else becomes the only commit.
COMMIT = (
    f"{GIT} checkout -q --orphan gumshoe",
    f"{GIT} add -A",
    f"{GIT} commit -q --no-verify --allow-empty -m 'The repository'",
)
AMEND = f"{GIT} commit -q --no-verify --allow-empty --amend --no-edit"


def _graded(task: Task, oracle: Oracle) -> Task:
    """The task as a grader runs it: all tests that count, including those that the agent did not have."""
    if task.workspace.image is None:
        return task
    put_in_bug = task.setup[:1]  # as `_instance` orders it: what follows hides tests
    files = dict.fromkeys(test.partition("::")[0] for test in (*oracle.fail_to_pass, *oracle.pass_to_pass))
    return task.model_copy(update={"entrypoint": (*PYTEST, *files), "setup": put_in_bug, "regime": "debug"})


def _instance(row: Row, debug: bool) -> tuple[Task, Oracle]:
    row.require((*REQUIRED, *TESTS), texts=REQUIRED)
    failing = row.tests("FAIL_TO_PASS")
    if not failing:
        raise row.error("column FAIL_TO_PASS names no test")
    tests = list(dict.fromkeys(test.partition("::")[0] for test in failing))
    with named(row.name):
        gold = reverse_patch(row["patch"])
        workspace = _folder(row) if row.get("project") else _image(row)
    in_image = workspace.image is not None
    if not debug and not in_image:
        raise row.error("its project is a folder, which works only in the regime debug")
    bug = (script(apply_command(row["patch"]), *COMMIT),) if in_image else ()
    hide = (script(f"rm -rf -- {shlex.join(tests)}", f"{GIT} add -A", AMEND),)
    task = Task(
        id=row["instance_id"],
        source="swesmith",
        problem_statement=str(row.get("problem_statement") or "") or _statement(failing),
        workspace=workspace,
        entrypoint=(*PYTEST, *tests) if debug and in_image else PYTEST,
        setup=bug if debug else (*bug, *hide),
        readonly=tuple(f"/{file}" for file in tests) if debug else (),
        limits=Limits(command_timeout_s=TIMEOUT_S),
        regime="debug" if debug else "issue",
        tags={"project": str(row.get("repo") or ""), **_operator(row)},
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=gold,
        fail_to_pass=failing,
        pass_to_pass=row.tests("PASS_TO_PASS"),
    )
    return task, oracle


def _image(row: Row) -> WorkspaceSpec:
    """The image, by the name that Docker Hub knows: older rows leave out the owner."""
    row.require(("image_name",), texts=("image_name",))
    name: str = row["image_name"]
    if name.startswith("swesmith."):
        name = f"jyangballin/{name.replace('__', '_1776_')}"
    if ":" not in name.rpartition("/")[2]:
        name += ":latest"
    return WorkspaceSpec(image=name, workdir=ROOT, activate=ACTIVATE)


def _folder(row: Row) -> WorkspaceSpec:
    """A project on this machine, with the buggy files laid over it."""
    project = resolve_project(str(row["project"]), row.folder)
    files = {path: read_bounded(project / path, MAX_BYTES, error=TaskError) for path in source_paths(row["patch"])}
    clean = {path: data.decode("utf-8", "surrogateescape") for path, data in files.items()}
    return workspace_from_folder(project, apply_patch(clean, row["patch"]))


def _operator(row: Row) -> dict[str, str]:
    return {"operator": str(row["strategy"])} if row.get("strategy") else {}


def _statement(failing: tuple[str, ...]) -> str:
    shown = "".join(f"    {test}\n" for test in failing[:SHOWN])
    more = f"    and {len(failing) - SHOWN} more\n" if len(failing) > SHOWN else ""
    return f"These tests fail:\n\n{shown}{more}\nThe tests are right. Find the cause and repair it.\n"


SWESMITH = RowSource(_instance, _graded, path="SWE-bench/SWE-smith", split="train", regime="debug")
