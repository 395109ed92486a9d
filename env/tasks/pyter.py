"""PyTER's TypeBugs: type errors of large Python projects, from a checkout of kupl/PyTER and what its setup.sh made.

setup.sh puts each repository in benchmark/REPO-NUMBER, at the fixed commit and with the code files of the commit before
it. The repair is what git says of them; git's own folder is kept out of the sandbox, since it holds the repair.
"""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.content import workspace_from_folder
from gumshoe.env.tasks.entries import OnError, load_entries, refuse
from gumshoe.env.tasks.scripts import test_command
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task
from gumshoe.storage import describe, read_bounded

__all__ = ["load_pyter"]

LIMITS = Limits(command_timeout_s=600)
MAX_BYTES = 4 << 20
GIT_S = 60.0
SETUP_FILES = ("dependency_setup.sh", "pyter_requirements.txt", "pyter")
REPOSITORY_NAMES = {"scikit-learn": "scikitlearn"}
"""Where setup.sh names a repository's folder differently from bug_info.json."""


class BugInfo(BaseModel):
    """What bug_info.json says, as far as it is needed."""

    repo: str
    code_files: tuple[str, ...]
    test_files: tuple[str, ...] = ()


def load_pyter(
    path: str | Path, benchmark: str | Path | None = None, *, on_error: OnError = refuse
) -> list[tuple[Task, Oracle]]:
    """The bugs whose repositories are set up, sorted by name.

    Args:
        path: a checkout of PyTER.
        benchmark: the folder that setup.sh made; by default `path`/benchmark.
        on_error: may take the error of a single bug.

    Raises:
        TaskError: `path` is something else, or no repository is set up.
    """
    root = Path(path).resolve()
    bugs = sorted(file.parent for file in root.glob("benchmark_info/*/*/bug_info.json"))
    if not bugs:
        raise TaskError(f"{path} is not a checkout of PyTER: it has no benchmark_info/PROJECT/BUG/bug_info.json")
    place = root / "benchmark" if benchmark is None else Path(benchmark).resolve()
    found = [(bug, repository) for bug in bugs if (repository := _repository(bug, place)).is_dir()]
    if not found:
        raise TaskError(f"{place} holds no repositories: make them with PyTER's setup.sh, and give benchmark=")
    return load_entries(found, lambda pair: _bug(*pair), on_error)


def _repository(bug: Path, place: Path) -> Path:
    project, _, number = bug.name.rpartition("-")
    return place / f"{REPOSITORY_NAMES.get(project, project)}-{number}"


def _bug(bug: Path, repository: Path) -> tuple[Task, Oracle]:
    name = f"pyter/{bug.name}"
    try:
        info = BugInfo.model_validate_json(_read(bug / "bug_info.json"))
        command = test_command(_read(bug / "test.sh").decode("utf-8", "replace"))
    except ValidationError as error:
        raise TaskError(f"task {name}: {bug / 'bug_info.json'}: {describe(error)}") from None
    if not command:
        raise TaskError(f"task {name}: {bug / 'test.sh'} runs nothing")
    task = Task(
        id=name,
        source="pyter",
        problem_statement=f"Tests of {info.repo} fail with a type error. Find the cause and repair it.\n",
        workspace=workspace_from_folder(repository, dict.fromkeys((".git", *SETUP_FILES))),
        entrypoint=command,
        readonly=tuple(f"/{file}" for file in info.test_files),
        limits=LIMITS,
        tags={"project": info.repo},
    )
    return task, Oracle(task_id=name, gold_patch=_gold(name, repository, info.code_files))


def _gold(name: str, repository: Path, files: Sequence[str]) -> str:
    """The diff from the code files as they are to those of the commit that is checked out."""
    try:
        fixed = _committed(repository, files)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise TaskError(f"task {name}: git cannot read {repository}: {error}") from None
    patch = make_patch({file: (_content(repository, file), fixed.get(file)) for file in files})
    if not patch:
        raise TaskError(f"task {name}: the code files are those of the fixed commit: run PyTER's setup.sh again")
    return patch


def _content(repository: Path, file: str) -> bytes | None:
    place = (repository / file).resolve()
    if not place.is_relative_to(repository):
        raise TaskError(f"{repository}: the code file {file} is outside of it")
    return _read(place) if place.is_file() else None


def _committed(repository: Path, files: Sequence[str]) -> dict[str, bytes]:
    """Those of the files that the commit has. Raises ValueError for names that git cannot be asked for."""
    if any("\n" in file or "\0" in file for file in files):
        raise ValueError("a file's name holds a newline or a null character")
    wanted = "".join(f"HEAD:{file}\n" for file in files)
    argv = ["git", "-c", "safe.directory=*", "-C", str(repository), "cat-file", "--batch"]
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.defpath}
    subprocess.run([*argv[:-2], "rev-parse", "HEAD"], env=environment, capture_output=True, check=True, timeout=GIT_S)
    done = subprocess.run(argv, input=wanted.encode(), env=environment, capture_output=True, check=True, timeout=GIT_S)
    answer = io.BytesIO(done.stdout)
    found: dict[str, bytes] = {}
    for file in files:
        head = answer.readline().split()
        if len(head) == 3 and head[1] == b"blob":
            found[file] = answer.read(int(head[2]))
            answer.readline()
    return found


def _read(file: Path) -> bytes:
    return read_bounded(file, MAX_BYTES, error=TaskError)
