"""The script, whose repairs depend on the places that it is given, and the model that answers once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gumshoe.collect.config import TasksConfig, TracebackConfig
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.packs import with_pack
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.play import play_one
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ConfigError, SandboxError
from gumshoe.eval.arms.arm import Attempt, EvalRun, Hooks, Solution
from gumshoe.eval.arms.one_shot import (
    AGENT,
    CodeEdit,
    OneShotPolicy,
    ShownCode,
    confirmed_changes,
    limit_turns,
    read_edits,
    view_calls,
)
from gumshoe.eval.arms.packs import NoPacks, OraclePacks, StaticPacks, oracle_pack
from gumshoe.eval.arms.scripted_solver import ScriptedSolver, repair_each
from gumshoe.eval.config import ArmConfig, EvalConfig, SolverConfig
from gumshoe.eval.grader import Grader, PatchGrade, Submission
from gumshoe.records import (
    Check,
    Completion,
    ContextPack,
    Finding,
    Message,
    Oracle,
    StopReason,
    Task,
    ToolCall,
    ToolSchema,
    Trajectory,
    WhatIfProbe,
)
from support.eval.made import check_part, make_pack
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import PLAIN, make_task

Pair = tuple[Task, Oracle]
MEMBERS = "from shop import price\n\n\ndef test_members():\n    assert price([20, 30], True) == 40\n"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A subtraction turned into an addition, which one change mends."""
    task, oracle = make_task(tmp_path, 0, runner="pytest")
    (tmp_path / "test_shop.py").write_text(MEMBERS)
    wrong = PLAIN.replace("total - 10", "total + 10")
    workspace = task.workspace.model_copy(update={"overlay": {"shop.py": wrong}})
    patch = oracle.gold_patch.replace("total - 11", "total + 10")
    statement = "A discount is wrong: discount() adds."
    changes = {"workspace": workspace, "problem_statement": statement}
    return task.model_copy(update=changes), oracle.model_copy(update={"gold_patch": patch})


@pytest.fixture
def workspace(pair: Pair) -> Iterator[Workspace]:
    with closing(open_sandbox(pair[0], LOCAL, trusted=True)) as sandbox:
        yield Workspace(pair[0], sandbox)


def test_the_right_line_lets_it_repair_the_bug_and_other_places_do_not(workspace: Workspace, pair: Pair) -> None:
    wrong = [ContextPack(), make_pack(("shop.py", 7, 8)), make_pack(("test_shop.py", 1, 9))]
    wrong.append(make_pack(("missing.py", 1, 9), ("../out.py", 1, 2)))
    outcome, *others = repair_each(workspace, [oracle_pack(pair[1]), *wrong], tries=12)
    assert outcome.solved
    assert "-        total = total + 10" in outcome.patch
    assert outcome.tests == "1 test passes"
    assert [(one.solved, one.patch) for one in others] == [(False, "")] * 4
    assert max(one.tries for one in others) <= 12
    assert workspace.patch() == ""
    (alone,) = repair_each(workspace, [None], tries=40)
    assert alone.solved
    workspace.write_text("shop.py", PLAIN)
    assert workspace.run_tests().passed


def test_tests_that_are_not_pytests_are_run_as_they_are(workspace: Workspace, pair: Pair) -> None:
    check = "import shop; assert shop.price([20, 30], True) == 40"
    task = pair[0].model_copy(update={"entrypoint": ("python", "-c", check)})
    other = Workspace(task, workspace.sandbox)
    right, nothing, again = repair_each(other, [oracle_pack(pair[1]), ContextPack(), None], tries=6)
    assert right.solved
    assert not nothing.solved
    assert again.tries <= 6
    assert other.patch() == ""
    task = pair[0].model_copy(update={"entrypoint": ("no-such-python", "-m", "pytest")})
    with pytest.raises(SandboxError, match="changes cannot be tried there"):
        repair_each(Workspace(task, workspace.sandbox), [oracle_pack(pair[1])], tries=2)


