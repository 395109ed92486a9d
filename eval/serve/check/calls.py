"""Items about tool calls: native and as text, required, named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gumshoe.eval.serve.check.verdict import CheckItem
from gumshoe.eval.serve.check.wire import ServerReply, Wire
from gumshoe.records import ToolSchema
from gumshoe.tools.text_calls import TAG, split_text_calls

__all__ = ["forced_call", "native_call", "text_call"]

MAX_TOKENS = 128


def native_call(wire: Wire, ask: str, tools: tuple[ToolSchema, ...]) -> CheckItem:
    """A call that the model writes comes back in `tool_calls`, readable, and `finish_reason` says so."""
    item = "native calls"
    answer = wire.chat(_asked(ask), tools=_sent(tools), tool_choice="auto", max_tokens=MAX_TOKENS)
    if answer.refused:
        return CheckItem(item, "not supported", answer.said)
    if answer.status != 200 or not answer.body:
        return CheckItem(item, "wrong", f"HTTP {answer.status}: {answer.said}")
    if not answer.calls:
        if TAG in answer.text:
            return CheckItem(item, "not supported", "calls stay in the text: ask it with syntax: template")
        return CheckItem(item, "not judged", f"the model called no tool: {answer.text[:60]!r}")
    problem = _problem(answer, {tool.name for tool in tools})
    if problem is None and answer.finish != "tool_calls":
        problem = f"finish_reason is {answer.finish!r}"
    return CheckItem(item, "wrong", problem) if problem else CheckItem(item, "ok", _shown(answer))


def text_call(wire: Wire, ask: str, tools: tuple[ToolSchema, ...]) -> CheckItem:
    """A call reaches us as the model wrote it, whether the server leaves calls alone or reads them itself."""
    item = "text calls"
    answer = wire.chat(_asked(ask), tools=_sent(tools), max_tokens=MAX_TOKENS)
    if answer.status != 200:
        return CheckItem(item, "wrong", f"HTTP {answer.status}: {answer.said}")
    if answer.calls:
        return CheckItem(item, "ok", "the server reads them: they come as native calls")
    _, calls = split_text_calls(answer.text, prefix="call", offered={tool.name for tool in tools})
    if not calls:
        return CheckItem(item, "not judged", f"the model called no tool: {answer.text[:60]!r}")
    unread = next((call.parse_error for call in calls if call.parse_error), None)
    if unread:
        return CheckItem(item, "not judged", f"the model's call was no valid one: {unread}")
    return CheckItem(item, "ok", ", ".join(f"{call.name} {json.dumps(call.arguments)}" for call in calls))


def forced_call(wire: Wire, item: str, choice: str | dict[str, Any], wanted: set[str], tools: Any) -> CheckItem:
    """`tool_choice` required, or a named tool: the answer is a call, whatever the model would rather say."""
    answer = wire.chat(_asked("Say hello."), tools=_sent(tools), tool_choice=choice, max_tokens=MAX_TOKENS)
    if answer.refused:
        return CheckItem(item, "not supported", answer.said)
    if answer.status != 200:
        return CheckItem(item, "wrong", f"HTTP {answer.status}: {answer.said}")
    if not answer.calls and answer.finish == "length":
        return CheckItem(item, "not judged", "the call reached the length limit before it was whole")
    if not answer.calls and TAG in answer.text:
        names = {call.name for call in split_text_calls(answer.text, prefix="call")[1]}
        return CheckItem(item, "not supported", f"the choice is ignored; the model called {', '.join(sorted(names))}")
    if not answer.calls:
        return CheckItem(item, "not supported", f"the choice is ignored; the model wrote {answer.text[:60]!r}")
    problem = _problem(answer, wanted)
    if problem and answer.finish == "length":
        return CheckItem(item, "not judged", f"the call reached the length limit: {problem}")
    return CheckItem(item, "wrong", problem) if problem else CheckItem(item, "ok", _shown(answer))


def _asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _sent(tools: tuple[ToolSchema, ...]) -> list[dict[str, Any]]:
    return [tool.as_openai() for tool in tools]


def _problem(answer: ServerReply, wanted: set[str]) -> str | None:
    """What is wrong with the native calls; None where nothing is."""
    for call in answer.calls:
        if call.get("name") not in wanted:
            return f"a call of {call.get('name')!r}, which was not offered"
        try:
            arguments = json.loads(call.get("arguments") or "{}")
        except (TypeError, ValueError):
            return f"arguments that are no JSON: {str(call.get('arguments'))[:60]!r}"
        if not isinstance(arguments, Mapping):
            return f"arguments that are no object: {str(arguments)[:60]!r}"
    return None


def _shown(answer: ServerReply) -> str:
    return ", ".join(f"{call['name']} {call['arguments']}" for call in answer.calls)
