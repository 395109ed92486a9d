"""Folders with a few files, git in them, and tasks that come as such a folder."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gumshoe.records import Task, WorkspaceSpec

PYTEST = ("python", "-m", "pytest", "-q")
_SETTINGS = ("user.name=a", "user.email=a@b", "commit.gpgsign=false", "init.defaultBranch=trunk")


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes files by their paths, and the folders that they are in. Returns the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def git(folder: Path, *arguments: str) -> str:
    """What a git command prints in a folder, stripped. It needs no settings of this machine's user."""
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    done = subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def folder_task(folder: Path, files: Mapping[str, str | bytes] | None = None, **facts: Any) -> Task:
    """The task `shop`, but for some facts, with pytest and the folder as its repository, to which files are written."""
    workspace = WorkspaceSpec(path=str(write_files(folder, files or {})))
    usual = {"id": "shop", "source": "test", "problem_statement": "", "workspace": workspace, "entrypoint": PYTEST}
    return Task.model_validate({**usual, **facts})
