"""The casebook: small projects of our own, each with one bug that reading alone hardly shows.

A case is a folder with `case.yaml`, the clean project in `repo/` and `bug.patch`, the diff that makes the bug. The gold
patch is its reverse.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from pydantic import Field

from gumshoe.config import Config, load_config
from gumshoe.env.diff import apply_patch, make_patch, source_paths
from gumshoe.env.tasks.projects import CASEBOOK, PYTEST, test_files, workspace_from_folder
from gumshoe.env.tasks.taskset import OnError, load_entries, refuse
from gumshoe.errors import ConfigError, TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import read_bounded

FALSIFIABLE = "falsifiable.json"
MAX_PATCH_BYTES = 1 << 20


class CaseFile(Config):
    """What `case.yaml` says."""

    title: str = Field(description="the complaint in one line")
    problem_statement: str = Field(description="the complaint as a user would report it")
    why_runtime: str = Field(
        default="", description="the run-time value that gives the bug away; for people who read the case"
    )
    fail_to_pass: tuple[str, ...] = Field(min_length=1, description="tests that the bug breaks")
    pass_to_pass: tuple[str, ...] = Field(default=(), description="tests that pass with the bug and without it")


def load_casebook(path: str | Path = CASEBOOK, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """Every case below `path`, sorted by name. Raises TaskError that names the case, unless `on_error` takes it."""
    return load_entries((file.parent for file in sorted(Path(path).glob("*/case.yaml"))), load_case, on_error)


def load_case(folder: Path) -> tuple[Task, Oracle]:
    """One case as a task and its oracle. Raises TaskError."""
    name = folder.name
    try:
        case = load_config(CaseFile, folder / "case.yaml")
    except ConfigError as error:
        raise TaskError(f"case {name}: {error}") from None
    repo = folder / "repo"
    if not test_files(repo):
        raise TaskError(f"case {name}: {repo} has no tests: add tests/test_*.py")
    try:
        bug = _bug(folder / "bug.patch", repo)
    except (TaskError, UnicodeDecodeError) as error:
        raise TaskError(f"case {name}: {error}") from None
    sides = {path: (_encoded(buggy), _encoded(clean)) for path, (clean, buggy) in bug.items()}
    task = Task(
        id=f"casebook/{name}",
        source="casebook",
        problem_statement=f"{case.title}\n\n{case.problem_statement}".strip() + "\n",
        workspace=workspace_from_folder(repo, {path: buggy for path, (_, buggy) in bug.items()}),
        entrypoint=PYTEST,
        readonly=("tests/",),
        tags={"project": name},
    )
    return task, Oracle(
        task_id=task.id,
        gold_patch=make_patch(sides),
        fail_to_pass=case.fail_to_pass,
        pass_to_pass=case.pass_to_pass,
        falsifiable=_falsifiable(folder.parent).get(task.id),
    )


@functools.cache
def _falsifiable(folder: Path) -> dict[str, dict[str, tuple[int, ...]]]:
    """`Oracle.falsifiable` by task, as `make casebook` has written it; nothing for cases of another folder."""
    file = folder / FALSIFIABLE
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _bug(patch_file: Path, repo: Path) -> dict[str, tuple[str | None, str | None]]:
    """The files that the bug changes, clean and buggy, with their line ends as they are."""
    patch = read_bounded(patch_file, MAX_PATCH_BYTES, error=TaskError).decode()
    known = {path: repo / path for path in source_paths(patch)}
    clean = {path: file.read_bytes().decode() for path, file in known.items() if file.is_file()}
    changed = {path: (clean.get(path), text) for path, text in apply_patch(clean, patch).items()}
    if not changed:
        raise TaskError(f"{patch_file} changes nothing, so there is no bug")
    return changed


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def is_built_in(task: Task, oracle: Oracle | None = None) -> bool:
    """Whether all that running this task starts comes with Gumshoe.

    That is a case of the casebook as it is bundled, or its clean project: the same folder, overlay and commands, and,
    where an oracle is given, the same answer. Ids, sources and tags prove nothing: whoever wrote a task set chose them.
    What the agent is told and shown, and its limits, may differ. A synthetic bug of a bundled project does not count,
    as the file that it is read from could hold anything.
    """
    folder = _case_folder(task.workspace.path)
    if folder is None:
        return False
    case, answer = _cached_case(folder)
    spec, own = task.workspace, case.workspace
    same_place = spec.model_copy(update={"path": own.path, "content": own.content})
    return (
        same_place in (own, own.model_copy(update={"overlay": {}}))
        and _commands(task) == _commands(case)
        and (oracle is None or not _has_code(oracle) or _is_same(oracle, answer))
    )


def _case_folder(path: str | None) -> Path | None:
    """The folder of the bundled case whose project this is."""
    if path is None:
        return None
    project = Path(path).resolve()
    bundled = project.name == "repo" and project.parent.parent == CASEBOOK and (project.parent / "case.yaml").is_file()
    return project.parent if bundled else None


_cached_case = functools.cache(load_case)


def _commands(task: Task) -> tuple[object, ...]:
    return task.entrypoint, task.debug_entrypoint, task.setup


def _is_same(oracle: Oracle, answer: Oracle) -> bool:
    return oracle.model_copy(update={"falsifiable": answer.falsifiable}) == answer


def _has_code(oracle: Oracle) -> bool:
    return bool(oracle.gold_patch or oracle.test_patch)
