"""The leak check: what a turn says and nothing before it has shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.data.filters import make_rule
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.records import (
    Completion,
    ContextPack,
    Location,
    Message,
    Observation,
    Step,
    ToolCall,
    ToolSchema,
    Trajectory,
)
from support.collect.small_trajectories import trajectory

CODE = [
    "def total(items):",
    "    rate = 40",
    "    return sum(items) - rate",
    "",
    "def half_of(price):",
    "    return price",
]
VIEW = Observation(
    tool="view",
    text="shop/cart.py 10-15 of 90 lines\n" + "\n".join(f" {number} {line}" for number, line in enumerate(CODE, 10)),
    data={"path": "shop/cart.py", "start": 10, "lines": [*CODE]},
)
OPENING = (Message(role="system", content="Debug."), Message(role="user", content="The discount of 25 is wrong."))


def play(rationale: str, tool: str = "eval", *, seen: Observation = VIEW, **arguments: Any) -> Trajectory:
    """An episode of two turns: the first is shown something, the second says and does what is given."""
    looks = ToolCall(id="c0", name=seen.tool, arguments={})
    acts = ToolCall(id="c1", name=tool, arguments=arguments)
    first, second = (Completion(text=text, tool_calls=(call,)) for text, call in (("look", looks), (rationale, acts)))
    return trajectory(
        tools=(ToolSchema(name="view", description="", parameters={}),),
        messages=(*OPENING, first.as_message(), tool_message(0, seen, looks), second.as_message()),
        steps=(
            Step(index=0, message_index=2, rationale="look", completion=first, observations=(seen,)),
            Step(index=1, message_index=4, rationale=rationale, completion=second),
        ),
    )


def found_in(episode: Trajectory) -> list[str]:
    return [f"{one.where} {one.kind} {one.text}" for one in unseen(episode)]


def said(rationale: str, tool: str = "eval", **arguments: Any) -> list[str]:
    return found_in(play(rationale, tool, **arguments))


def test_what_was_shown_may_be_said() -> None:
    text = "In shop/cart.py:12 `return sum(items) - rate` takes 40, though 25 is wanted; half_of(price) is fine."
    report = {
        "locations": [{"path": "shop/cart.py", "start": 11, "end": 12, "symbol": "total", "why": text}],
        "findings": [{"fact": 1, "claim": "rate is 40"}],
        "hypothesis": text,
    }
    assert said(text, "report", **report) == []
    assert said("Then I run it.", "pdb", command="b shop/cart.py:12\nc\np rate") == []
    assert said("I change it.", "rewrite", path="shop/cart.py", start=11, end=11, code="    rate = 25\n") == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The cause is shop/cart.py:77.", "place shop/cart.py:77"),
        ("I look at shop/stock.py now.", "place shop/stock.py"),
        ("So is_member is wrong.", "name is_member"),
        ("So rebate(x) is wrong.", "name rebate"),
        ("It must be 37.", "number 37"),
        ("It prints 'no such thing'.", "string no such thing"),
        ("It prints \u201cno such thing\u201d.", "string no such thing"),
        ("It waits 77ms.", "number 77"),
        ("So HTTPBasket is wrong.", "name HTTPBasket"),
        ("Look at core.c for it.", "place core.c"),
        ("So _rebate is wrong.", "name _rebate"),
        ("So Basket.rebate is wrong.", "name Basket.rebate"),
        ("So _shop_cart.rebate is wrong.", "name _shop_cart.rebate"),
        ("So t.rebate is wrong.", "name t.rebate"),
    ],
)
def test_what_nothing_has_shown_is_listed(text: str, found: str) -> None:
    assert f"rationale {found}" in said(text)
    assert f"report {found}" in said("x", "report", hypothesis=text)
    assert make_rule("unseen").keeps(play(text)) is False


@pytest.mark.parametrize("text", ["UNCOUNTABLES is wrong.", "So rebate is wrong.", "I think of Basket."])
def test_names_that_are_plain_words(text: str) -> None:
    later = Observation(tool="view", text="class Basket:\n    def rebate(self):\n        return UNCOUNTABLES")
    episode = play(text)
    last = episode.steps[-1].model_copy(update={"observations": (later,)})
    assert [one.kind for one in unseen(episode.model_copy(update={"steps": (episode.steps[0], last)}))] == ["name"]
    assert said(text, seen=later) == []


@pytest.mark.parametrize(
    "text",
    [
        "It must NOT happen, NEVER.",
        "The discount again.",
        "DISCOUNT again.",
        "It is _not_ os.path, e.g. it",
        "a plain sentence without any name",
        # What stands between two quotations is none.
        "`o` is wrong: with `x` it passes.",
        "'(' is to blame; '(' again.",
    ],
)
def test_plain_words_may_be_said(text: str) -> None:
    assert said(text) == []


def test_shown_code_may_look_like_a_place() -> None:
    view = Observation(tool="view", text="10 return f'{self.hour:02d}'", data={})
    found = said("The line `return f'{self.hour:02d}'` is wrong, not `{self.minute:02d}`.", seen=view)
    assert found == ["rationale place self.minute:02", "rationale string { d}"]


PLACE_50 = {"path": "shop/cart.py", "start": 50, "end": 50}


@pytest.mark.parametrize(
    ("text", "tool", "arguments", "found"),
    [
        ("I stop there.", "pdb", {"command": "b shop/cart.py:50\nc"}, []),
        ("I stop there.", "pdb", {"command": "b shop/cart.py:70"}, ["call place shop/cart.py:70"]),
        ("It begins at shop/cart.py:40 and ends at shop/cart.py:60.", "eval", {}, []),
        ("The cause is shop/cart.py:50.", "eval", {}, ["rationale place shop/cart.py:50"]),
        ("I change it.", "rewrite", {**PLACE_50, "code": "    pass\n"}, ["call place shop/cart.py:50"]),
        ("x", "report", {"locations": [PLACE_50]}, ["report place shop/cart.py:50"]),
    ],
)
def test_lines_of_a_function_that_was_only_named_may_be_visited_but_not_claimed(
    text: str, tool: str, arguments: dict[str, Any], found: list[str]
) -> None:
    named: Any = {"path": "shop/cart.py", "function": "half_of", "start": 40, "end": 60, "score": 1.0, "distance": 0}
    listed = Observation(tool="suspects", text="40-60 shop/cart.py half_of", data={"suspects": [named], "shown": 1})
    assert said(text, tool, seen=listed, **arguments) == found


def test_a_turn_is_checked_as_a_step_and_as_a_message() -> None:
    episode = play("It is half_of.")
    leak = episode.messages[-1].model_copy(update={"content": "It is is_member."})
    call = ToolCall(id="c1", name="view", arguments={"path": "shop/stock.py"})
    thought = episode.messages[-1].model_copy(update={"reasoning": "Perhaps is_member?"})
    for message, found in (
        (leak, "rationale name is_member"),
        (episode.messages[-1].model_copy(update={"tool_calls": (call,)}), "call place shop/stock.py"),
        (thought, "rationale name is_member"),
    ):
        other = episode.model_copy(update={"messages": (*episode.messages[:-1], message)})
        assert found_in(other) == [found]
        assert make_rule("unseen").keeps(other) is False


AT_80 = ["call place shop/cart.py:80"]
CART_80: dict[str, Any] = {"path": "shop/cart.py", "start": 80, "end": 85}


@pytest.mark.parametrize(
    ("tool", "arguments", "found"),
    [
        ("view", {"path": "shop/stock.py"}, ["call place shop/stock.py"]),
        ("pdb", {"command": "b shop/cart.py:80\nc"}, AT_80),
        ("whatif", {"variants": [{"path": "shop/cart.py", "line": 80, "do": "skip"}]}, AT_80),
        ("rewrite", {**CART_80, "code": ""}, AT_80),
        ("probe", {"probes": [{"path": "shop/cart.py", "line": 80, "expression": "rate"}]}, AT_80),
        ("trace", {"function": "shop/cart.py:80"}, AT_80),
        ("trace", {"function": "compute_vat"}, ["call place compute_vat"]),
        ("trace", {"function": "half_of"}, []),
        ("pdb", {"command": "b Cart.secret\nc"}, ["call place Cart.secret"]),
        ("pdb", {"command": "b half_of, price > 25\nc\np price"}, []),
        (
            "report",
            {"locations": [{**CART_80, "symbol": "Cart.secret"}]},
            ["report place shop/cart.py:80", "report name Cart.secret"],
        ),
        ("report", {"locations": [{**CART_80, "start": 10}]}, ["report place shop/cart.py:10"]),
        ("report", {"locations": [{"path": "shop/stock.py"}]}, ["report place shop/stock.py"]),
        ("report", {"locations": json.dumps([{**CART_80, "start": "80"}])}, ["report place shop/cart.py:80"]),
    ],
)
def test_places_of_calls_and_reports(tool: str, arguments: dict[str, Any], found: list[str]) -> None:
    assert said("", tool, **arguments) == found


def test_the_stored_report_and_what_is_said_at_the_end_are_checked() -> None:
    episode = play("look")
    pack = ContextPack(locations=(Location(path="shop/cart.py", start=80, end=80),), hypothesis="is_member is wrong")
    stored = found_in(episode.model_copy(update={"context_pack": pack}))
    assert stored == ["report place shop/cart.py:80", "report name is_member"]
    more = (*episode.messages, Message(role="assistant", content="It is is_member."))
    assert found_in(episode.model_copy(update={"messages": more})) == ["rationale name is_member"]


def test_new_code_is_marked_and_the_rule_lets_it_pass() -> None:
    edit: dict[str, Any] = {"path": "shop/cart.py", "start": 11, "end": 11, "code": "    rate = limit('gold', 33)\n"}
    assert said("I mend it.", "rewrite", **edit) == ["edit string gold", "edit name limit", "edit number 33"]
    assert make_rule("unseen").keeps(play("I mend it.", "rewrite", **edit)) is True
    assert make_rule("unseen=all").keeps(play("I mend it.", "rewrite", **edit)) is False


def test_what_the_agent_has_said_itself_is_no_source() -> None:
    episode = play("It is is_member.")
    again = Completion(text="is_member again")
    step = Step(index=2, message_index=5, rationale="is_member again", completion=again)
    more = {"messages": (*episode.messages, again.as_message()), "steps": (*episode.steps, step)}
    found = unseen(episode.model_copy(update=more))
    assert [(one.step, one.text) for one in found] == [(1, "is_member"), (2, "is_member")]


@pytest.mark.parametrize("piece", ["x", "a.", "a/", "' ", "a_", "a.b", "1.", "a.py", "f("])
def test_long_texts_are_checked_in_time_in_proportion(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    assert len(unseen(play(text, "rewrite", path="shop.py", code=text, start=1))) < 1000


def test_a_long_edit_hides_nothing_of_a_call_after_it() -> None:
    new = "\n".join(f"name_{number} = {number}" for number in range(1000, 2000))
    episode = play("x", "rewrite", path="shop.py", code=new, start=1)
    (edit,) = episode.steps[-1].tool_calls
    report = ToolCall(id="c9", name="report", arguments={"hypothesis": "compute_vat is wrong"})
    turn = episode.steps[-1].completion.model_copy(update={"tool_calls": (edit, report)})
    step = episode.steps[-1].model_copy(update={"completion": turn})
    found = found_in(episode.model_copy(update={"steps": (*episode.steps[:-1], step)}))
    assert "report name compute_vat" in found


@given(st.text(), st.text())
def test_any_text_is_checked_without_an_error(text: str, other: str) -> None:
    unseen(play(text, "report", locations=[{"path": other, "start": 3}], hypothesis=other, findings=other))
    unseen(play(text, "rewrite", path=other, code=text, start=1))
    unseen(play(text, "pdb", command=other))
