"""Runs git on this machine, on repositories that are not trusted, and reads files at a task's base commit from them."""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gumshoe.errors import TaskError
from gumshoe.records import Task

__all__ = ["Repositories", "run_git"]

TIMEOUT_S = 600.0
# A repository's own hooks and helpers stay unused, and so do a person's settings.
GIT = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false"),
    *("-c", "safe.directory=*"),
)
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:https:http:ssh:git",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LC_ALL": "C",
}
HANDED_ON = ("SSL_CERT_FILE", "GIT_SSL_CAINFO", "HTTPS_PROXY", "HTTP_PROXY", "SSH_AUTH_SOCK")
"""Variables that a clone may need."""


def run_git(*words: str, folder: Path | None = None, input: bytes = b"") -> bytes:
    """What git prints.

    Args:
        words: the command, with options of git before it.
        folder: where it is run, in or below a repository; None where the words name the repository.
        input: what git reads.

    Raises:
        TaskError: git fails, or takes more than 600 s; with the last line that it prints.
    """
    place = () if folder is None else ("-C", str(folder))
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, **ENVIRONMENT}
        environment |= {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        argv = [*GIT, *place, *words]
        try:
            result = subprocess.run(
                argv, input=input, capture_output=True, env=environment, timeout=TIMEOUT_S, check=False
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise _failure(folder, str(error)) from None
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {result.returncode}"]
        raise _failure(folder, lines[-1])
    return result.stdout


def _failure(folder: Path | None, why: str) -> TaskError:
    return TaskError(f"git cannot read {'the repository' if folder is None else folder}: {why}")


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
