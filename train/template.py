"""The chat template: the one that is trained is the one that is served."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gumshoe.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["served_template", "training_template"]

_COMMENT_OR_MARK = re.compile(r"\{#(-?).*?(-?)#\}|\{%(-?)\s*(?:end)?generation\s*(-?)%\}", re.DOTALL)


def training_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """The tokenizer's template with marks around what the assistant writes.

    TRL knows marked versions of the common templates; one that drops earlier reasoning is changed to keep it, since
    a conversation must not render differently when it grows.

    Raises:
        ConfigError: the tokenizer has no template, or one that is not marked and that TRL does not know.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    template = tokenizer.chat_template
    if not isinstance(template, str):
        raise ConfigError(f"the tokenizer {tokenizer.name_or_path} has no chat template: set one and save it")
    try:
        patched = get_training_chat_template(tokenizer)
    except ValueError as error:
        if has_generation_markers(template):
            return template
        raise ConfigError(
            f"the chat template of {tokenizer.name_or_path} does not mark what the assistant writes, and TRL knows no "
            f"marked version of it: put {{% generation %}} ... {{% endgeneration %}} around it ({error})"
        ) from None
    return patched or template


def served_template(marked: str) -> str:
    """`marked` without its marks, for servers that do not know the tag. It renders the same text."""

    def emptied(match: re.Match[str]) -> str:
        # An empty comment trims the white space around it as the mark did. TRL finds marks in comments, too.
        return f"{{#{match[1] or match[3] or ''} {match[2] or match[4] or ''}#}}"

    return _COMMENT_OR_MARK.sub(emptied, marked)
