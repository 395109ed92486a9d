import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.records import ToolCall
from gumshoe.tools.text import clean
from gumshoe.tools.text_calls import parse_native, render_text_calls, split_text_calls

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=1), st.dictionaries(st.text(), VALUES, max_size=4))
def test_native_arguments_come_back_as_they_were(name: str, arguments: dict[str, Any]) -> None:
    call = parse_native("c", name, json.dumps(arguments))
    assert (call.name, call.arguments, call.parse_error) == (name, arguments, None)
    assert ToolCall.model_validate_json(call.model_dump_json()) == call


@given(st.lists(st.tuples(st.text(), st.dictionaries(st.text(), VALUES, max_size=3)), min_size=1, max_size=3))
def test_text_calls_come_back_as_they_were(given_calls: list[tuple[str, dict[str, Any]]]) -> None:
    calls = tuple(ToolCall(id=f"p-{n}", name=name, arguments=args) for n, (name, args) in enumerate(given_calls))
    if any("tool_call>" in call.model_dump_json() for call in calls):
        return
    assert split_text_calls(f"[seek] why\n{render_text_calls(calls)}", prefix="p") == ("[seek] why", calls)


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    for wrapped in (text, f"<tool_call>{text}", f"a<tool_call>{text}</tool_call><tool_call>"):
        content, calls = split_text_calls(wrapped, prefix="p")
        for call in calls:
            assert call.parse_error is None or call.arguments == {}
        json.dumps(content)
    parse_native("c", "x", text).model_dump_json()


@pytest.mark.parametrize("arguments", ["", None, "null", "  ", {}])
def test_no_arguments_are_no_arguments(arguments: Any) -> None:
    assert parse_native("c", "eval", arguments) == ToolCall(id="c", name="eval")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ('{"path": ', "not valid JSON"),
        ("[1]", "not a list"),
        ('"x"', "not a text"),
        ("3", "not a number"),
        ("true", "not a boolean"),
        ('{"x": NaN}', "NaN is not JSON"),
        ('{"x": 1e999}', "too large"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_unreadable_arguments_say_why_and_are_kept(arguments: str, why: str) -> None:
    call = parse_native("c", "view", arguments)
    assert call.name == "view"
    assert call.arguments == {}
    assert call.parse_error is not None
    assert why in call.parse_error
    assert call.raw == arguments


def test_a_lone_surrogate_can_be_stored() -> None:
    call = parse_native("c", "view", '{"path": "a\\ud800b", "ok": "\\ud83d\\ude00"}')
    assert call.arguments == {"path": clean("a\ud800b"), "ok": "\U0001f600"}
    call.model_dump_json()


@pytest.mark.parametrize(
    ("block", "name", "why"),
    [
        ('{"name": "view", "arguments": {"path": "a', "view", "not valid JSON"),
        ("view(path)", "", "not valid JSON"),
        ("[]", "", "must be an object"),
        ('{"tool": "view"}', "", "must be an object"),
        ('{"name": "view", "arguments": [1]}', "view", "not a list"),
    ],
)
def test_unreadable_blocks_say_why(block: str, name: str, why: str) -> None:
    content, (call,) = split_text_calls(f"why <tool_call>{block}", prefix="t")
    assert content == "why"
    assert (call.id, call.name) == ("t-0", name)
    assert call.parse_error is not None
    assert why in call.parse_error
