"""A task set that somebody else made reaches no file outside of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task, WorkspaceSpec


def a_set(folder: Path, project: str) -> str:
    task = Task(
        id="a",
        source="synth",
        problem_statement="It fails.",
        workspace=WorkspaceSpec(path=project),
        entrypoint=("python", "-m", "pytest"),
    )
    write_taskset(folder, [(task, Oracle(task_id="a", gold_patch=""))])
    return str(folder)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "key.txt").write_text("secret")
    return folder


@pytest.mark.parametrize(
    "project", ["../secret", "projects/../../secret", "{secret}", "/etc", ".", "casebook:../..", "casebook:"]
)
def test_a_path_that_leads_out_is_refused(project: str, secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", project.format(secret=secret))
    with pytest.raises(TaskError, match=r"is outside of|no project"):
        load_tasks(source)


def test_a_link_that_leads_out_is_refused(secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", "projects/p")
    (tmp_path / "set" / "projects").symlink_to(secret.parent)
    (tmp_path / "p").symlink_to(secret)
    with pytest.raises(TaskError, match="is outside of"):
        load_tasks(source)


def test_the_files_of_the_set_are_regular_files(secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", "projects/p")
    project = tmp_path / "set" / "projects" / "p"
    project.mkdir(parents=True)
    (project / "a.py").write_text("x = 1\n")
    ((task, _),) = load_tasks(source)
    assert task.workspace.path == str(project)
    (project / "leak").symlink_to(secret / "key.txt")
    ((linked, _),) = load_tasks(source)
    (secret / "key.txt").write_text("other")
    ((later, _),) = load_tasks(source)
    assert later.workspace.content == linked.workspace.content, "a link was followed out of the project"
