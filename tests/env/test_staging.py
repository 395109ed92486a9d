"""Opening a sandbox: of the future that a git repository hides nothing is left, and an environment is activated."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gumshoe.env import open_sandbox
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import Task, WorkspaceSpec
from support.folder_tasks import folder_task, git, write_files
from support.sandboxes.sandbox_backends import LOCAL


def commit(folder: Path, text: str) -> str:
    (folder / "code.py").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, list[str]]:
    """Two commits of the past, checked out; the fix in a branch, a tag, a pack, a stash, the reflog, and loose."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    past = [commit(folder, "first"), commit(folder, "second")]
    git(folder, "branch", "-q", "fixed")
    fix = commit(folder, "the fix")
    git(folder, "tag", "-a", "v2", "-m", "release")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(folder, "repack", "-adq")
    next((folder / ".git/objects/pack").glob("*.pack")).with_suffix(".keep").touch()
    git(folder, "remote", "add", "origin", "https://example.org/x.git")
    (folder / "code.py").write_text("stashed fix")
    git(folder, "stash", "-q")
    git(folder, "reset", "-q", "--hard", past[1])
    return folder, [*past, fix]


def test_only_the_past_is_left(repository: tuple[Path, list[str]]) -> None:
    folder, (first, second, fix) = repository
    (folder / "code.py").write_text("work in progress")
    with open_sandbox(folder_task(folder), LOCAL, trusted=True) as sandbox:
        seen = sandbox.run(["git", "log", "--all", "--reflog", "--format=%H"]).output.split()
        assert seen == [second, first]
        assert sandbox.run(["git", "cat-file", "-e", fix]).exit_code != 0
        assert sandbox.run(["git", "stash", "list"]).output == ""
        assert sandbox.run(["git", "tag"]).output + sandbox.run(["git", "remote"]).output == ""
        assert sandbox.run(["git", "grep", "-I", "fix"]).exit_code == 1
        assert sandbox.run(["git", "status", "--short"]).output == " M code.py\n"
        assert sandbox.run(["git", "fsck", "--unreachable"]).output == ""


def test_a_repository_without_a_commit_is_taken_away(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("first")
    with open_sandbox(folder_task(tmp_path), LOCAL, trusted=True) as sandbox:
        assert {entry.path for entry in sandbox.walk(depth=1)} == {"code.py"}
    assert (tmp_path / ".git").is_dir()


def test_a_broken_repository_is_refused_in_one_line(repository: tuple[Path, list[str]]) -> None:
    folder, _ = repository
    (folder / ".git/HEAD").write_text("nonsense")
    with pytest.raises(SandboxError, match=r"future of the git repository cannot be removed: git rev-parse") as caught:
        open_sandbox(folder_task(folder), LOCAL, trusted=True)
    assert "\n" not in str(caught.value)


# --- activation


def activated(folder: Path, code: str) -> Task:
    return folder_task(folder, id="calc", workspace=WorkspaceSpec(path=str(folder), activate=code))


def test_variables_with_any_text_hold_for_programs_and_sessions(tmp_path: Path) -> None:
    task = activated(tmp_path, "echo noise; export ODD=$'a=b\\nc gr\u00f6\u00dfe' && unset HOME")
    with open_sandbox(task, LOCAL, trusted=True) as sandbox:
        show = ["sh", "-c", 'printf "%s|%s|%s" "$ODD" "$MINE" "$PWD"']
        assert sandbox.run(show, env={"MINE": "x"}).output == f"a=b\nc gr\u00f6\u00dfe|x|{sandbox.root}"
        assert sandbox.environment["ODD"] == "a=b\nc gr\u00f6\u00dfe"
        session = sandbox.open_session(["sh", "-c", 'printf "%s end" "$ODD"'])
        assert session.wait_message(30).output == "a=b\nc gr\u00f6\u00dfe end"
        session.close()


def test_the_python_that_is_first_runs_our_modules_unless_it_is_too_old(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    for code, is_used in ((f'exec {sys.executable} "$@"', True), ("exit 1", False)):
        write_files(tmp_path, {"bin/python": f"#!/bin/sh\n{code}\n"})
        python.chmod(0o755)
        with open_sandbox(activated(tmp_path, f"PATH={python.parent}:$PATH"), LOCAL, trusted=True) as sandbox:
            assert (sandbox.python == str(python)) is is_used
            assert Path(sandbox.python).name.startswith("python")


@pytest.mark.parametrize(("code", "why"), [("echo broken; exit 3", "broken"), ("exit 3", "exit code 3")])
def test_what_cannot_be_activated_names_its_task(code: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=f"task calc: its environment cannot be activated: {why}"):
        open_sandbox(activated(tmp_path, code), LOCAL, trusted=True)