def test_outcomes_are_kept_and_equal_packs_are_solved_once(tmp_path: Path, pair: Pair) -> None:
    arm = ArmConfig(name="a", policy=TracebackConfig())
    config = EvalConfig(out=str(tmp_path / "runs"), tasks=TasksConfig(source="made"), arms=(arm,), sandbox=LOCAL)
    run, (task, oracle), path = EvalRun(config, (pair,), Control()), pair, tmp_path / "runs" / "solver.jsonl"
    packs = {"a": oracle_pack(oracle), "b": oracle_pack(oracle), "c": ContextPack()}
    wanted = [Attempt(name, task, oracle, pack) for name, pack in packs.items()]
    for name, source in {"no_pack": NoPacks(), "static": StaticPacks(), "oracle_pack": OraclePacks()}.items():
        wanted += [Attempt(name, *pair, pack) for pack in source.collect(run, Hooks()).packs.values()]

    def solve() -> dict[str, Solution]:
        solver = ScriptedSolver(SolverConfig(tries=12), path, LOCAL, 0)
        return {arm: one for (arm, _, _), one in solver.solve(wanted, run, Hooks()).items()}

    found = solve()
    assert [found[arm].solved for arm in ("a", "b", "c", "oracle_pack")] == [1.0, 1.0, 0.0, 1.0]
    assert found["a"].patch == found["oracle_pack"].patch != ""
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    path.write_text("\n".join(lines) + '\n{"torn')
    assert solve() == found
    assert path.read_text().splitlines() == lines
    hidden = task.model_copy(update={"regime": "issue"})
    with pytest.raises(ConfigError, match=r"shop/0 hides its tests.* solver\.kind=policy"):
        check_part(ScriptedSolver(SolverConfig(), path, LOCAL, 0), [(hidden, oracle)])


def test_patches_are_graded_once_each(tmp_path: Path, pair: Pair) -> None:
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


class Remembering(ScriptedPolicy):
    """Keeps the last messages that it was asked with."""

    asked: Sequence[Message] = ()

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        self.asked = messages
        return self._script[0]


def play(tmp_path: Path, answer: Completion, pack: ContextPack | None, tried: bool = False) -> tuple[Trajectory, str]:
    """An episode on the shop, and what the solver was asked last."""
    task, oracle = make_task(tmp_path / "repo", 0, runner="pytest")
    solver = Remembering([answer])
    policy = OneShotPolicy(solver, view_calls(pack), confirmed_changes(pack) if tried else ())
    spec = EpisodeSpec(limit_turns(with_pack(task, pack), pack), oracle)
    found = play_one(spec, make_agent(AGENT), policy, sandbox=LOCAL)
    return found, solver.asked[-1].content


def test_two_places_are_shown_in_one_turn_and_the_solver_is_asked(tmp_path: Path) -> None:
    pack = make_pack(("shop.py", 3, 3), ("test_shop.py", 8, 9))
    fix: dict[str, JsonValue] = {"path": "shop.py", "start": 3, "end": 3, "code": "        total = total - 10"}
    answer = Completion(text="", tool_calls=(ToolCall(id="fix", name="rewrite", arguments=fix),))
    found, question = play(tmp_path, answer, pack)
    assert question.index("# shop.py:1-6") < question.index("# test_shop.py:5-9") < question.index("each part that")
    assert [len(step.tool_calls) for step in found.steps] == [2, 1]
    assert (found.stop, found.resolved) == (StopReason.STEP_LIMIT, True)
    assert "+        total = total - 10" in found.patch


def test_without_places_the_question_says_how_to_answer(tmp_path: Path) -> None:
    answer = "```python\n# shop.py:3\n        total = total - 10\n```"
    found, question = play(tmp_path, Completion(text=answer), None)
    assert "# path/to/file.py:12-14" in question
    assert found.resolved


def test_a_change_that_helped_is_shown_as_code(tmp_path: Path) -> None:
    probe = WhatIfProbe(path="shop.py", line=3, do="replace total = total - 10", effect="1 test now passes: test_total")
    helped = Finding(claim="it helps", step=0, quote="", probe=probe, check=Check(status="confirmed", telling=True))
    for number, finding in enumerate((helped, helped.model_copy(update={"check": None}))):
        pack = make_pack(("shop.py", 3, 3)).model_copy(update={"findings": (finding,)})
        _, question = play(tmp_path / str(number), Completion(text="I do not know."), pack, tried=True)
        shown = "With this code instead, 1 test now passes: test_total:\n\n```python\n" in question
        assert shown is ("        total = total - 10\n" in question) is finding.grounded


