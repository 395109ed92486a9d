"""Context packs: what an episode has shown about a failure, with where it was shown."""

from __future__ import annotations

from typing import Any

import pytest

from gumshoe.collect.episode.tool_output import ToolOutput, failures, outputs_of_steps, tool_message, tool_outputs
from gumshoe.collect.packs import build_pack, pack_arguments
from gumshoe.records import Completion, Location, Message, Observation, Step, ToolCall, Trajectory
from gumshoe.tools.code.functions import Region, region_of
from gumshoe.tools.evidence.facts import FactReader, numbered_text, without_numbers
from support.collect.small_trajectories import trajectory

SOURCE = '''\
LIMIT = 3


class Cart:
    """A cart."""

    def total(self, items):
        result = sum(
            items,
        )

        return result - 1

    size = 4


async def load(
    name,
):
    return name
'''
LINES = dict(enumerate(SOURCE.splitlines(), start=1))


def output(step: int, tool: str, text: str = "", **data: Any) -> ToolOutput:
    """An answer, with its facts numbered from 1."""
    observation = Observation(tool=tool, text=text, data=data)
    return ToolOutput(step, observation, numbered_text(observation, FactReader().read(step, observation))[1])


VIEW = output(1, "view", path="shop/cart.py", start=1, lines=list(LINES.values()))
EVAL = output(
    0,
    "eval",
    "1 failed, 2 passed\nFAILED tests/test_cart.py::test_total[a b]\n  def it():\n  AssertionError: assert 2 == 3\n"
    "  tests/test_cart.py:4 in test_total: assert total == 3",
    passed=False,
    outcomes=[
        {"id": "tests/test_cart.py::test_it", "outcome": "passed", "message": ""},
        {
            "id": "tests/test_cart.py::test_total[a b]",
            "outcome": "failed",
            "message": "def it():\nAssertionError: assert 2 == 3",
            "frames": [
                {"path": "tests/test_cart.py", "line": 4, "function": "test_total", "code": "assert total == 3"}
            ],
        },
    ],
)
STOP = output(
    2,
    "pdb",
    "breakpoint 1 at shop/cart.py:12\n> shop/cart.py:12 in total (breakpoint 1)\n->12         return result - 1\n"
    "self = <Cart>\nitems = [1, 2]\nresult = 3",
    results=[
        {"command": "c", "stop": {"reason": "breakpoint", "path": "shop/cart.py", "line": 12, "function": "total"}},
        {"command": "locals", "values": [["self", "<Cart>"], ["items", "[1, 2]"], ["result", "3"]]},
    ],
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (1, Region(1, 20, None)),
        (4, Region(4, 14, "Cart")),
        *((line, Region(7, 12, "Cart.total")) for line in (7, 9, 11, 12)),
        (14, Region(4, 14, "Cart")),
        *((line, Region(17, 20, "load")) for line in (17, 20)),
    ],
)
def test_the_region_is_the_innermost_function_or_class(line: int, expected: Region) -> None:
    assert region_of(LINES, line) == expected


def test_a_pack_holds_what_was_seen_and_cites_it() -> None:
    pack = build_pack([EVAL, VIEW, STOP], {"shop/cart.py": {12}}, "off by one")
    assert pack is not None
    assert pack.locations == (Location(path="shop/cart.py", start=10, end=12, symbol="Cart.total"),)
    assert [(finding.step, finding.quote) for finding in pack.findings] == [
        (0, "AssertionError: assert 2 == 3"),
        (2, "result = 3"),
    ]
    assert pack_arguments(pack, [EVAL, VIEW, STOP])["findings"] == [
        {"fact": 1, "claim": "test_total[a b] fails"},
        {"fact": 4, "claim": "value of result there"},
    ]

    # What nobody has seen is in no pack.
    assert build_pack([EVAL, STOP], {"shop/cart.py": {12}}, "x") is None
    assert build_pack([EVAL, VIEW], {"shop/other.py": {12}}, "x") is None
    assert build_pack([EVAL, VIEW], {"shop/cart.py": {99}}, "x") is None


def test_tool_messages_carry_their_observations_until_they_are_stored() -> None:
    call = ToolCall(id="c", name="eval")
    turn = Completion(text="look", tool_calls=(call,))
    answer = tool_message(0, EVAL.observation, call, FactReader().read(0, EVAL.observation))
    messages = [Message(role="user", content="[step 1] no"), turn.as_message(), answer]
    assert without_numbers(answer.content) == f"[step 0] {EVAL.text}"
    assert tool_outputs(messages) == [EVAL]
    step = Step(index=0, message_index=1, completion=turn, observations=(EVAL.observation,))
    stored = trajectory(messages=messages, steps=(step,))
    assert tool_outputs(stored.messages) == []
    assert outputs_of_steps(stored.steps) == [EVAL]
    assert Trajectory.model_validate_json(stored.model_dump_json()) == stored


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("06 >>> half(4)\nExpected:\n    2\nGot:\n    1.0\n/w/shop.py:6: DocTestFailure", "Expected: 2 Got: 1.0"),
        ("06 >>> half(4)\nExpected nothing\nGot:\n    1\n/w/shop.py:6: DocTestFailure", "Expected nothing Got: 1"),
        ("Expected:\n    ValueError\nGot nothing\n/w/shop.py:6: DocTestFailure", "Expected: ValueError Got nothing"),
        ("    1\n    2\nGot:\n    3\n/w/shop.py:6: DocTestFailure", "Got: 3"),
        ("    1\n    2\n/w/shop.py:6: DocTestFailure", "/w/shop.py:6: DocTestFailure"),
        ("first\nValueError: Expected: more", "ValueError: Expected: more"),
        ("first\nsecond", "first"),
        ("", ""),
    ],
)
def test_a_failure_is_told_by_its_telling_line(message: str, said: str) -> None:
    outcomes = [{"id": "shop.py::shop.half", "outcome": "failed", "message": message}]
    (failed,) = failures([output(0, "eval", outcomes=outcomes)])
    assert failed.message == said


def test_a_program_without_tests_fails_with_its_last_words() -> None:
    (failure,) = failures([output(3, "eval", passed=False, outcomes=[], output="Traceback\n  File x\nValueError: no")])
    assert failure.message == "ValueError: no"
    assert failures([output(3, "eval", passed=True, outcomes=[], output="fine")]) == []
