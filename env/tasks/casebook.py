"""The casebook: small projects of our own, each with one bug that reading alone hardly shows.

A case is a folder with `case.yaml`, the clean project in `repo/` and, in `bug/`, the files that are laid over it to
make the bug. The gold patch is the way back.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from gumshoe.config import Config, load_config
from gumshoe.env.patch import make_patch
from gumshoe.env.tasks.content import at_folder
from gumshoe.env.tasks.projects import CASEBOOK, test_files
from gumshoe.env.tasks.skipping import OnError, each, refuse
from gumshoe.errors import ConfigError, TaskError
from gumshoe.records import Limits, Oracle, Task

__all__ = ["CaseFile", "load_case", "load_casebook"]

ENTRYPOINT = ("python", "-m", "pytest", "-q")


class CaseFile(Config):
    """What `case.yaml` says."""

    title: str = Field(description="the complaint in one line")
    problem_statement: str = Field(description="the complaint as a user would report it")
    why_runtime: str = Field(
        default="", description="the run-time value that gives the bug away; for people who read the case"
    )
    fail_to_pass: tuple[str, ...] = Field(min_length=1, description="tests that the bug breaks")
    pass_to_pass: tuple[str, ...] = Field(default=(), description="tests that pass with the bug and without it")
    readonly: tuple[str, ...] = Field(default=("tests/",), description="gitignore patterns the agent cannot write")
    ignore: tuple[str, ...] = Field(default=(), description="gitignore patterns the agent cannot see")
    limits: Limits = Field(default=Limits(), description="how much an episode may use")
    tags: dict[str, str] = Field(default_factory=dict, description="further facts to group by")


def load_casebook(path: str | Path = CASEBOOK, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """Every case below `path`, sorted by name. Raises TaskError that names the case, unless `on_error` takes it."""
    return each((file.parent for file in sorted(Path(path).glob("*/case.yaml"))), load_case, on_error)


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
    bug = _files(folder / "bug")
    if not bug:
        raise TaskError(f"case {name}: {folder / 'bug'} is empty: put the buggy files there")
    patch = make_patch({path: (data, _content(repo / path)) for path, data in bug.items()})
    if not patch:
        raise TaskError(f"case {name}: the files in bug/ are the same as in repo/, so there is no bug")
    task = Task(
        id=f"casebook/{name}",
        source="casebook",
        problem_statement=f"{case.title}\n\n{case.problem_statement}".strip() + "\n",
        workspace=at_folder(repo, {path: _text(data, path, name) for path, data in bug.items()}),
        entrypoint=ENTRYPOINT,
        ignore=case.ignore,
        readonly=case.readonly,
        limits=case.limits,
        tags={"project": name, **case.tags},
    )
    oracle = Oracle(task_id=task.id, gold_patch=patch, fail_to_pass=case.fail_to_pass, pass_to_pass=case.pass_to_pass)
    return task, oracle


def _files(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _text(data: bytes, path: str, case: str) -> str:
    """The file's text with its line ends as they are."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TaskError(f"case {case}: {path} is not UTF-8 text: {error}") from None
