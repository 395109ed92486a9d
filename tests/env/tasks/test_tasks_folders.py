"""Tasks from folders on disk: a repository of the user's own, and sets of folders with a test.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_tasks
from gumshoe.env.workspace import Workspace
from gumshoe.errors import TaskError, ToolFailure
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")


@pytest.fixture
def nightmares(tmp_path: Path) -> Path:
    """Two tasks as in debug-gym's mini_nightmare: one with a space and an accent in its name, one with CRLF files."""
    root = tmp_path / "nightmares"
    for name, end in (("größe 1", "\n"), ("pandas_like", "\r\n")):
        folder = root / name
        folder.mkdir(parents=True)
        (folder / "calc.py").write_bytes(end.join(["def double(n):", "    return n", ""]).encode())
        (folder / "test.py").write_bytes(
            end.join(["from calc import double", "", "def test_double():", "    assert double(2) == 4", ""]).encode()
        )
        (folder / ".debugignore").write_text(".debugignore\n.debugreadonly\nnotes/\n")
        (folder / ".debugreadonly").write_text("test.py\n")
        (folder / "notes").mkdir()
        (folder / "notes" / "answer.txt").write_text("n * 2\n")
    (root / ".git").mkdir()
    return root


def test_folders_are_loaded_as_they_are(nightmares: Path) -> None:
    tasks = load_tasks("nightmare", path=nightmares)
    assert [task.id for task, _ in tasks] == ["nightmare/größe 1", "nightmare/pandas_like"]
    assert [task for task, _ in load_tasks(f"nightmare:{nightmares}")] == [task for task, _ in tasks]
    ((one, oracle),) = load_tasks("nightmare", path=nightmares / "pandas_like")
    assert one == tasks[1][0]
    assert oracle.gold_patch == ""
    assert one.entrypoint[-1] == "test.py"


def test_the_tests_of_a_folder_are_seen_to_fail(nightmares: Path) -> None:
    assert [result.problems for result in check_tasks(load_tasks("nightmare", path=nightmares), CHEAPEST)] == [(), ()]


def test_the_ignore_files_of_a_folder_hold(nightmares: Path) -> None:
    task, _ = load_tasks("nightmare", path=nightmares)[0]
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        workspace = Workspace(task, sandbox)
        assert {entry.path for entry in workspace.list()} == {"calc.py", "test.py"}
        with pytest.raises(ToolFailure, match="read-only"):
            workspace.write_text("test.py", "")


def test_a_repository_of_ones_own_is_one_task(tmp_path: Path) -> None:
    ((task, oracle),) = load_tasks(
        "local",
        path=tmp_path,
        entrypoint="pytest -x 'my tests'",
        debug_entrypoint=["python", "main.py"],
        setup=["pip --version"],
        ignore=["secret/"],
        readonly=["tests/"],
    )
    assert task.id == f"local/{tmp_path.name}"
    assert task.entrypoint == ("python", "-m", "pytest", "-x", "my tests")
    assert task.debug_entrypoint == ("python", "main.py")
    assert task.setup == (("pip", "--version"),)
    assert (task.ignore, task.readonly) == (("secret/",), ("tests/",))
    assert "python -m pytest -x 'my tests'` fails" in task.problem_statement
    assert oracle.task_id == task.id


@pytest.mark.parametrize("prefix", ["PYTHONPATH=src GREETING='good day'", "env PYTHONPATH=src 'GREETING=good day'"])
def test_variables_before_the_entrypoint_hold_for_every_program(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "hello.py").write_text("import os\nWORDS = os.environ['GREETING']\n")
    (tmp_path / "test_hello.py").write_text("import hello\ndef test_words():\n    assert hello.WORDS == 'good day'\n")
    ((task, _),) = load_tasks(
        "local", path=tmp_path, entrypoint=f"{prefix} pytest -q", debug_entrypoint="A=1 python x.py"
    )
    assert (task.entrypoint, task.debug_entrypoint) == (("python", "-m", "pytest", "-q"), ("python", "x.py"))
    assert "`env PYTHONPATH=src 'GREETING=good day' python -m pytest -q` fails" in task.problem_statement
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        assert sandbox.environment["A"] == "1"
        run = Workspace(task, sandbox).run_tests()
        assert [(outcome.id, outcome.outcome) for outcome in run.outcomes] == [("test_hello.py::test_words", "passed")]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("local", {"path": ".", "entrypoint": "env A=1"}, "env A=1 only sets variables"),
        ("local", {"path": ".", "entrypoint": "A=1 x", "debug_entrypoint": "A=2 y"}, "set A differently"),
        ("local:/no/such/folder", {}, "no folder /no/such/folder"),
        ("local", {"path": ".", "entrypoint": "pytest 'x"}, 'entrypoint "pytest \'x" cannot be split into words'),
        ("local", {"path": ".", "entrypoint": ""}, "entrypoint is empty"),
        ("local", {"path": ".", "entry": "x"}, "unexpected keyword argument 'entry'"),
        ("nightmare:/no/such/folder", {}, "no folder /no/such/folder"),
    ],
)
def test_wrong_options_end_in_one_clear_line(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError) as caught:
        load_tasks(source, **options)
    assert message in str(caught.value)


def test_folders_without_tests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="holds no task folders"):
        load_tasks("nightmare", path=tmp_path)
    (tmp_path / "one").mkdir()
    with pytest.raises(TaskError, match=r"task nightmare/one: .* has no tests: add a test.py"):
        load_tasks("nightmare", path=tmp_path)


def test_ignored_folders_of_packages_are_left_out_unless_a_command_names_them(tmp_path: Path) -> None:
    paths = (".gitignore", ".venv/bin/python", "web/node_modules/x/a.js", "venv/kept.py", "a.py")
    write_files(tmp_path, dict.fromkeys(paths, ".venv\nnode_modules/\n"))
    ((task, _),) = load_tasks(f"local:{tmp_path}")
    assert task.workspace.overlay == {".venv": None, "web/node_modules": None}
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        kept = {entry.path for entry in sandbox.walk() if entry.kind == "file"}
    assert kept == {".gitignore", "venv/kept.py", "a.py"}
    ((own, _),) = load_tasks(f"local:{tmp_path}", entrypoint=".venv/bin/python -m pytest")
    assert own.workspace.overlay == {"web/node_modules": None}
