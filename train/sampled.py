"""Uses turns as they were sampled, instead of rendering their text again.

A text has many tokenizations, and a template writes a call in its own way, so a turn that is rendered again may be made
of tokens that the model did not choose. Where the server gave the ids, those are trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from gumshoe.train.encoding import control_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["NO_DRIFT", "Drift", "Spliced", "splice"]

Kind = Literal["same", "retokenized", "rewritten", "foreign"]


@dataclass(frozen=True, slots=True)
class Drift:
    """Counts sampled turns by what rendering them again would have given.

    Attributes:
        same: the tokens that were sampled.
        retokenized: other tokens of the same text.
        rewritten: another text, such as a call in the template's own form.
        foreign: the ids do not give the message with this tokenizer, or have control tokens of their own, so the
            rendered tokens train.
        changed: how many of the sampled tokens are in turns that rendering would have changed.
    """

    same: int = 0
    retokenized: int = 0
    rewritten: int = 0
    foreign: int = 0
    changed: int = 0

    @property
    def turns(self) -> int:
        """Turns that were compared."""
        return self.same + self.retokenized + self.rewritten + self.foreign

    def __add__(self, other: Drift) -> Drift:
        return Drift(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


NO_DRIFT = Drift()


@dataclass(frozen=True)
class Spliced:
    """Tokens, which of them the assistant wrote (1) or not (0), and where each of its turns begins and ends."""

    ids: list[int]
    mask: list[int]
    turns: list[tuple[int, int]]
    drift: Drift = NO_DRIFT


def splice(
    tokenizer: PreTrainedTokenizerBase,
    rendered: Spliced,
    sampled: Mapping[int, tuple[Mapping[str, Any], Sequence[int]]],
) -> Spliced:
    """A rendered conversation with sampled turns in their places.

    What the template puts after the end of a turn stays. A turn that was cut off lacks the token that ends it: that
    token is read, but does not train.

    Args:
        tokenizer: the tokenizer of the model that is trained.
        rendered: the conversation.
        sampled: by turn, its message and the ids that were sampled for it.
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
    return Spliced([*ids, *rendered.ids[done:]], [*mask, *rendered.mask[done:]], turns, drift)


def _turn(
    tokenizer: PreTrainedTokenizerBase,
    own: list[int],
    trains: list[int],
    message: Mapping[str, Any],
    tokens: list[int],
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
    kind = _kind(tokenizer, body, own[:cut])
    changed = {} if kind == "same" else {"changed": len(tokens)}
    ending = trains[cut:] if finished else [0] * len(trains[cut:])
    return [*body, *own[cut:]], [1] * len(body) + ending, Drift(**{kind: 1}, **changed)


def _kind(tokenizer: PreTrainedTokenizerBase, body: list[int], own: list[int]) -> Kind:
    if body == own:
        return "same"
    return "retokenized" if _text(tokenizer, body) == _text(tokenizer, own) else "rewritten"


def _says(tokenizer: PreTrainedTokenizerBase, body: list[int], message: Mapping[str, Any]) -> bool:
    """Whether tokens spell a message: its content, and the names of the tools that it calls."""
    if not all(0 <= token < len(tokenizer) for token in body):
        return False
    text = _text(tokenizer, body)
    names = [str((call.get("function") or {}).get("name")) for call in message.get("tool_calls") or ()]
    return all(part in text for part in [str(message.get("content") or "").strip(), *names])


def _text(tokenizer: PreTrainedTokenizerBase, ids: list[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))
