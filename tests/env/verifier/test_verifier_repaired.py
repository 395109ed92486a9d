"""Tasks of one project share the run of the repaired repository, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.verifier.judge import judge
from gumshoe.env.verifier.proof import RepairedRuns
from gumshoe.records import Oracle, Task
from support.folder_tasks import folder_task, write_files
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

CLEAN = "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n"
TESTS = """\
from calc import add, double


def test_add():
    assert add(2, 2) == 4


def test_double():
    assert double(3) == 6
"""
ADD, DOUBLE = "test_calc.py::test_add", "test_calc.py::test_double"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {"calc.py": CLEAN, "test_calc.py": TESTS, ".debugreadonly": "test_*.py\n"}
    return write_files(tmp_path / "repo", files)


def a_bug(project: Path, old: str, new: str, failing: str, repaired: str = CLEAN) -> tuple[Task, Oracle]:
    buggy = CLEAN.replace(old, new)
    workspace = workspace_from_folder(project, {"calc.py": buggy})
    task = folder_task(project, id=f"calc/{failing}", workspace=workspace)
    patch = make_patch({"calc.py": (buggy.encode(), repaired.encode())})
    others = tuple(test for test in (ADD, DOUBLE) if test != failing)
    return task, Oracle(task_id=task.id, gold_patch=patch, fail_to_pass=(failing,), pass_to_pass=others)


def test_only_bugs_that_lead_back_to_the_clean_project_share_its_run_and_only_for_tests_that_were_in_it(
    project: Path,
) -> None:
    runs = RepairedRuns(CHEAPEST)
    first = runs.proof(*a_bug(project, "a + b", "a - b", ADD))
    other = a_bug(project, "2 * a", "3 * a", DOUBLE)
    assert runs.proof(*other) is first
    assert judge(first.run, other[1]).resolved
    wrong = a_bug(project, "2 * a", "3 * a", DOUBLE, repaired=CLEAN.replace("2 * a", "4 * a"))
    missing = a_bug(project, "a + b", "a - b", "test_calc.py::test_missing")
    assert [judge(runs.proof(*bug).run, bug[1]).failing for bug in (wrong, missing)] == [
        (DOUBLE,),
        ("test_calc.py::test_missing",),
    ]


def test_a_run_in_which_a_test_fails_is_not_shared(project: Path) -> None:
    (project / "test_calc.py").write_text(TESTS + "\n\ndef test_other():\n    assert False\n")
    runs = RepairedRuns(CHEAPEST)
    pair = a_bug(project, "a + b", "a - b", ADD)
    first = runs.proof(*pair)
    assert judge(first.run, pair[1]).resolved
    assert runs.proof(*pair) is not first
