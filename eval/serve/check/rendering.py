"""The template check: a conversation reaches the model as it was trained, token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gumshoe.collect.chat import as_native_chat, as_template_chat
from gumshoe.eval.serve.check.trained import TrainedRow
from gumshoe.eval.serve.check.verdict import CheckItem
from gumshoe.eval.serve.check.wire import Prompt, Wire
from gumshoe.records import Message, ToolSchema

__all__ = ["SYNTAXES", "common_length", "same_rendering"]

AsSent = Callable[[Sequence[Message]], list[dict[str, Any]]]

SYNTAXES: dict[str, AsSent] = {"template": as_template_chat, "native": as_native_chat}
"""How the history is sent, by the names that a policy's `syntax` has."""


def same_rendering(
    wire: Wire,
    item: str,
    syntax: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema],
    trained: TrainedRow,
) -> CheckItem:
    """At each point where the model is asked, the server's prompt equals what precedes it in the training row.

    A server that renders a native history differently does not support that syntax; calls sent as their original text
    must be rendered correctly by any server.
    """
    turns = [index for index, message in enumerate(messages) if message.role == "assistant"]
    if len(trained.starts) != len(turns):
        return CheckItem(item, "wrong", f"{len(turns)} turns, of which {len(trained.starts)} train")
    exact = True
    for turn, index in enumerate(turns):
        prompt = wire.prompt(SYNTAXES[syntax](messages[:index]), [tool.as_openai() for tool in tools])
        if not isinstance(prompt, Prompt):
            return CheckItem(
                item, "not supported" if prompt.refused else "wrong", f"HTTP {prompt.status}: {prompt.said}"
            )
        difference = _difference(prompt, trained.prompt(turn))
        if difference is not None:
            status = "wrong" if syntax == "template" else "not supported"
            return CheckItem(item, status, f"turn {turn}: {difference}")
        exact = exact and prompt.ids is not None
    how = "token by token" if exact else "by their number, as the server does not name its tokens"
    return CheckItem(item, "ok", f"{len(turns)} prompts compared {how}")


def common_length(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens at the beginning of both are the same."""
    return next(
        (place for place, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]),
        min(len(first), len(second)),
    )


def _difference(prompt: Prompt, expected: tuple[int, ...]) -> str | None:
    if prompt.ids is not None and prompt.ids != expected:
        same = common_length(prompt.ids, expected)
        return f"served {prompt.count} tokens, trained {len(expected)}, alike up to token {same}"
    return None if prompt.count == len(expected) else f"served {prompt.count} tokens, trained {len(expected)}"
