"""An environment that is activated once holds for every program, and for our injected modules."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.errors import TaskError
from gumshoe.records import Task, WorkspaceSpec
from support.sandboxes.sandbox_backends import LOCAL


def a_task(folder: Path, activate: str) -> Task:
    workspace = WorkspaceSpec(path=str(folder), activate=activate)
    return Task(id="calc", source="test", problem_statement="", workspace=workspace, entrypoint=("true",))


def a_python(folder: Path, code: str) -> Path:
    """A folder with a program `python` that answers as `code`, a shell script, says."""
    place = folder / "bin"
    place.mkdir()
    (place / "python").write_text(f"#!/bin/sh\n{code}\n")
    (place / "python").chmod(0o755)
    return place


def test_variables_with_any_text_hold_for_programs_and_sessions(tmp_path: Path) -> None:
    task = a_task(tmp_path, "echo noise; export ODD=$'a=b\\nc gr\u00f6\u00dfe' && unset HOME")
    with open_sandbox(task, LOCAL, trusted=True) as sandbox:
        show = ["sh", "-c", 'printf "%s|%s|%s" "$ODD" "$MINE" "$PWD"']
        assert sandbox.run(show, env={"MINE": "x"}).output == f"a=b\nc gr\u00f6\u00dfe|x|{sandbox.root}"
        assert sandbox.environment["ODD"] == "a=b\nc gr\u00f6\u00dfe"
        session = sandbox.open_session(["sh", "-c", 'printf "%s end" "$ODD"'])
        assert session.wait_message(30).output == "a=b\nc gr\u00f6\u00dfe end"
        session.close()


def test_the_python_that_is_first_runs_our_modules_unless_it_is_too_old(tmp_path: Path) -> None:
    good = a_python(tmp_path, f'exec {sys.executable} "$@"')
    with open_sandbox(a_task(tmp_path, f"PATH={good}:$PATH"), LOCAL, trusted=True) as sandbox:
        assert sandbox.python == str(good / "python")
    (good / "python").write_text("#!/bin/sh\nexit 1\n")
    with open_sandbox(a_task(tmp_path, f"PATH={good}:$PATH"), LOCAL, trusted=True) as sandbox:
        assert sandbox.python != str(good / "python")
        assert os.path.basename(sandbox.python).startswith("python")  # noqa: PTH119 - a path in the sandbox


@pytest.mark.parametrize(("code", "why"), [("echo broken; exit 3", "broken"), ("exit 3", "exit code 3")])
def test_what_cannot_be_activated_names_its_task(code: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=f"task calc: its environment cannot be activated: {why}"):
        open_sandbox(a_task(tmp_path, code), LOCAL, trusted=True)
