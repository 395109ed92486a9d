"""Conversations as tokens, with the control tokens in their text escaped (see `gumshoe.control_tokens`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gumshoe.control_tokens import escape_chat, escape_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["control_tokens", "encode_chat"]


def encode_chat(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    **options: Any,
) -> Any:
    """The tokens of a conversation, as `apply_chat_template` returns them; `options` are those of that function."""
    return tokenizer.apply_chat_template(
        escape_chat(messages), tools=escape_json(tools) or None, chat_template=template, return_dict=True, **options
    )


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """The control tokens of a tokenizer by their ids."""
    return {number: token.content for number, token in tokenizer.added_tokens_decoder.items() if token.special}
