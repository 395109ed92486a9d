"""The solver that answers once, and the edits in its answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.packs import with_pack
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.errors import ConfigError
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
from gumshoe.records import Check, Completion, Finding, Message, StopReason, ToolCall, ToolSchema, WhatIfProbe
from support.eval.made import make_pack
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import make_task


class Remembering(ScriptedPolicy):
    """Keeps the last messages that it was asked with."""

    asked: Sequence[Message] = ()

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        self.asked = messages
        return self._script[0]


def test_two_places_are_shown_in_one_turn_and_the_solver_is_asked(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 0, runner="pytest")
    pack = make_pack(("shop.py", 3, 3), ("test_shop.py", 8, 9))
    shown = view_calls(pack)
    assert len(shown) == 2
    fix: dict[str, JsonValue] = {"path": "shop.py", "start": 3, "end": 3, "code": "        total = total - 10"}
    answer = Completion(text="", tool_calls=(ToolCall(id="fix", name="rewrite", arguments=fix),))
    solver = Remembering([answer])
    task = limit_turns(with_pack(task, pack), pack)
    policy = OneShotPolicy(solver, shown)
    spec = EpisodeSpec(task, oracle)
    found = play_one(spec, make_agent(AGENT), policy, sandbox=LOCAL)
    question = solver.asked[-1].content
    assert question.index("# shop.py:1-6") < question.index("# test_shop.py:5-9") < question.index("each part that")
    assert [len(step.tool_calls) for step in found.steps] == [2, 1]
    assert (found.stop, found.resolved) == (StopReason.STEP_LIMIT, True)
    assert "+        total = total - 10" in found.patch


def test_the_text_of_a_pack_may_come_from_another_template(tmp_path: Path) -> None:
    task, _ = make_task(tmp_path / "repo", 0, runner="pytest")
    pack = make_pack(("shop.py", 3, 3))
    told = with_pack(task, pack, "Look at {{ pack.locations[0].path }}.").problem_statement
    assert told == f"{task.problem_statement.strip()}\n\nLook at shop.py."
    assert with_pack(task, pack, "{# nothing #}").problem_statement == task.problem_statement.strip()
    with pytest.raises(ConfigError, match="the prompt template is invalid: 'places' is undefined"):
        with_pack(task, pack, "{{ places }}")


def test_without_places_the_question_says_how_to_answer(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 0, runner="pytest")
    answer = "```python\n# shop.py:3\n        total = total - 10\n```"
    solver = Remembering([Completion(text=answer)])
    spec = EpisodeSpec(limit_turns(task, None), oracle)
    found = play_one(spec, make_agent(AGENT), OneShotPolicy(solver, ()), sandbox=LOCAL)
    assert "# path/to/file.py:12-14" in solver.asked[-1].content
    assert found.resolved


def test_a_change_that_helped_is_shown_as_code(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 0, runner="pytest")
    probe = WhatIfProbe(path="shop.py", line=3, do="replace total = total - 10", effect="1 test now passes: test_total")
    helped = Finding(claim="it helps", step=0, quote="", probe=probe, check=Check(status="confirmed", telling=True))
    not_run = helped.model_copy(update={"check": None})
    for finding in (helped, not_run):
        pack = make_pack(("shop.py", 3, 3)).model_copy(update={"findings": (finding,)})
        solver = Remembering([Completion(text="I do not know.")])
        spec = EpisodeSpec(limit_turns(with_pack(task, pack), pack), oracle)
        play_one(
            spec, make_agent(AGENT), OneShotPolicy(solver, view_calls(pack), confirmed_changes(pack)), sandbox=LOCAL
        )
        question = solver.asked[-1].content
        assert ("With this code instead, 1 test now passes: test_total:\n\n```python\n" in question) is finding.grounded
        assert ("        total = total - 10\n" in question) is finding.grounded


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
    ids=["whole", "without a place", "wrong numbers", "copied numbers", "dedented", "one line", "one line, placed"],
)
def test_a_block_is_laid_over_the_code_that_it_is_like(block: tuple[str, ...]) -> None:
    found = read_edits(f"The bound is wrong.\n\n{fenced(*block)}\n", [SHOP, OTHER])
    assert applied(found, SHOP) == CODE.replace(">= 10", "> 10").splitlines()
    assert {edit.path for edit in found} == {"shop.py"}


def test_a_line_may_be_added_and_one_left_out() -> None:
    added = read_edits(fenced("    cost = count * 3", "    cost += 1", "    if count >= 10:"), [SHOP])
    assert applied(added, SHOP) == CODE.replace("* 3\n", "* 3\n    cost += 1\n").splitlines()
    left = read_edits(fenced("    if count >= 10:", "    return cost"), [SHOP])
    assert applied(left, SHOP) == CODE.replace("        cost = cost - 5\n", "").splitlines()


def test_places_nobody_was_shown_are_taken_as_they_are_said() -> None:
    text = fenced("# lib/a.py:7-8", "x = 1") + "\n" + fenced("# lib/a.py:20", "y = 2", language="")
    assert read_edits(text, []) == (CodeEdit("lib/a.py", 20, 20, "y = 2"), CodeEdit("lib/a.py", 7, 8, "x = 1"))


@pytest.mark.parametrize(
    "text",
    [
        "The bound is wrong.",
        fenced(),
        fenced("# shop.py:11-15"),
        fenced(*CODE.splitlines()),
        fenced("print('hello')"),
        fenced("first", "second"),
    ],
    ids=["no block", "empty", "only a place", "unchanged", "nothing like it", "several lines that match nothing"],
)
def test_what_changes_nothing_is_no_edit(text: str) -> None:
    assert read_edits(text, [SHOP]) == ()


def test_blocks_that_overlap_count_once() -> None:
    block = fenced(*CODE.replace(">= 10", "> 10").splitlines())
    assert len(read_edits(f"{block}\n{block}", [SHOP])) == 1


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
