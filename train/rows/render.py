"""Turns a conversation into tokens and labels: which tokens of its turns are trained is decided here alone.

Which turns are not, such as mistakes, is decided in `samples`.

Where the server gave the token ids that were sampled for a turn, those are trained instead of what rendering its text
again would give: a text has many tokenizations, and a template writes a call in its own way.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gumshoe.errors import DatasetError
from gumshoe.text import escape, escape_chat, escape_json

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

UNTRAINED = -100
"""Label of a token that is read but not trained."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Counts sampled turns by what rendering them again would have given.

    Attributes:
        same: the tokens that were sampled.
        changed: other tokens, of the same text or of another, such as a call in the template's own form.
        foreign: the ids do not give the message with this tokenizer, or have control tokens of their own, so the
            rendered tokens train.
    """

    same: int = 0
    changed: int = 0
    foreign: int = 0

    @property
    def turns(self) -> int:
        """Turns that were compared."""
        return self.same + self.changed + self.foreign

    def __add__(self, other: Drift) -> Drift:
        return Drift(self.same + other.same, self.changed + other.changed, self.foreign + other.foreign)


NO_DRIFT = Drift()


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
    `gumshoe.text`); a row with one of this tokenizer that escaping does not know is refused.
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
        done = _Spliced(ids, mask, self._turns(row, mask) if masked or sampled else [])
        if sampled:
            written = [message for message in escape_chat(row["messages"]) if message["role"] == "assistant"]
            done = _splice(self.tokenizer, done, {at: (written[at], tokens) for at, tokens in sampled.items()})
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

        self._refuse_control_tokens(row)
        try:
            return encode_chat(self.tokenizer, self.template, row["messages"], row.get("tools"), **options)
        except (TemplateError, KeyError, TypeError, ValueError) as error:
            raise DatasetError(f"{_name(row)} cannot be rendered: {error}") from None

    def _refuse_control_tokens(self, row: Mapping[str, Any]) -> None:
        """Raises DatasetError for a row with a control token in its text that escaping does not know."""
        if not self._unescaped:
            return
        text = json.dumps([escape_chat(row["messages"]), escape_json(row.get("tools"))])
        for token in self._unescaped:
            if json.dumps(token)[1:-1] in text:
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
        return _decode(self.tokenizer, ids)


def _decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))


Kind = Literal["trained", "masked", "read"]


def spans(rendered: Rendered) -> list[tuple[Kind, list[int]]]:
    """The row, cut where the kind of its tokens changes: (kind, tokens), in order.

    `trained` is what trains, `masked` what the assistant wrote and a rule took out, `read` the rest.
    """
    masked = {place for start, end in rendered.masked for place in range(start, end)}

    def kind(place: int) -> Kind:
        if rendered.labels[place] != UNTRAINED:
            return "trained"
        return "masked" if place in masked else "read"

    groups = itertools.groupby(range(len(rendered.input_ids)), key=kind)
    return [(found, [rendered.input_ids[place] for place in places]) for found, places in groups]


def turn_starts(rendered: Rendered) -> list[int]:
    """The positions at which each assistant turn begins to train, where a server hands over to the model."""
    return [start for start, _ in _runs([label != UNTRAINED for label in rendered.labels])]


def _runs(mask: Sequence[int]) -> list[tuple[int, int]]:
    """The unbroken ranges where the mask is on: (start, end)."""
    ranges: list[tuple[int, int]] = []
    end = 0
    for is_on, run in itertools.groupby(mask, key=bool):
        start, end = end, end + sum(1 for _ in run)
        if is_on:
            ranges.append((start, end))
    return ranges


def _name(row: Mapping[str, Any]) -> str:
    return f"row {row['id']}" if row.get("id") else "a row"


def encode_chat(
    tokenizer: PreTrainedTokenizerBase,
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    **options: Any,
) -> Any:
    """The tokens of a conversation with the control tokens in its text escaped (see `gumshoe.text`).

    `options` are those of `apply_chat_template`, and so is what is returned.
    """
    return tokenizer.apply_chat_template(
        [without_empty_calls(message) for message in escape_chat(messages)],
        tools=escape_json(tools) or None,
        chat_template=template,
        return_dict=True,
        **options,
    )


def without_empty_calls(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message as templates take it that ask only whether there is a list of calls: a table of rows has it in every
    message, with null where there is none.
    """
    return {key: value for key, value in message.items() if key != "tool_calls" or value}


def control_tokens(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """The control tokens of a tokenizer by their ids."""
    return {number: token.content for number, token in tokenizer.added_tokens_decoder.items() if token.special}


@dataclass(frozen=True)
class _Spliced:
    """Tokens, which of them the assistant wrote (1) or not (0), and where each of its turns begins and ends."""

    ids: list[int]
    mask: list[int]
    turns: list[tuple[int, int]]
    drift: Drift = NO_DRIFT


def _splice(
    tokenizer: PreTrainedTokenizerBase,
    rendered: _Spliced,
    sampled: Mapping[int, tuple[Mapping[str, Any], Sequence[int]]],
) -> _Spliced:
    """A rendered conversation with sampled turns in their places.

    What the template puts after the end of a turn stays. A turn that was cut off lacks the token that ends it: that
    token is read, but does not train. `sampled` holds, by turn, its message and the ids that were sampled for it.
    """
    ids: list[int] = []
    mask: list[int] = []
    turns: list[tuple[int, int]] = []
    drift = NO_DRIFT
    done = 0
    for number, (start, end) in enumerate(rendered.turns):
        ids += rendered.ids[done:start]
        mask += rendered.mask[done:start]
        own, trains = rendered.ids[start:end], rendered.mask[start:end]
        if number in sampled:
            message, tokens = sampled[number]
            own, trains, found = _turn(tokenizer, own, trains, message, list(tokens))
            drift += found
        turns.append((len(ids), len(ids) + len(own)))
        ids += own
        mask += trains
        done = end
    return _Spliced([*ids, *rendered.ids[done:]], [*mask, *rendered.mask[done:]], turns, drift)


def _turn(
    tokenizer: PreTrainedTokenizerBase, own: list[int], trains: list[int], message: Mapping[str, Any], tokens: list[int]
) -> tuple[list[int], list[int], Drift]:
    """The tokens of one turn, which of them train, and how they differ from those that were rendered."""
    stop = tokenizer.eos_token_id
    cut = len(own) - own[::-1].index(stop) - 1 if stop in own else len(own)
    finished = tokens[-1:] == [stop]
    body = tokens[:-1] if finished else tokens
    control = control_tokens(tokenizer)
    surplus = Counter(token for token in body if token in control) - Counter(own)
    if surplus or not _says(tokenizer, body, message):
        return own, trains, Drift(foreign=1)
    drift = Drift(same=1) if body == own[:cut] else Drift(changed=1)
    ending = trains[cut:] if finished else [0] * len(trains[cut:])
    return [*body, *own[cut:]], [1] * len(body) + ending, drift


def _says(tokenizer: PreTrainedTokenizerBase, body: list[int], message: Mapping[str, Any]) -> bool:
    """Whether tokens spell a message: its content, and the names of the tools that it calls."""
    if not all(0 <= token < len(tokenizer) for token in body):
        return False
    text = _decode(tokenizer, body)
    names = [str((call.get("function") or {}).get("name")) for call in message.get("tool_calls") or ()]
    return all(part in text for part in [str(message.get("content") or "").strip(), *names])
