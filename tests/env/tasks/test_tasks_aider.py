"""Exercism's Python exercises as tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier import grade
from gumshoe.env.verifier.check import check_tasks
from gumshoe.errors import TaskError
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

TESTS = """\
import unittest

from two_fer import two_fer


class TwoFerTest(unittest.TestCase):
    def test_name(self):
        self.assertEqual(two_fer("Bob"), "One for Bob, one for me.")
"""
STUB = "def two_fer(name):\n    pass\n"
EXAMPLE = 'def two_fer(name="you"):\n    return f"One for {name}, one for me."\n'


def exercise(root: Path, name: str = "two-fer", **files: list[str]) -> Path:
    folder = root / "exercises" / "practice" / name
    (folder / ".meta").mkdir(parents=True)
    (folder / ".docs").mkdir()
    (folder / "two_fer.py").write_text(STUB)
    (folder / "two_fer_test.py").write_text(TESTS)
    (folder / ".meta" / "example.py").write_text(EXAMPLE)
    (folder / ".docs" / "instructions.md").write_text("# Instructions\n\nOne for you.\n")
    (folder / ".docs" / "introduction.md").write_text("# Introduction\n")
    roles = {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": [".meta/example.py"], **files}
    (folder / ".meta" / "config.json").write_text(json.dumps({"authors": [], "files": roles}))
    return folder


def test_an_exercise_is_proven_and_its_example_stays_out(tmp_path: Path) -> None:
    exercise(tmp_path)
    (tmp_path / "exercises" / "practice" / "notes").mkdir()
    tasks = load_tasks(f"aider:{tmp_path}")
    ((task, oracle),) = tasks
    assert (task.id, task.source) == ("aider/two-fer", "aider")
    assert task.problem_statement.startswith(
        "# Introduction\n\n# Instructions\n\nOne for you.\n\nWrite the solution in"
    )
    assert [result.problems for result in check_tasks(tasks, CHEAPEST)] == [()]
    assert grade(task, oracle, oracle.gold_patch, CHEAPEST).resolved
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        names = {entry.path for entry in sandbox.walk() if entry.kind == "file"}
        assert names == {"two_fer.py", "two_fer_test.py", ".docs/instructions.md", ".docs/introduction.md"}


def test_an_exercise_whose_example_does_not_correspond_has_no_answer(tmp_path: Path) -> None:
    exercise(tmp_path, example=[])
    ((_, oracle),) = load_tasks("aider", path=tmp_path)
    assert oracle.gold_patch == ""


def test_a_broken_exercise_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    exercise(tmp_path)
    exercise(tmp_path, "gone", solution=["gone.py"])
    exercise(tmp_path, "unnamed", test=[])
    exercise(tmp_path, "no-example", example=[".meta/other.py"])
    (exercise(tmp_path, "torn") / ".meta" / "config.json").write_text("{")
    told: list[str] = []
    tasks = load_tasks("aider", path=tmp_path, on_error=lambda error: told.append(str(error)))
    assert [task.id for task, _ in tasks] == ["aider/two-fer"]
    assert [text.partition(": ")[0] for text in told] == [
        "task aider/gone",
        "task aider/no-example",
        "task aider/torn",
        "task aider/unnamed",
    ]
    assert "its file gone.py is missing" in told[0]
    with pytest.raises(TaskError, match="task aider/gone"):
        load_tasks("aider", path=tmp_path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[]", "cannot be read: "),
        ('{"files": {"solution": [3], "test": []}}', r"cannot be read: files\.solution\.0: Input should be a valid"),
        ('{"files": {"solution": "a.py"}}', r"cannot be read: files\.solution: Input should be a valid array"),
        ("[" * 100_000, "cannot be read: Invalid JSON"),
        ('{"files": {"solution": ["two_fer.py"], "test": ["two_fer_test.py"], "example": ["\\u0000"]}}', "its example"),
    ],
    ids=["list", "number", "text", "deep", "null character"],
)
def test_a_config_of_another_form_is_one_line(config: str, message: str, tmp_path: Path) -> None:
    (exercise(tmp_path) / ".meta" / "config.json").write_text(config)
    with pytest.raises(TaskError, match=f"task aider/two-fer: .*{message}") as caught:
        load_tasks("aider", path=tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_without_exercises_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="holds no Python exercises"):
        load_tasks("aider", path=tmp_path)
    with pytest.raises(TaskError, match="no folder"):
        load_tasks("aider", path=tmp_path / "gone")
