"""Proving tasks in real sandboxes, and the command that does it."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.episode import Episode
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.collect.run.play import finished_trajectory
from gumshoe.env import DebugEnv
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.env.verifier import grade_of
from gumshoe.env.verifier.check import check_task, check_tasks
from gumshoe.env.verifier.judge import judge
from gumshoe.records import Completion, ExecResult, Limits, Oracle, Task, TestOutcome, TestRun, ToolCall
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
    env = DebugEnv(task, oracle=oracle, tools=("rewrite", "submit"), sandbox=CHEAPEST, trusted=True)
    calls = [ToolCall(id="1", name="rewrite", arguments={"path": "calc.py", "code": code})]
    calls.append(ToolCall(id="2", name="submit", arguments={}))
    policy = ScriptedPolicy([Completion(text="", tool_calls=(call,)) for call in calls])
    with closing(Episode(EpisodeSpec(task, oracle), make_agent(AgentConfig()), environment=env)) as episode:
        while (request := episode.next_request()) is not None:
            episode.accept(policy.complete(request.messages, request.tools))
        found = finished_trajectory(episode, policy)
    assert (episode.reward, found.steps[-1].reward, found.resolved) == (reward, reward, reward)
    verdict = episode.verdict
    assert verdict is not None
    assert (grade_of(task, verdict).outcome == "error") == (reward is None or verdict.run.result.timed_out)


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


def test_a_gold_patch_that_lost_its_last_lines_is_refused(project: Path) -> None:
    whole = make_patch({"calc.py": (BUGGY.encode() + b"\n\n", CLEAN.encode() + b"\n\n")})
    assert "not a unified diff" in problems(a_task(project, gold_patch=whole.rstrip()))


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
    useless = make_patch({"other.py": (None, b"x = 1\n")})
    assert "with the gold patch the tests still fail" in problems(
        a_task(project, gold_patch=useless, fail_to_pass=[], pass_to_pass=[])
    )


def test_a_patch_that_does_not_apply_names_the_task(project: Path) -> None:
    patch = make_patch({"calc.py": (b"other\n", b"text\n")})
    assert re.match(r"task calc: the patch does not apply: calc.py:1", problems(a_task(project, gold_patch=patch)))


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


def test_tests_that_hang_are_a_problem_of_their_task(project: Path) -> None:
    (project / "test_calc.py").write_text("import time\n\ndef test_add():\n    time.sleep(600)\n")
    assert "the tests run for more than" in problems(a_task(project, timeout_s=2.0, gold_patch=""))


def test_tests_behind_a_bug_that_takes_too_long_say_so(project: Path) -> None:
    slow = "import time\n\ndef test_add():\n    from calc import add\n    add(2, 1) == 3 or time.sleep(600)\n"
    (project / "test_calc.py").write_text(f"{slow}\n\ndef test_last():\n    pass\n")
    first, last = (f"test_calc.py::{name}" for name in ("test_add", "test_last"))
    found = problems(a_task(project, timeout_s=3.0, fail_to_pass=[first], pass_to_pass=[last]))
    assert found.startswith(
        "before the gold patch the time is over (limits.command_timeout_s) before these tests pass: "
    )
    assert found.endswith(last)


def test_an_entrypoint_that_is_not_there_is_a_problem(project: Path) -> None:
    assert "the entrypoint cannot be run" in problems(a_task(project, entrypoint=("no-such-program",), gold_patch=""))


@pytest.mark.parametrize(
    ("outcome", "resolved"),
    [("passed", True), ("xfailed", False), ("skipped", False), ("failed", False), ("error", False)],
)
def test_the_official_rule_for_tests_to_repair(outcome: str, resolved: bool) -> None:
    oracle = Oracle(task_id="x", gold_patch="", fail_to_pass=("t",))
    assert judge(a_run(t=outcome), oracle).resolved is resolved


def test_the_official_rule_for_tests_to_keep() -> None:
    oracle = Oracle(task_id="x", gold_patch="", fail_to_pass=("t",), pass_to_pass=("u", "v"))
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


def test_the_command_ends_with_1_when_a_task_is_broken(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_taskset(tmp_path, [a_task(project, gold_patch="", fail_to_pass=["test_calc.py::test_zero"])])
    assert main(["tasks", "check", str(tmp_path), *CHEAPEST_OPTIONS, "--json", "--workers", "2"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["passed"] is False
    assert row["problems"]


@pytest.mark.parametrize(("module", "is_missing"), [("no_such_library", True), ("parts.missing", False)])
def test_a_module_that_is_not_installed_is_not_taken_for_the_bug(module: str, is_missing: bool, project: Path) -> None:
    """Unless it is one of the repository, which may be the bug."""
    (project / "parts").mkdir()
    (project / "test_calc.py").write_text(f"import {module}\n\n\ndef test_add():\n    assert False\n")
    task, _ = a_task(project)
    found = "; ".join(check_task(task, Oracle(task_id="calc", gold_patch=""), CHEAPEST).problems)
    assert ("the module no_such_library is not installed" in found) is is_missing
    assert ("not installed" in found) is is_missing


def test_what_the_output_ends_with_is_shown(project: Path) -> None:
    (project / "test_calc.py").write_text("def test_add():\n    raise OSError('the disk is made of cheese')\n")
    found = problems(a_task(project, pass_to_pass=[]))
    assert "the output ends: " in found
    assert "the disk is made of cheese" in found
