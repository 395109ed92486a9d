"""Turns a conversation into tokens and labels: which tokens are trained is decided here, and nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from gumshoe.control_tokens import escape, escape_chat, escape_json
from gumshoe.errors import DatasetError
from gumshoe.train.encoding import control_tokens, encode_chat
from gumshoe.train.sampled import NO_DRIFT, Drift, Spliced, splice

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["UNTRAINED", "Kind", "Rendered", "Renderer", "spans"]

UNTRAINED = -100
"""Label of a token that is read but not trained."""


@dataclass(frozen=True)
class Rendered:
    """One row as the trainer gets it: `labels` are the tokens that train, and UNTRAINED elsewhere.

    `masked` are ranges (start, end) of tokens that the assistant wrote but that do not train. `drift` says how the
    turns that were sampled elsewhere differ from what rendering makes of them.
    """

    input_ids: list[int]
    labels: list[int]
    masked: tuple[tuple[int, int], ...] = ()
    drift: Drift = NO_DRIFT

    @property
    def trained(self) -> int:
        """How many tokens train."""
        return sum(label != UNTRAINED for label in self.labels)


class Renderer:
    """Renders rows with a template that marks what the assistant writes.

    What the assistant wrote trains: its text, its calls, and the token that ends its turn. System prompt, tools, the
    user and tool results never do, nor does what a server writes to begin the assistant's turn, which some templates
    mark as the assistant's. Control tokens in the text of a row are escaped, as they are where the model is served (see
    `gumshoe.control_tokens`); a row with one of this tokenizer that escaping does not know is refused.

    Args:
        tokenizer: tokenizer of the model.
        template: a template with generation marks (see `training_template`).
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, template: str) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self._unescaped = [token for token in control_tokens(tokenizer).values() if escape(token) == token]
        self._opening = self._generation_prompt()

    def __call__(
        self,
        row: Mapping[str, Any],
        *,
        masked: Collection[int] = (),
        sampled: Mapping[int, Sequence[int]] | None = None,
    ) -> Rendered:
        """Tokens and labels of a row with `messages` and perhaps `tools`.

        Args:
            row: what is rendered.
            masked: assistant messages that do not train, counted from 0 among the assistant messages.
            sampled: by the same count, the token ids that the model sampled for a message: if they are from this
                tokenizer, they replace what rendering its text gives, and train.

        Raises:
            DatasetError: it cannot be rendered, its template does not mark each turn separately, or its text has a
                control token.
        """
        encoded = self._encode(row, return_assistant_tokens_mask=True)
        ids: list[int] = list(encoded["input_ids"])
        mask = self._without_openings(ids, list(encoded["assistant_masks"]))
        done = Spliced(ids, mask, self._turns(row, mask) if masked or sampled else [])
        if sampled:
            written = [message for message in escape_chat(row["messages"]) if message["role"] == "assistant"]
            done = splice(self.tokenizer, done, {at: (written[at], tokens) for at, tokens in sampled.items()})
        ranges = tuple(done.turns[number] for number in sorted(masked))
        for start, end in ranges:
            done.mask[start:end] = [0] * (end - start)
        labels = [token if trains else UNTRAINED for token, trains in zip(done.ids, done.mask, strict=True)]
        return Rendered(done.ids, labels, ranges, done.drift)

    def length(self, row: Mapping[str, Any]) -> int:
        """How many tokens a row has. Raises DatasetError."""
        return len(self._encode(row)["input_ids"])

    def _encode(self, row: Mapping[str, Any], **options: Any) -> Any:
        from jinja2 import TemplateError

        messages = row["messages"]
        if not isinstance(messages, list) or not all(isinstance(item, dict) and "role" in item for item in messages):
            raise DatasetError(f"{_name(row)} is not a conversation: messages must be a list of objects with a role")
        self._refuse_control_tokens(row)
        try:
            return encode_chat(self.tokenizer, self.template, messages, row.get("tools"), **options)
        except (TemplateError, KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{_name(row)} cannot be rendered: {error}") from None

    def _refuse_control_tokens(self, row: Mapping[str, Any]) -> None:
        """Raises DatasetError for a row with a control token in its text that escaping does not know."""
        for text in _texts([escape_chat(row["messages"]), escape_json(row.get("tools"))] if self._unescaped else []):
            for token in self._unescaped:
                if token in text:
                    raise DatasetError(
                        f"{_name(row)} has {token!r} in its text, which this tokenizer reads as a control token: "
                        "leave the row out, or change its text"
                    )

    def _generation_prompt(self) -> list[int]:
        """The tokens with which a server begins the assistant's turn; none if the template cannot tell."""
        row = {"messages": [{"role": "user", "content": "x"}]}
        try:
            before: list[int] = self._encode(row)["input_ids"]
            asked: list[int] = self._encode(row, add_generation_prompt=True)["input_ids"]
        except DatasetError:
            return []
        return asked[len(before) :] if asked[: len(before)] == before else []

    def _without_openings(self, ids: Sequence[int], mask: list[int]) -> list[int]:
        """The mask without the part of an opening that stands at the beginning of a turn."""
        opening = self._opening
        for start, end in _runs(mask):
            for inside in range(min(len(opening) - 1, end - start), 0, -1):
                first = start + inside - len(opening)
                if first >= 0 and ids[first : start + inside] == opening:
                    mask[start : start + inside] = [0] * inside
                    break
        return mask

    def _turns(self, row: Mapping[str, Any], mask: Sequence[int]) -> list[tuple[int, int]]:
        """The token ranges of the assistant's turns."""
        ranges = _runs(mask)
        turns = sum(message["role"] == "assistant" for message in row["messages"])
        if len(ranges) != turns:
            raise DatasetError(
                f"{_name(row)}: single turns cannot be identified: the chat template marks {len(ranges)} of {turns}"
            )
        return ranges

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included, as it was rendered."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


Kind = Literal["trained", "masked", "read"]


def spans(rendered: Rendered) -> list[tuple[Kind, list[int]]]:
    """The row, cut where the kind of its tokens changes: (kind, tokens), in order.

    `trained` is what trains, `masked` what the assistant wrote and a rule took out, `read` the rest.
    """
    out = {place for start, end in rendered.masked for place in range(start, end)}
    parts: list[tuple[Kind, list[int]]] = []
    for place, (token, label) in enumerate(zip(rendered.input_ids, rendered.labels, strict=True)):
        kind: Kind = "trained" if label != UNTRAINED else "masked" if place in out else "read"
        if not parts or parts[-1][0] != kind:
            parts.append((kind, []))
        parts[-1][1].append(token)
    return parts


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for pair in cast("dict[Any, Any]", value).items():
            yield from _texts(list(pair))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)


def _runs(mask: Sequence[int]) -> list[tuple[int, int]]:
    """The unbroken ranges where the mask is on: (start, end)."""
    edges = [place for place in range(len(mask) + 1) if _at(mask, place) != _at(mask, place - 1)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _at(mask: Sequence[int], place: int) -> bool:
    return 0 <= place < len(mask) and bool(mask[place])


def _name(row: Mapping[str, Any]) -> str:
    return f"row {row['id']}" if row.get("id") else "a row"
