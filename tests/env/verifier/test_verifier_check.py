"""Proving tasks in real sandboxes, and the command that does it."""

import json
import math
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.env import DebugEnv
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.env.verifier import grade_of
from gumshoe.env.verifier.check import check_task, check_tasks
from gumshoe.env.verifier.judge import judge
from gumshoe.env.verifier.proof import RepairedRuns
from gumshoe.records import ExecResult, Limits, Oracle, Task, TestOutcome, TestRun, ToolCall
from support.folder_tasks import PYTEST, folder_task, write_files
from support.sandboxes.sandbox_backends import CHEAPEST, CHEAPEST_OPTIONS

pytestmark = pytest.mark.needs("bubblewrap")

BUGGY = "def add(a, b):\n    return a - b\n"
CLEAN = "def add(a, b):\n    return a + b\n"
TESTS = """\
from calc import add


def test_add():
    assert add(2, 2) == 4


def test_zero():
    assert add(3, 0) == 3
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "repo", {"calc.py": BUGGY, "test_calc.py": TESTS})


def a_task(
    project: Path, *, entrypoint: tuple[str, ...] = PYTEST, timeout_s: float = 60.0, **oracle: object
) -> tuple[Task, Oracle]:
    task = folder_task(project, id="calc", entrypoint=entrypoint, limits=Limits(command_timeout_s=timeout_s))
    facts: dict[str, object] = {
        "gold_patch": make_patch({"calc.py": (BUGGY.encode(), CLEAN.encode())}),
        "fail_to_pass": ["test_calc.py::test_add"],
        "pass_to_pass": ["test_calc.py::test_zero"],
        **oracle,
    }
    return task, Oracle.model_validate({"task_id": "calc", **facts})


def problems(pair: tuple[Task, Oracle]) -> str:
    return "; ".join(check_task(*pair, CHEAPEST).problems)


@pytest.mark.parametrize(
    ("entrypoint", "timeout_s", "code", "reward"),
    [
        (("no-such-program",), 60, CLEAN, None),
        ((*PYTEST, "--no-such-option"), 60, CLEAN, None),
        (("python", "-c", "import time; time.sleep(60)"), 2, CLEAN, None),
        (PYTEST, 60, "import os\nos._exit(0)\n", 0.0),
        (PYTEST, 10, "while True:\n    pass\n", 0.0),
    ],
    ids=["no program", "wrong option", "time too short", "ends the process", "never ends"],
)
def test_what_a_gold_patch_could_not_pass_is_no_reward(
    project: Path, entrypoint: tuple[str, ...], timeout_s: float, code: str, reward: float | None
) -> None:
    task, oracle = a_task(project, entrypoint=entrypoint, timeout_s=timeout_s)
    with closing(DebugEnv(task, oracle=oracle, sandbox=CHEAPEST, trusted=True)) as env:
        env.reset()
        env.step(ToolCall(id="1", name="rewrite", arguments={"path": "calc.py", "code": code}))
        _, given, *_ = env.step(ToolCall(id="2", name="submit"))
    assert math.isnan(given) if reward is None else given == reward
    assert env.verdict is not None
    assert (grade_of(task, env.verdict).outcome == "error") == (reward is None or env.verdict.run.result.timed_out)


def test_without_named_tests_those_of_the_repository_decide(project: Path) -> None:
    assert problems(a_task(project, fail_to_pass=[], pass_to_pass=[])) == ""
    (project / "calc.py").write_text(CLEAN)
    assert "there is no bug" in problems(a_task(project, fail_to_pass=[], pass_to_pass=[], gold_patch=""))


def test_without_a_gold_patch_only_the_failing_is_checked_and_a_broken_task_does_not_stop_others(project: Path) -> None:
    good, bad = (a_task(folder, gold_patch="") for folder in (project, project / "gone"))
    results = list(check_tasks([bad, good], CHEAPEST, workers=2))
    assert [result.passed for result in results] == [False, True]
    assert "not a folder on this machine" in results[0].problems[0]
    assert results[1].duration_s > 0


NO_PROGRAM = ("no-such-program",)
HANGS = "import time\n\ndef test_add():\n    time.sleep(600)\n"
RAISES = "def test_add():\n    raise OSError('the disk is made of cheese')\n"
# One whose last lines are lost, one of another file.
TORN = make_patch({"calc.py": (BUGGY.encode() + b"\n\n", CLEAN.encode() + b"\n\n")}).rstrip()
OTHER = make_patch({"calc.py": (b"other\n", b"text\n")})
USELESS = {"gold_patch": make_patch({"other.py": (None, b"x = 1\n")}), "fail_to_pass": [], "pass_to_pass": []}


@pytest.mark.parametrize(
    ("tests", "facts", "said"),
    [
        (TESTS, {"gold_patch": TORN}, "not a unified diff"),
        (TESTS, {"gold_patch": OTHER}, "task calc: the patch does not apply: calc.py:1"),
        (TESTS, USELESS, "with the gold patch the tests still fail"),
        (TESTS, {"gold_patch": "", "entrypoint": NO_PROGRAM}, "the entrypoint cannot be run"),
        (HANGS, {"gold_patch": "", "timeout_s": 2.0}, "the tests run for more than"),
        (RAISES, {"pass_to_pass": []}, "the disk is made of cheese"),
    ],
    ids=["torn patch", "other patch", "useless", "no program", "hangs", "end of the output"],
)
def test_what_is_wrong_is_said_in_one_line(tests: str, facts: dict[str, Any], said: str, project: Path) -> None:
    (project / "test_calc.py").write_text(tests)
    assert said in problems(a_task(project, **facts))


def test_what_is_wrong_with_a_task_is_said(project: Path) -> None:
    wrong = make_patch({"calc.py": (BUGGY.encode(), b"def add(a, b):\n    return 4\n")})
    assert problems(a_task(project, gold_patch=wrong)).startswith(
        "with the gold patch these tests should pass and do not: test_calc.py::test_zero; the output ends: "
    )
    zero, gone = ("test_calc.py::test_zero", "test_calc.py::gone")
    swapped = a_task(project, gold_patch=wrong, fail_to_pass=[zero, gone], pass_to_pass=["test_calc.py::test_add"])
    said = problems(swapped)
    assert f"before the gold patch these tests should fail and pass: {zero};" in said
    assert "before the gold patch these tests should pass and do not: test_calc.py::test_add;" in said
    assert f"with the gold patch these tests should pass and do not: {zero}, {gone};" in said


def test_a_gold_patch_may_delete_and_add_files_and_the_test_patch_of_an_issue_brings_its_tests(project: Path) -> None:
    (project / "calc.py").unlink()
    (project / "test_calc.py").unlink()
    (project / "sitecustom.py").write_text("x = 1\n")
    task, oracle = a_task(
        project,
        gold_patch=make_patch({"calc.py": (None, CLEAN.encode()), "sitecustom.py": (b"x = 1\n", None)}),
        test_patch=make_patch({"test_calc.py": (None, TESTS.encode())}),
        fail_to_pass=["test_calc.py::test_add", "test_calc.py::test_zero"],
        pass_to_pass=[],
    )
    assert check_task(task.model_copy(update={"regime": "issue"}), oracle, CHEAPEST).problems == ()


def test_tests_behind_a_bug_that_takes_too_long_say_so(project: Path) -> None:
    slow = "import time\n\ndef test_add():\n    from calc import add\n    add(2, 1) == 3 or time.sleep(600)\n"
    (project / "test_calc.py").write_text(f"{slow}\n\ndef test_last():\n    pass\n")
    first, last = (f"test_calc.py::{name}" for name in ("test_add", "test_last"))
    found = problems(a_task(project, timeout_s=3.0, fail_to_pass=[first], pass_to_pass=[last]))
    assert found.startswith(
        "before the gold patch the time is over (limits.command_timeout_s) before these tests pass: "
    )
    assert found.endswith(last)


def test_the_official_rules() -> None:
    oracle = Oracle(task_id="x", gold_patch="", fail_to_pass=("t",))
    for outcome in ("passed", "xfailed", "skipped", "failed", "error"):
        assert judge(a_run(t=outcome), oracle).resolved is (outcome == "passed")
    oracle = oracle.model_copy(update={"pass_to_pass": ("u", "v")})
    assert judge(a_run(t="passed", u="skipped", v="passed"), oracle).resolved
    assert judge(a_run(t="passed", u="passed"), oracle).failing_pass_to_pass == ("v",)
    assert judge(a_run(u="passed", v="passed"), oracle).failing_fail_to_pass == ("t",)


def a_run(**outcomes: str) -> TestRun:
    tests = [TestOutcome.model_validate({"id": name, "outcome": outcome}) for name, outcome in outcomes.items()]
    return TestRun(result=ExecResult(exit_code=0, output="", duration_s=0), outcomes=tuple(tests))


def test_the_command_lists_shows_and_checks(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, oracle = a_task(project)
    write_taskset(tmp_path, [(task.model_copy(update={"tags": {"split": "train"}}), oracle)])
    folder = str(tmp_path)
    assert main(["tasks", "list", folder, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["id"] == "calc"
    assert len(row["hash"]) == 64
    assert main(["tasks", "list", folder, "--tag", "split=heldout"]) == 0
    assert "0 tasks" in capsys.readouterr().out
    assert main(["tasks", "show", folder, "calc"]) == 0
    assert "return a + b" not in capsys.readouterr().out
    assert main(["tasks", "show", folder, "calc", "--oracle"]) == 0
    assert "+    return a + b" in capsys.readouterr().out
    assert main(["tasks", "show", folder, "calc", "--json", "--oracle"]) == 0
    assert json.loads(capsys.readouterr().out)["oracle"]["task_id"] == "calc"
    assert main(["tasks", "check", folder, *CHEAPEST_OPTIONS]) == 0
    assert "1 of 1 tasks are proven" in capsys.readouterr().out
    write_taskset(tmp_path, [a_task(project, gold_patch="", fail_to_pass=["test_calc.py::test_zero"])])
    assert main(["tasks", "check", folder, *CHEAPEST_OPTIONS, "--json", "--workers", "2"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["passed"] is False
    assert row["problems"]
    assert main(["tasks", "check", folder, "-p", "memory_mb=many"]) == 2
    assert "the sandbox of -p: memory_mb" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "is_missing"), [("no_such_library", True), ("parts.missing", False)])
def test_a_module_that_is_not_installed_is_not_taken_for_the_bug(module: str, is_missing: bool, project: Path) -> None:
    """Unless it is one of the repository, which may be the bug."""
    tests = f"import {module}\n\n\ndef test_add():\n    assert False\n"
    write_files(project, {"parts/__init__.py": "", "test_calc.py": tests})
    found = problems(a_task(project, gold_patch="", fail_to_pass=[], pass_to_pass=[]))
    assert (f"the module {module} is not installed" in found) is is_missing


# --- tasks of one project share the run of the repaired repository, and nothing else

BOTH = f"{CLEAN}\n\ndef double(a):\n    return 2 * a\n"
TESTS_OF_BOTH = f"from calc import double\n{TESTS}\n\ndef test_double():\n    assert double(3) == 6\n"
ADD, DOUBLE = "test_calc.py::test_add", "test_calc.py::test_double"


def a_bug(project: Path, old: str, new: str, failing: str, repaired: str = BOTH) -> tuple[Task, Oracle]:
    buggy = BOTH.replace(old, new)
    write_files(project, {"calc.py": BOTH, ".debugreadonly": "test_*.py\n"})
    workspace = workspace_from_folder(project, {"calc.py": buggy})
    task = folder_task(project, id=f"calc/{failing}", workspace=workspace)
    patch = make_patch({"calc.py": (buggy.encode(), repaired.encode())})
    others = tuple(test for test in (ADD, DOUBLE) if test != failing)
    return task, Oracle(task_id=task.id, gold_patch=patch, fail_to_pass=(failing,), pass_to_pass=others)


def test_only_bugs_that_lead_back_to_the_clean_project_share_its_run_and_only_for_tests_that_were_in_it(
    project: Path,
) -> None:
    (project / "test_calc.py").write_text(TESTS_OF_BOTH)
    runs = RepairedRuns(CHEAPEST)
    first = runs.proof(*a_bug(project, "a + b", "a - b", ADD))
    other = a_bug(project, "2 * a", "3 * a", DOUBLE)
    assert runs.proof(*other) is first
    assert judge(first.run, other[1]).resolved
    wrong = a_bug(project, "2 * a", "3 * a", DOUBLE, repaired=BOTH.replace("2 * a", "4 * a"))
    missing = a_bug(project, "a + b", "a - b", "test_calc.py::test_missing")
    assert [judge(runs.proof(*bug).run, bug[1]).failing for bug in (wrong, missing)] == [
        (DOUBLE,),
        ("test_calc.py::test_missing",),
    ]


def test_a_run_in_which_a_test_fails_is_not_shared(project: Path) -> None:
    (project / "test_calc.py").write_text(TESTS_OF_BOTH + "\n\ndef test_other():\n    assert False\n")
    runs = RepairedRuns(CHEAPEST)
    pair = a_bug(project, "a + b", "a - b", ADD)
    first = runs.proof(*pair)
    assert judge(first.run, pair[1]).resolved
    assert runs.proof(*pair) is not first
