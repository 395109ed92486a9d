"""Calls in the text of an answer: written, read, repaired, or refused with the reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.records import ToolCall
from gumshoe.text import clean
from gumshoe.tools.calls.parsing import bare_name, parse_native, render_text_calls, split_text_calls

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


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        *((nothing, {}) for nothing in ("", None, "null", "  ", {})),
        ('{"path": "a\\ud800b", "ok": "\\ud83d\\ude00"}', {"path": clean("a\ud800b"), "ok": "\U0001f600"}),
        (json.dumps(json.dumps({"path": "a.py"})), {"path": "a.py"}),
    ],
    ids=["empty", "None", "null", "spaces", "object", "lone surrogate", "encoded twice"],
)
def test_native_arguments(written: Any, arguments: dict[str, Any]) -> None:
    call = parse_native("c", "eval", written)
    assert call == ToolCall(id="c", name="eval", arguments=arguments)
    call.model_dump_json()


@pytest.mark.parametrize("levels", [1, 64, 65, 255, 10_000])
def test_arguments_that_a_trajectory_cannot_hold_are_refused(levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    call = parse_native("c", "view", value)
    assert (call.parse_error is not None) == (levels > 64)
    call.model_dump_json()


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
        ("[" * 100_000, "nested in more than 64 levels"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested in more than 64 levels"),
        ('{"quote": "assert "foo = 1"}', 'after \'{"quote": "assert "\''),
        ('{"quote": "assert "foo = 1"}', r"write \" for a quotation mark"),
    ],
)
def test_unreadable_arguments_say_why_and_are_kept(arguments: str, why: str) -> None:
    call = parse_native("c", "view", arguments)
    assert (call.name, call.arguments, call.raw) == ("view", {}, arguments)
    assert why in (call.parse_error or "")


@pytest.mark.parametrize(
    ("block", "arguments"),
    [
        ('{"name": "view", "arguments": {"path": "a.py"}', {"path": "a.py"}),
        ('{"name": "view", "arguments": {"found": [{"at": 1}, {"at": 2}}}', {"found": [{"at": 1}, {"at": 2}]}),
        ('{"name": "view", "arguments": {"path": "it is "foo" here"}}', {"path": 'it is "foo" here'}),
        ('{"name": "view", "arguments": {"path": "a\\\'b"}}', {"path": "a'b"}),
    ],
    ids=["bracket", "list", "quotation marks", "escape"],
)
def test_json_with_small_mistakes_is_repaired_where_the_call_is_whole(block: str, arguments: dict[str, Any]) -> None:
    _, (call,) = split_text_calls(f"<tool_call>\n{block}\n</tool_call>", prefix="c")
    assert (call.name, call.arguments, call.parse_error) == ("view", arguments, None)
    _, (call,) = split_text_calls(f"<tool_call>\n{block}", prefix="c")
    assert call.parse_error is not None, "it may have been cut"


@pytest.mark.parametrize(
    ("block", "name", "why"),
    [
        ('{"name": "view"', "view", "not valid JSON"),
        ("view(path)", "", "not valid JSON"),
        ("{", "", "not valid JSON"),
        ('["view", {"path": "a"', "", "not valid JSON"),
        ('{"name": view} {', "", "not valid JSON"),
        ("[]", "", "must be an object"),
        ('{"tool": "view"}', "", "must be an object"),
        ('{"name": "view", "arguments": [1]}', "view", "not a list"),
    ],
)
@pytest.mark.parametrize("end", ["", "</tool_call>"])
def test_unreadable_blocks_are_not_repaired_and_say_why(block: str, name: str, why: str, end: str) -> None:
    content, (call,) = split_text_calls(f"why <tool_call>{block}{end}", prefix="t")
    assert (content, call.id, call.name) == ("why", "t-0", name)
    assert why in (call.parse_error or "")


OFFERED = {"view", "eval"}
PROSE = st.text(st.characters(exclude_characters="{`", exclude_categories=["Cs"])).filter(
    lambda it: "tool_call>" not in it
)
ARGUMENTS = st.dictionaries(st.text(), VALUES, max_size=3)
WRAPPERS = st.sampled_from(["{}", "```json\n{}\n```", "```\n{}\n```", "```JSON\n\n{}\n````", "```json\n{}", "  {}  "])


def bare(name: Any, arguments: Any, indent: int | None = None) -> str:
    return json.dumps({"name": name, "arguments": arguments}, indent=indent)


@given(
    PROSE.map(lambda it: f"{it}."),
    PROSE.map(lambda it: f"A{it}"),
    st.sampled_from(sorted(OFFERED)),
    ARGUMENTS,
    st.sampled_from([None, 2]),
    WRAPPERS,
)
def test_one_bare_call_of_an_offered_tool_is_a_call(
    before: str, after: str, name: str, arguments: dict[str, Any], indent: int | None, wrapper: str
) -> None:
    written = wrapper.replace("{}", bare(name, arguments, indent))
    if "tool_call>" in written:
        return
    after = "" if wrapper == "```json\n{}" else f"\n{after}"
    content, calls = split_text_calls(f"{before}\n{written}{after}", prefix="p", offered=OFFERED)
    assert calls == (ToolCall(id="p-0", name=name, arguments=arguments),)
    assert "arguments" not in content.replace(before, "").replace(after.strip(), "")


@given(PROSE, VALUES | st.fixed_dictionaries({"name": VALUES | st.just("view"), "arguments": VALUES}), WRAPPERS)
def test_other_json_is_no_call(before: str, value: Any, wrapper: str) -> None:
    text = f"{before}\n{wrapper.replace('{}', json.dumps(value))}"
    is_call = isinstance(value, dict) and value.keys() == {"name", "arguments"} and value["name"] in ("view", "eval")
    if "tool_call>" in text or (is_call and isinstance(value["arguments"], dict)):
        return
    assert split_text_calls(text, prefix="p", offered=OFFERED) == (text, ())


@given(PROSE.filter(lambda it: it.strip() != ""), ARGUMENTS, st.booleans())
def test_a_call_inside_a_line_of_prose_is_no_call(words: str, arguments: dict[str, Any], first: bool) -> None:
    line = "".join(words.splitlines()).strip() or "say"
    call = bare("view", arguments)
    text = f"{line} {call}" if first else f"{call} {line}"
    if "tool_call>" not in text:
        assert split_text_calls(text, prefix="p", offered=OFFERED) == (text, ())


@pytest.mark.parametrize(
    "text",
    [
        "```python\n{call}\n```",
        "```jsonl\n{call}\n{call}\n```",
        "{call}\n{call}",
        "```json\n{call}\n```\nor\n{call}",
        '```json\n{call}\n```\nwith a file of\n```json\n{"version": 1}\n```',
        "```json\n# how to call it\n{call}\n```",
        "    {call}",
        "> {call}",
        "- {call}",
        "call = {call}",
        "```{call}```",
        "[\n{call}\n,]",
        "print(\n{call}\n)",
        "tools = [\n{call}\n]",
        'x = {"a": NaN, "b":\n{call}\n}',
        '{"calls":\n{call}\n}',
        '{"name": "view", "arguments": {}, "version": 2}',
        '{"name": "view", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "view", "arguments": {"path": "a',
        '{"name": "view", "arguments": {"x": NaN}}',
        '{"name": "view", "arguments": ' + '{"arguments":' * 20_000,
        '{"name": "rm", "arguments": {}}',
        '{"name": 3, "arguments": {}}',
        '{"name": "view", "arguments": "all"}',
    ],
)
def test_what_only_shows_a_call_is_none(text: str) -> None:
    text = text.replace("{call}", bare("view", {"path": "a.py"}))
    assert split_text_calls(text, prefix="p", offered=OFFERED) == (text, ())


def test_no_bare_call_is_read_beside_tags_or_without_offered_tools() -> None:
    written = bare("view", {"path": "a.py"})
    assert split_text_calls(written, prefix="p") == (written, ())
    tagged = f"{written}\n<tool_call>{bare('eval', {})}</tool_call>"
    assert split_text_calls(tagged, prefix="p", offered=OFFERED) == (written, (ToolCall(id="p-0", name="eval"),))


def test_code_beside_a_bare_call_stays_text() -> None:
    code = '```python\nempty = {}\n{"name": "view", "arguments": {}}\n```'
    text = f"{code}\nNow:\n{bare('eval', {'x': 1}, 2)}\nThat shows it."
    call = ToolCall(id="p-0", name="eval", arguments={"x": 1})
    assert split_text_calls(text, prefix="p", offered=OFFERED) == (f"{code}\nNow:\nThat shows it.", (call,))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('```json\n{"name": "shop.py", "arguments": {"start": 1}}\n```', "shop.py"),
        ('I look.\n{"name": "look", "arguments": {}}', "look"),
        ("I look.", None),
        ("", None),
    ],
)
def test_the_name_in_an_object_that_looks_like_a_call(text: str, name: str | None) -> None:
    assert bare_name(text) == name
    assert split_text_calls(text, prefix="c", offered={"view"}) == (text, ())


TAGGED = "<function=view>\n<parameter=path>\ncart.py\n</parameter>\n<parameter=start>3</parameter>\n</function>"


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{TAGGED}\n</tool_call>",
        TAGGED,
        '{"name": "view", "parameters": {"path": "cart.py", "start": "3"}}',
        '<|python_tag|>{"name": "view", "parameters": {"path": "cart.py", "start": "3"}}',
    ],
    ids=["Qwen3-Coder", "SWE-smith", "Llama", "Llama with its tag"],
)
def test_calls_as_other_models_write_them(text: str) -> None:
    said, (call,) = split_text_calls(f"Look.\n\n{text}\n", prefix="c", offered=("view",))
    assert (said, call.name, call.arguments) == ("Look.", "view", {"path": "cart.py", "start": "3"})


@pytest.mark.parametrize(
    ("value", "closing"),
    [("echo '</function>' > a", "</parameter>\n"), ("echo '<function=x>'", "</parameter>\n"), ("x\n</param", "")],
)
def test_a_value_may_hold_tags_and_the_last_one_may_be_left_open(value: str, closing: str) -> None:
    text = f"<tool_call>\n<function=bash>\n<parameter=command>\n{value}\n{closing}</function>\n</tool_call>"
    _, (call,) = split_text_calls(text, prefix="c", offered=("bash",))
    assert (call.arguments, call.parse_error) == ({"command": value}, None)


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS][{"name": "view", "arguments": {"path": "a.py"}}]',
        '[TOOL_CALLS]view[ARGS]{"path": "a.py"}',
        "<tool_call>view\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n</tool_call>",
        '<|channel|>commentary to=functions.view <|constrain|>json<|message|>{"path": "a.py"}<|call|>',
        "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function",
        '[view(path="a.py")]',
        '<tools>\n[{"name": "view", "arguments": {"path": "a.py"}}]\n</tools>',
    ],
    ids=["Mistral", "newer Mistral", "GLM", "harmony", "DeepSeek", "Llama 4", "Qwen2.5-Coder"],
)
def test_calls_in_other_formats_are_refused(text: str) -> None:
    said, (call,) = split_text_calls(f"I look.\n{text}", prefix="c", offered=("view",))
    assert (said, call.name, call.parse_error) == ("I look.", "", "calls in this format are not read")
    assert call.raw == text
    shown = f"- `{text}`"
    assert split_text_calls(shown, prefix="c", offered=("view",))[1] == () or "<tool_call>" in text


@pytest.mark.parametrize("cut", ["</function>", "</parameter>\n</function>"])
def test_a_tagged_call_without_its_end_is_none(cut: str) -> None:
    _, (call,) = split_text_calls(f"<tool_call>\n{TAGGED.removesuffix(cut)}", prefix="c")
    assert (call.name, call.parse_error is not None) == ("view", True)
    assert split_text_calls(TAGGED.removesuffix(cut), prefix="c", offered=("view",))[1] == ()
    assert split_text_calls(TAGGED, prefix="c", offered=("grep",))[1] == ()
