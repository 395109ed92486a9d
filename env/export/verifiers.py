"""An environment package for verifiers: the tasks, and how they are played and judged by Gumshoe."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from gumshoe.env.export.context import left_out, named
from gumshoe.env.tasks.content import digest_of
from gumshoe.env.tasks.projects import CASEBOOK
from gumshoe.env.tasks.taskset import ORACLES, TASKS
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Record, Task

__all__ = ["finish_package", "verifiers_refusal", "write_verifiers_task"]

SOURCE = Path(__file__).parent / "verifiers_package.py.txt"
SET = "tasks"
PROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
description = "Debugging tasks of Gumshoe: {count} tasks."
requires-python = ">=3.11"
dependencies = ["verifiers>=0.4,<0.5"]

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""
README = """\
# {name}

{count} debugging tasks as an environment of [verifiers](https://pypi.org/project/verifiers/). The agent works
with Gumshoe's tools in Gumshoe's sandbox; the reward is the verdict of its verifier.

    pip install .
    vf-eval {name} -n 4 --model NAME --env.agent.harness.id {name} --env.agent.harness.gumshoe /path/to/gumshoe

Gumshoe and verifiers need different versions of the OpenAI SDK: install them in environments of their own, and name
Gumshoe's command. Further settings: `--env.agent.harness.agent`, `.sandbox` and `.steps`.
"""


def verifiers_refusal(task: Task, oracle: Oracle) -> str | None:
    """Every task can be played: Gumshoe plays it."""
    return None


def write_verifiers_task(task: Task, oracle: Oracle, out: Path, base: str | None) -> None:
    """Adds a task to the package's own task set, with its project. Raises TaskError."""
    if base is not None:
        raise TaskError("--base-image is for runners that build images, which verifiers does not")
    folder = out / SET
    folder.mkdir(parents=True, exist_ok=True)
    if task.workspace.path is not None:
        stored = _keep_project(Path(task.workspace.path), folder)
        placed = task.workspace.model_copy(update={"path": stored, "content": None})
        task = task.model_copy(update={"workspace": placed})
    for name, record in ((ORACLES, oracle), (TASKS, task)):
        _append(folder / name, record)


def finish_package(out: Path, name: str, count: int) -> None:
    """Writes what surrounds the tasks. `name` becomes the package's and, with underscores, the module's."""
    name = named(name)
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise TaskError(f"{name!r} cannot be the name of a package: use only letters, digits and hyphens in --out")
    module = name.replace("-", "_")
    known: dict[str, Any] = {"name": name, "module": module, "count": count}
    (out / SET).rename(out / "moved")
    (out / module).mkdir()
    (out / "moved").rename(out / module / SET)
    (out / module / "__init__.py").write_text(SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
    (out / "pyproject.toml").write_text(PROJECT.format(**known), encoding="utf-8")
    (out / "README.md").write_text(README.format(**known), encoding="utf-8")


def _keep_project(source: Path, folder: Path) -> str:
    """Copies a project, once for all of its tasks, unless it comes with Gumshoe; gives its name in the task set."""
    if source.name == "repo" and source.parent.parent == CASEBOOK:
        return f"casebook:{source.parent.name}"
    if not source.is_dir():
        raise TaskError(f"its repository {source} is not a folder on this machine")
    stored = f"projects/{digest_of(source)[:16]}"
    if not (folder / stored).exists():
        shutil.copytree(source, folder / stored, symlinks=True, ignore=left_out)
    return stored


def _append(path: Path, record: Record) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record.model_dump(mode="json", exclude_defaults=True)) + "\n")
