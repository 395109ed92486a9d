"""Applying patches in a sandbox, also where it has no git."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import apply_to_sandbox, make_patch
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.errors import TaskError
from gumshoe.protocols import Sandbox
from gumshoe.records import Task, WorkspaceSpec

FILES = {"a b.py": b"one\r\ntwo\r\n", "gone.py": b"x\n", "gr\u00f6\u00dfe.bin": bytes(range(256))}


@pytest.fixture(params=["with git", "without git"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    for path, data in FILES.items():
        (tmp_path / path).write_bytes(data)
    nothing = {} if request.param == "with git" else {"PATH": "/nowhere"}
    task = Task(
        id="calc",
        source="test",
        problem_statement="",
        workspace=WorkspaceSpec(path=str(tmp_path)),
        entrypoint=("true",),
    )
    with open_sandbox(task, SandboxConfig(kind="local", unsafe=True, env=nothing), trusted=True) as opened:
        yield opened


def test_every_kind_of_change_is_laid(sandbox: Sandbox) -> None:
    after = {"a b.py": b"one\r\n2\r\n", "gone.py": None, "gr\u00f6\u00dfe.bin": b"\0\1", "new/c d.py": b"y\n"}
    clean = sandbox.snapshot()
    apply_to_sandbox(sandbox, make_patch({path: (FILES.get(path), now) for path, now in after.items()}), "calc", clean)
    assert {entry.path for entry in sandbox.walk() if entry.kind == "file"} == {path for path in after if after[path]}
    for path, data in after.items():
        assert data is None or sandbox.read_file(path) == data
    apply_to_sandbox(sandbox, "", "calc", clean)


@pytest.mark.parametrize(
    "patch",
    [
        make_patch({"a b.py": (b"other\n", b"text\n")}),
        make_patch({"missing.py": (b"other\n", b"text\n")}),
        make_patch({"../out.py": (None, b"text\n")}),
        "I could not find it.\n",
    ],
)
def test_what_does_not_apply_names_the_task_and_changes_nothing(sandbox: Sandbox, patch: str) -> None:
    clean = sandbox.snapshot()
    with pytest.raises(TaskError, match="task calc: "):
        apply_to_sandbox(sandbox, patch, "calc", clean)
    assert sandbox.changes(clean) == {}
