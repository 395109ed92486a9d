"""The conversation: decision lines, and the forms in which servers want it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.episode.conversation import (
    ParsedDecision,
    as_text_chat,
    describe_turn,
    format_decision,
    parse_decision,
)
from gumshoe.collect.policies.strategy import Turn
from gumshoe.records import Decision, Message, ToolCall, ToolSchema


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[seek 0.8] I look.", ParsedDecision(Decision.SEEK, 0.8, "I look.")),
        ("  [edit] now\nmore", ParsedDecision(Decision.EDIT, None, "now\nmore")),
        ("[verify 1] x", ParsedDecision(Decision.VERIFY, 1.0, "x")),
        ("[report .5]", ParsedDecision(Decision.REPORT, 0.5, None)),
        ("[submit 1.0] done", ParsedDecision(Decision.SUBMIT, 1.0, "done")),
        ("[seek 7] x", ParsedDecision(None, None, "[seek 7] x")),
        ("[think 0.5] x", ParsedDecision(None, None, "[think 0.5] x")),
        ("I look. [seek 0.5]", ParsedDecision(None, None, "I look. [seek 0.5]")),
        ("", ParsedDecision()),
    ],
)
def test_reads_what_is_stated_and_invents_nothing(text: str, expected: ParsedDecision) -> None:
    assert parse_decision(text) == expected


@given(st.sampled_from(Decision), st.none() | st.integers(0, 10), st.text(min_size=1))
def test_reads_back_what_it_writes(decision: Decision, tenths: int | None, rationale: str) -> None:
    confidence = None if tenths is None else tenths / 10
    read = parse_decision(format_decision(decision, confidence, rationale))
    assert (read.decision, read.confidence, read.rationale) == (decision, confidence, rationale.strip() or None)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("eval", {}, "eval"),
        ("pdb", {"command": "b shop.py:3\nc\nlocals"}, "pdb b shop.py:3"),
        ("view", {"path": "shop.py", "start": 3, "end": 9}, "view shop.py:3"),
        ("whatif", {"variants": [{"path": "a.py", "line": 2, "do": "skip"}] * 3}, "whatif a.py:2 and 2 more"),
        ("report", {"locations": [{"path": "a.py", "start": 2, "end": 2}], "hypothesis": "x"}, "report a.py:2"),
        ("grep", {"pattern": "\x1b[2J" + "y" * 99}, "grep ?[2J" + "y" * 55 + "…"),
    ],
)
def test_a_turn_in_a_few_words(tool: str, arguments: dict[str, Any], expected: str) -> None:
    turn = Turn(Decision.SEEK, 0.6, "I look.", tool, arguments).as_completion(0)
    assert describe_turn(turn) == f"{expected}, confidence 0.6"


def test_text_chat_has_the_layout_of_hermes_templates() -> None:
    tool = ToolSchema(name="eval", description="Run.", parameters={"type": "object"})
    call = ToolCall(id="1", name="eval")
    chat = as_text_chat(
        [
            Message(role="system", content="S"),
            Message(role="user", content="U"),
            Message(role="assistant", content="[seek] x", tool_calls=(call, call)),
            Message(role="tool", content="one", tool_call_id="1", name="eval"),
            Message(role="tool", content="two", tool_call_id="1", name="eval"),
        ],
        [tool],
    )
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "user"]
    assert chat[0]["content"].startswith("S\n\n# Tools")
    assert json.dumps(tool.as_openai()) in chat[0]["content"]
    assert chat[2]["content"].count("<tool_call>") == 2
    assert chat[3]["content"] == "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>"
