"""The scripted solver: what it repairs depends on the locations it is given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gumshoe.collect.config import TasksConfig, TracebackConfig
from gumshoe.collect.run.control import Control
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ConfigError, DatasetError, SandboxError, TaskError
from gumshoe.eval.arms.arm import Attempt, AttemptKey, EvalRun, Hooks, Solution
from gumshoe.eval.arms.packs import NoPacks, OraclePacks, StaticPacks, oracle_pack
from gumshoe.eval.arms.scripted_solver import ScriptedSolver, repair_each
from gumshoe.eval.config import ArmConfig, EvalConfig, SolverConfig
from gumshoe.eval.grader import Grader, PatchGrade, Submission
from gumshoe.records import ContextPack, Oracle, Task
from support.eval.made import check_part, make_oracle, make_pack
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import PLAIN, make_task

TESTS = "from shop import price\n\n\ndef test_members():\n    assert price([20, 30], True) == 40\n"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Task, Oracle]:
    """A subtraction turned into an addition, which one change mends."""
    task, oracle = make_task(tmp_path, 0, runner="pytest")
    (tmp_path / "test_shop.py").write_text(TESTS)
    wrong = PLAIN.replace("total - 10", "total + 10")
    workspace = task.workspace.model_copy(update={"overlay": {"shop.py": wrong}})
    patch = oracle.gold_patch.replace("total - 11", "total + 10")
    statement = "A discount is wrong: discount() adds."
    changes = {"workspace": workspace, "problem_statement": statement}
    return task.model_copy(update=changes), oracle.model_copy(update={"gold_patch": patch})


@pytest.fixture
def workspace(pair: tuple[Task, Oracle]) -> Iterator[Workspace]:
    sandbox = open_sandbox(pair[0], LOCAL, trusted=True)
    try:
        yield Workspace(pair[0], sandbox)
    finally:
        sandbox.close()


def test_the_right_line_lets_it_repair_the_bug(workspace: Workspace, pair: tuple[Task, Oracle]) -> None:
    (outcome,) = repair_each(workspace, [oracle_pack(pair[1])], tries=12)
    assert outcome.solved
    assert "-        total = total + 10" in outcome.patch
    assert outcome.tests == "1 test passes"
    assert workspace.patch() == ""
    workspace.write_text("shop.py", PLAIN)
    assert workspace.run_tests().passed


@pytest.mark.parametrize(
    "pack",
    [
        ContextPack(),
        make_pack(("shop.py", 7, 8)),
        make_pack(("test_shop.py", 1, 9)),
        make_pack(("missing.py", 1, 9), ("../out.py", 1, 2)),
    ],
    ids=["nothing", "wrong lines", "the tests", "no such file"],
)
def test_other_places_do_not_help_it_and_leave_no_trace(workspace: Workspace, pack: ContextPack) -> None:
    (outcome,) = repair_each(workspace, [pack], tries=3)
    assert (outcome.solved, outcome.patch) == (False, "")
    assert outcome.tries <= 3
    assert workspace.patch() == ""


def test_without_a_pack_it_looks_everywhere(workspace: Workspace) -> None:
    (alone,) = repair_each(workspace, [None], tries=40)
    assert alone.solved


SOURCES = {"no_pack": NoPacks(), "static": StaticPacks(), "oracle_pack": OraclePacks()}


def run_of(folder: Path, pair: tuple[Task, Oracle], control: Control | None = None) -> EvalRun:
    config = EvalConfig(
        out=str(folder),
        tasks=TasksConfig(source="casebook"),
        arms=(ArmConfig(name="a", policy=TracebackConfig()),),
        sandbox=LOCAL,
    )
    return EvalRun(config, (pair,), control or Control())


def script(folder: Path) -> ScriptedSolver:
    return ScriptedSolver(SolverConfig(tries=12), folder / "solver.jsonl", LOCAL, 0)


def attempts(run: EvalRun) -> list[Attempt]:
    """What the arms give that need no seeker."""
    (pair,) = run.tasks
    packs = {arm: source.collect(run, Hooks()).packs for arm, source in SOURCES.items()}
    return [Attempt(arm, *pair, pack, sample) for arm, found in packs.items() for (_, sample), pack in found.items()]


def solve(run: EvalRun, wanted: list[Attempt]) -> dict[AttemptKey, Solution]:
    return dict(script(run.out).solve(wanted, run, Hooks()))


def test_outcomes_are_kept_and_equal_packs_are_solved_once(tmp_path: Path, pair: tuple[Task, Oracle]) -> None:
    run = run_of(tmp_path / "runs", pair)
    task, oracle = pair
    wanted = [Attempt(name, task, oracle, oracle_pack(oracle)) for name in ("a", "b")]
    wanted += [Attempt("c", task, oracle, ContextPack()), *attempts(run)]
    found = solve(run, wanted)
    solved = {arm: one.solved for (arm, _, _), one in found.items()}
    assert (solved["a"], solved["b"], solved["c"], solved["oracle_pack"]) == (1.0, 1.0, 0.0, 1.0)
    assert found["a", task.id, 0].patch == found["oracle_pack", task.id, 0].patch != ""
    path = run.out / "solver.jsonl"
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    path.write_text("\n".join(lines) + '\n{"torn')
    assert solve(run, wanted) == found
    assert path.read_text().splitlines() == lines


def test_a_sandbox_that_cannot_be_made_ends_the_run(tmp_path: Path, pair: tuple[Task, Oracle]) -> None:
    spec = pair[0].workspace.model_copy(update={"path": str(tmp_path / "gone")})
    run = run_of(tmp_path, (pair[0].model_copy(update={"workspace": spec}), pair[1]))
    with pytest.raises(TaskError):
        solve(run, [Attempt("a", *run.tasks[0], None)])


def test_hidden_tests_are_nothing_for_the_script(tmp_path: Path, pair: tuple[Task, Oracle]) -> None:
    hidden = pair[0].model_copy(update={"regime": "issue"})
    assert check_part(script(tmp_path), [pair]) == 1
    with pytest.raises(ConfigError, match=r"shop/0 hides its tests.* solver\.kind=policy"):
        check_part(script(tmp_path), [(hidden, pair[1])])


def test_a_damaged_file_is_named(tmp_path: Path, pair: tuple[Task, Oracle]) -> None:
    (tmp_path / "solver.jsonl").write_text("[]\n")
    with pytest.raises(DatasetError, match="line 1 is not a JSON object: remove the file"):
        solve(run_of(tmp_path, pair), [])


def places(pack: ContextPack) -> list[tuple[str, int, int]]:
    return [(place.path, place.start, place.end) for place in pack.locations]


def test_the_oracles_pack_is_the_gold_lines() -> None:
    assert places(oracle_pack(make_oracle())) == [("cart.py", 8, 8), ("cart.py", 11, 11)]


# --- other ways to run tests, and to grade ------------------------------------------------------------------------


def test_tests_that_are_not_pytests_are_run_as_they_are(workspace: Workspace, pair: tuple[Task, Oracle]) -> None:
    check = "import shop; assert shop.price([20, 30], True) == 40"
    task = pair[0].model_copy(update={"entrypoint": ("python", "-c", check)})
    other = Workspace(task, workspace.sandbox)
    right, nothing, again = repair_each(other, [oracle_pack(pair[1]), ContextPack(), None], tries=6)
    assert right.solved
    assert not nothing.solved
    assert again.tries <= 6
    assert other.patch() == ""


def test_a_suite_that_does_not_start_is_told(workspace: Workspace, pair: tuple[Task, Oracle]) -> None:
    task = pair[0].model_copy(update={"entrypoint": ("no-such-python", "-m", "pytest")})
    with pytest.raises(SandboxError, match="changes cannot be tried there"):
        repair_each(Workspace(task, workspace.sandbox), [oracle_pack(pair[1])], tries=2)


def test_patches_are_graded_once_each(tmp_path: Path, pair: tuple[Task, Oracle]) -> None:
    task, oracle = pair
    wrong = oracle.gold_patch.replace("+        total = total - 10", "+        total = total - 9")
    stale = oracle.gold_patch.replace("total + 10", "total * 10")
    patches = {"gold": oracle.gold_patch, "wrong": wrong, "stale": stale, "empty": ""}
    submissions = {name: Submission(task, oracle, patch) for name, patch in patches.items()}
    stopped = Control()
    stopped.finish()
    assert Grader(tmp_path / "grades.jsonl", LOCAL).grade(submissions, stopped, 2)["gold"] == PatchGrade()
    grades = {
        "gold": PatchGrade(1.0, "1 test passes"),
        "wrong": PatchGrade(0.0, "1 still fail: test_shop.py::test_members"),
        "stale": PatchGrade(0.0, "the patch does not apply"),
        "empty": PatchGrade(0.0, "no patch"),
    }
    assert Grader(tmp_path / "grades.jsonl", LOCAL).grade(submissions, Control(), 2) == grades
    assert Grader(tmp_path / "grades.jsonl", LOCAL).grade(submissions, stopped, 2) == grades