def test_the_text_of_a_pack_may_come_from_another_template(tmp_path: Path) -> None:
    task, _ = make_task(tmp_path / "repo", 0, runner="pytest")
    pack = make_pack(("shop.py", 3, 3))
    told = with_pack(task, pack, "Look at {{ pack.locations[0].path }}.").problem_statement
    assert told == f"{task.problem_statement.strip()}\n\nLook at shop.py."
    assert with_pack(task, pack, "{# nothing #}").problem_statement == task.problem_statement.strip()
    with pytest.raises(ConfigError, match="the prompt template is invalid: 'places' is undefined"):
        with_pack(task, pack, "{{ places }}")


# --- edits in an answer -------------------------------------------------------------------------------------------

CODE = """\
def price(count):
    cost = count * 3
    if count >= 10:
        cost = cost - 5
    return cost
"""
SHOP = ShownCode("shop.py", 11, tuple(CODE.splitlines()))
OTHER = ShownCode("src/other.py", 1, ("import shop", "", "NAMES = ('a', 'b')"))


def fenced(*lines: str, language: str = "python") -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def applied(edits: tuple[CodeEdit, ...], shown: ShownCode) -> list[str]:
    """The shown lines after the edits."""
    lines = list(shown.lines)
    for edit in edits:
        lines[edit.start - shown.start : edit.end - shown.start + 1] = edit.code.splitlines()
    return lines


@pytest.mark.parametrize(
    "block",
    [
        ("# shop.py:11-15", *CODE.replace(">= 10", "> 10").splitlines()),
        tuple(CODE.replace(">= 10", "> 10").splitlines()),
        ("# shop.py:1-3", "    cost = count * 3", "    if count > 10:", "        cost = cost - 5"),
        (" 12     cost = count * 3", " 13     if count > 10:"),
        ("cost = count * 3", "if count > 10:", "    cost = cost - 5"),
        ("        if count > 10:",),
        ("# ./shop.py:13", "    if count > 10:"),
    ],
)
def test_a_block_is_laid_over_the_code_that_it_is_like(block: tuple[str, ...]) -> None:
    found = read_edits(f"The bound is wrong.\n\n{fenced(*block)}\n", [SHOP, OTHER])
    assert applied(found, SHOP) == CODE.replace(">= 10", "> 10").splitlines()
    assert {edit.path for edit in found} == {"shop.py"}


def test_lines_may_be_added_or_left_out_and_a_block_counts_once() -> None:
    added = read_edits(fenced("    cost = count * 3", "    cost += 1", "    if count >= 10:"), [SHOP])
    assert applied(added, SHOP) == CODE.replace("* 3\n", "* 3\n    cost += 1\n").splitlines()
    left = read_edits(fenced("    if count >= 10:", "    return cost"), [SHOP])
    assert applied(left, SHOP) == CODE.replace("        cost = cost - 5\n", "").splitlines()
    text = fenced("# lib/a.py:7-8", "x = 1") + "\n" + fenced("# lib/a.py:20", "y = 2", language="")
    assert read_edits(text, []) == (CodeEdit("lib/a.py", 20, 20, "y = 2"), CodeEdit("lib/a.py", 7, 8, "x = 1"))
    block = fenced(*CODE.replace(">= 10", "> 10").splitlines())
    assert len(read_edits(f"{block}\n{block}", [SHOP])) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The bound is wrong.",
        fenced(),
        fenced("# shop.py:11-15"),
        fenced(*CODE.splitlines()),
        fenced("print('hello')"),
        fenced("several lines", "that match nothing"),
    ],
)
def test_what_changes_nothing_is_no_edit(text: str) -> None:
    assert read_edits(text, [SHOP]) == ()


@given(st.text(alphabet="`#\n ab:.-12py\\\"'", max_size=200))
def test_any_text_is_read(text: str) -> None:
    for edit in read_edits(text, [SHOP, OTHER]):
        assert 1 <= edit.start <= edit.end


@given(st.data())
def test_a_run_of_lines_with_one_changed_comes_back_in_its_place(data: st.DataObject) -> None:
    lines = [f"{' ' * (number % 3 * 4)}value_{number} = {number}" for number in range(12)]
    start = data.draw(st.integers(0, 9))
    end = data.draw(st.integers(start + 2, 12))
    changed = data.draw(st.integers(start, end - 1))
    after = [*lines]
    after[changed] = after[changed].replace(" = ", " = 100 + ")
    shown = ShownCode("values.py", 31, tuple(lines))
    assert applied(read_edits(fenced(*after[start:end]), [shown]), shown) == after
