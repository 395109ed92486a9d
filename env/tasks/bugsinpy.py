"""BugsInPy: bugs of large Python projects, from a checkout of soarsmu/BugsInPy and what `bugsinpy-checkout` made.

`bugsinpy-checkout -p PROJECT -i ID -v 0 -w FOLDER` puts the buggy repository, with the fixed tests, in
FOLDER/PROJECT, and notes there which bug it is. The files of these notes are kept out of the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gumshoe.env.diff import parse_patch
from gumshoe.env.tasks.content import workspace_from_folder
from gumshoe.env.tasks.entries import OnError, load_entries, refuse
from gumshoe.env.tasks.scripts import test_command
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task
from gumshoe.storage import read_bounded

__all__ = ["load_bugsinpy"]

NOTE = "bugsinpy_bug.info"
FACT = re.compile(r'^(\w+)="([^"\n]*)"', re.MULTILINE)
LIMITS = Limits(command_timeout_s=600)
MAX_BYTES = 4 << 20


def load_bugsinpy(
    path: str | Path, work: str | Path | None = None, *, on_error: OnError = refuse
) -> list[tuple[Task, Oracle]]:
    """The bugs that are checked out, sorted by their folders.

    Args:
        path: a checkout of BugsInPy.
        work: the folder below which bugs were checked out; by default the one of `bugsinpy-checkout` in `path`.
        on_error: may take the error of a single bug.

    Raises:
        TaskError: `path` is something else, or no bug is checked out.
    """
    root = Path(path).resolve()
    # Two bugs may have one buggy commit; everything that is noted of them, taken together, tells them apart.
    bugs = {frozenset(_facts(file).items()): file.parent for file in root.glob("projects/*/bugs/*/bug.info")}
    if not bugs:
        raise TaskError(f"{path} is not a checkout of BugsInPy: it has no projects/PROJECT/bugs/ID/bug.info")
    place = root / "framework" / "bin" / "temp" if work is None else Path(work).resolve()
    notes = sorted(file for pattern in ("*", "*/*") for file in place.glob(f"{pattern}/{NOTE}"))
    if not notes:
        raise TaskError(f"{place} holds no bugs: check them out with bugsinpy-checkout -v 0, and give the option work=")
    return load_entries(notes, lambda note: _bug(note, bugs), on_error)


def _bug(note: Path, bugs: Mapping[frozenset[tuple[str, str]], Path]) -> tuple[Task, Oracle]:
    repository = note.parent
    bug = bugs.get(frozenset(_facts(note).items()))
    if bug is None:
        raise TaskError(f"task bugsinpy/{repository.name}: {note} names no bug in this checkout of BugsInPy")
    project = bug.parent.parent.name
    name = f"bugsinpy/{project}-{bug.name}"
    command = test_command(_text(bug / "run_test.sh"))
    if not command:
        raise TaskError(f"task {name}: {bug / 'run_test.sh'} runs nothing")
    patch = _text(bug / "bug_patch.txt")
    try:
        parse_patch(patch)
    except TaskError as error:
        raise TaskError(f"task {name}: bug_patch.txt: {error}") from None
    notes = sorted(file.name for file in repository.glob("bugsinpy_*"))
    tests = [file for file in _facts(bug / "bug.info").get("test_file", "").split(";") if file]
    task = Task(
        id=name,
        source="bugsinpy",
        problem_statement=f"Tests of {project} fail. Find the cause and repair it.\n",
        workspace=workspace_from_folder(repository, dict.fromkeys(notes)),
        entrypoint=command,
        readonly=tuple(f"/{file}" for file in tests),
        limits=LIMITS,
        tags={"project": project},
    )
    return task, Oracle(task_id=name, gold_patch=patch)


def _facts(file: Path) -> dict[str, str]:
    facts = dict(FACT.findall(_text(file)))
    if "buggy_commit_id" not in facts:
        raise TaskError(f"{file} has no buggy_commit_id")
    return facts


def _text(file: Path) -> str:
    return read_bounded(file, MAX_BYTES, error=TaskError).decode("utf-8", "surrogateescape")
