"""A turn that the model wrote, sent back as history, is read by the model as it was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gumshoe.collect.policies.answers import read_answer, read_whole
from gumshoe.collect.policies.retry import Transient
from gumshoe.eval.serve.check.calls import MAX_TOKENS
from gumshoe.eval.serve.check.rendering import SYNTAXES, common_length
from gumshoe.eval.serve.check.verdict import CheckItem
from gumshoe.eval.serve.check.wire import Prompt, ServerReply, Wire
from gumshoe.records import Completion, Message, ToolSchema
from gumshoe.tools.text_calls import TAG

__all__ = ["sent_back"]


def sent_back(wire: Wire, syntax: str, ask: str, tools: Sequence[ToolSchema]) -> CheckItem:
    """The prompt of the next turn begins with the first prompt and the sampled tokens, one by one.

    Otherwise every turn moves the conversation further away from what the model has seen and written. Differences
    inside the call are not judged: the model may write JSON that its template would write with other spaces.
    """
    item = f"a turn sent back, syntax {syntax}"
    sent = [tool.as_openai() for tool in tools]
    asked = [Message(role="user", content=ask)]
    answer = wire.chat(SYNTAXES[syntax](asked), tools=sent, max_tokens=MAX_TOKENS, return_token_ids=True, logprobs=True)
    if answer.status != 200:
        return CheckItem(item, "not supported" if answer.refused else "wrong", f"HTTP {answer.status}: {answer.said}")
    first, written = answer.body.get("prompt_token_ids"), answer.choice.get("token_ids")
    if not isinstance(first, list) or not isinstance(written, list):
        return CheckItem(item, "not judged", "the server does not name the tokens of prompts and answers")
    turn = _read(answer, tools)
    if turn is None or not turn.tool_calls or answer.finish == "length":
        return CheckItem(item, "not judged", f"the model called no tool: {answer.text[:60]!r}")
    result = [Message(role="tool", content="1 a", tool_call_id=call.id, name=call.name) for call in turn.tool_calls]
    prompt = wire.prompt(SYNTAXES[syntax]([*asked, turn.as_message(), *result]), sent)
    if not isinstance(prompt, Prompt) or prompt.ids is None:
        return CheckItem(item, "wrong", "the server names no tokens of the second prompt")
    return _compared(item, answer, [*first, *written], prompt.ids, len(first))


def _read(answer: ServerReply, tools: Sequence[ToolSchema]) -> Completion | None:
    """The turn as an episode reads it; None if it cannot be read."""
    try:
        return read_answer(
            read_whole(json.dumps(answer.body).encode()),
            model=str(answer.body.get("model")),
            duration_s=0.0,
            prices=None,
            call_prefix="call",
            offered={tool.name for tool in tools},
        )
    except Transient:
        return None


def _compared(
    item: str, answer: ServerReply, expected: Sequence[int], found: Sequence[int], prompt_tokens: int
) -> CheckItem:
    same = common_length(expected, found)
    written = same - prompt_tokens
    if same >= len(expected):
        return CheckItem(item, "ok", f"{written} tokens")
    pieces = _pieces(answer)
    if TAG not in "".join(pieces):
        return CheckItem(item, "not judged", "the model writes calls without the template's tags")
    if written >= 0 and TAG in "".join(pieces[:written]):
        return CheckItem(item, "not judged", f"the model writes calls in its own way: alike up to token {written}")
    return CheckItem(item, "wrong", f"token {written} of the turn comes back as another one")


def _pieces(answer: ServerReply) -> list[str]:
    """The text of each sampled token."""
    logprobs: Any = answer.choice.get("logprobs") or {}
    return [str(entry.get("token", "")) for entry in logprobs.get("content") or ()]
