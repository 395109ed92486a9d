"""Files that somebody else made are read up to a bound: no pipe is waited for, no sparse file fills the memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gumshoe.env.bugs.packages.sources import copy_tree
from gumshoe.env.bugs.projects import copy_into_taskset, find_projects, sources_of
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.projects import digest_of
from gumshoe.errors import TaskError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "calc"
    folder.mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "test_calc.py").write_text("from calc import add\n\ndef test_add():\n    assert add(1, 1) == 2\n")
    return folder


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.timeout(20)
def test_a_sparse_file_of_8_gb_in_a_repository_is_refused_at_once(project: Path) -> None:
    sparse(project / "data.bin", 8 << 30)
    with pytest.raises(TaskError, match=r"more than 2048 MiB with data\.bin"):
        load_tasks("local", path=str(project))


@pytest.mark.timeout(20)
def test_many_files_count_together(project: Path) -> None:
    for number in range(4):
        sparse(project / f"{number}.bin", 7 << 20)
    with pytest.raises(TaskError, match="more than 10 MiB"):
        digest_of(project, limit=10 << 20)


@pytest.mark.timeout(20)
def test_a_pipe_is_no_part_of_a_repository(project: Path) -> None:
    before = digest_of(project)
    os.mkfifo(project / "pipe")
    os.mkfifo(project / "pipe.py")
    assert digest_of(project) == before


@pytest.mark.timeout(20)
def test_a_project_with_a_pipe_is_copied_without_it(project: Path, tmp_path: Path) -> None:
    os.mkfifo(project / "pipe.py")
    (project / "link.py").symlink_to("pipe.py")
    (found,) = find_projects([str(project)])
    assert set(sources_of(found, ["test_*"])) == {"calc.py"}
    copy_into_taskset(found, tmp_path / "set")
    names = sorted(path.name for path in (tmp_path / "set" / "projects" / "calc").iterdir())
    assert names == ["calc.py", "link.py", "test_calc.py"]


def test_links_in_a_circle_and_names_that_no_task_can_hold_get_no_bugs(project: Path, tmp_path: Path) -> None:
    (project / "self.py").symlink_to("self.py")
    (project / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    (found,) = find_projects([str(project)])
    assert set(sources_of(found, ["test_*"])) == {"calc.py"}
    copy_tree(project, tmp_path / "copy")
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert names == {os.fsdecode(b"caf\xe9.py"), "calc.py", "test_calc.py"}


def test_a_folder_that_no_task_can_name_is_refused(project: Path) -> None:
    renamed = project.rename(project.with_name(os.fsdecode(b"caf\xe9")))
    with pytest.raises(TaskError, match="the name is not utf-8 text: rename the folder"):
        load_tasks("local", path=str(renamed))
    with pytest.raises(TaskError, match="the name is not utf-8 text: rename the folder"):
        find_projects([str(renamed)])


@pytest.mark.timeout(20)
def test_a_source_file_that_is_too_large_is_named(project: Path) -> None:
    sparse(project / "huge.py", 8 << 30)
    (found,) = find_projects([str(project)])
    with pytest.raises(TaskError, match=r"project calc: .*huge\.py .*larger than"):
        sources_of(found, [])


def test_a_digest_tells_contents_names_modes_and_links_apart(project: Path) -> None:
    seen = {digest_of(project)}
    (project / "calc.py").write_text("def add(a, b):\n    return b + a\n")
    seen.add(digest_of(project))
    (project / "calc.py").chmod(0o755)
    seen.add(digest_of(project))
    (project / "calc.py").rename(project / "sums.py")
    seen.add(digest_of(project))
    (project / "link").symlink_to("sums.py")
    seen.add(digest_of(project))
    (project / "empty.txt").touch()
    seen.add(digest_of(project))
    assert len(seen) == 6
