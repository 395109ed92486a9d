"""Bare repositories on this machine, from which files at a task's base commit are read: no image is needed."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

from gumshoe.env.host_git import run_git
from gumshoe.errors import TaskError
from gumshoe.records import Task

__all__ = ["Repositories"]


class Repositories:
    """A folder of git repositories, bare or not: `owner/name.git`, `owner__name.git` or `name.git`, or without .git.

    A task's tags `project` and `base_commit` say which one it needs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, task: Task) -> Path | None:
        """The repository that has the task's base commit; None where none has."""
        project, commit = task.tags.get("project", ""), task.tags.get("base_commit", "")
        if not project or not commit or commit.startswith("-") or ".." in project.split("/"):
            return None
        names = dict.fromkeys((project, project.replace("/", "__"), project.rpartition("/")[2]))
        places = (self._folder / f"{name}{end}" for name in names for end in (".git", ""))
        return next((place for place in places if place.is_dir() and _has(place, commit)), None)

    def read(self, task: Task, paths: Iterable[str]) -> dict[str, str | None]:
        """Files at the task's base commit; None for one that is not there, or is not UTF-8.

        Raises TaskError where no repository has the commit, or git fails.
        """
        repository, commit = self.find(task), task.tags.get("base_commit", "")
        if repository is None:
            raise TaskError(f"{task.id}: no repository in {self._folder} has the commit {commit or 'of the task'}")
        wanted = [path for path in paths if "\n" not in path]
        asked = "".join(f"{commit}:{path}\n" for path in wanted).encode("utf-8", "surrogateescape")
        answer = io.BytesIO(run_git("cat-file", "--batch", folder=repository, input=asked))
        return {path: _blob(answer) for path in wanted}


def _has(repository: Path, commit: str) -> bool:
    try:
        return bool(run_git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", folder=repository))
    except TaskError:
        return False


def _blob(answer: io.BytesIO) -> str | None:
    """The next object of `git cat-file --batch`; None where it is missing, or is not text."""
    head = answer.readline().split()
    if len(head) != 3 or not head[2].isdigit():
        return None
    content = answer.read(int(head[2]))
    answer.readline()
    try:
        return content.decode("utf-8") if head[1] == b"blob" else None
    except UnicodeDecodeError:
        return None
