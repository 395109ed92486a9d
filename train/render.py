"""From a conversation to tokens and labels: which tokens are trained is decided here, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gumshoe.errors import DatasetError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["UNTRAINED", "Rendered", "Renderer", "spans"]

UNTRAINED = -100
"""Label of a token that is read but not trained."""


@dataclass(frozen=True)
class Rendered:
    """One row as the trainer gets it: `labels` are the tokens that train, and UNTRAINED elsewhere."""

    input_ids: list[int]
    labels: list[int]

    @property
    def trained(self) -> int:
        """How many tokens train."""
        return sum(label != UNTRAINED for label in self.labels)


class Renderer:
    """Renders rows with a template that marks what the assistant writes.

    What the assistant wrote trains: its text, its calls, and the token that ends its turn. System prompt, tools, the
    user and tool results never do.

    Args:
        tokenizer: tokenizer of the model.
        template: a template with generation marks (see `training_template`).
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, template: str) -> None:
        self._tokenizer = tokenizer
        self._template = template

    def __call__(self, row: Mapping[str, Any]) -> Rendered:
        """Tokens and labels of a row with `messages` and perhaps `tools`. Raises DatasetError."""
        from jinja2 import TemplateError

        messages = row["messages"]
        if not isinstance(messages, list) or not all(isinstance(item, dict) and "role" in item for item in messages):
            raise DatasetError(f"{_name(row)} is no conversation: messages must be a list of objects with a role")
        try:
            encoded: Any = self._tokenizer.apply_chat_template(
                messages,
                tools=row.get("tools") or None,
                chat_template=self._template,
                return_dict=True,
                return_assistant_tokens_mask=True,
            )
        except (TemplateError, KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{_name(row)} cannot be rendered: {error}") from None
        ids: list[int] = list(encoded["input_ids"])
        mask: list[int] = list(encoded["assistant_masks"])
        return Rendered(ids, [token if trains else UNTRAINED for token, trains in zip(ids, mask, strict=True)])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included, as it was rendered."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def spans(rendered: Rendered) -> list[tuple[bool, list[int]]]:
    """The row cut where training starts or stops: (trains, tokens), in order."""
    parts: list[tuple[bool, list[int]]] = []
    for token, label in zip(rendered.input_ids, rendered.labels, strict=True):
        trains = label != UNTRAINED
        if not parts or parts[-1][0] != trains:
            parts.append((trains, []))
        parts[-1][1].append(token)
    return parts


def _name(row: Mapping[str, Any]) -> str:
    return f"row {row['id']}" if row.get("id") else "a row"
