"""Turns dataset rows into samples: whole episodes, or single decisions, each with the turns that are masked out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gumshoe.errors import DatasetError
from gumshoe.train.masked_turns import RULES, Rule, masked_turns, turns_of
from gumshoe.train.render import Rendered, Renderer
from gumshoe.train.rows import as_conversation
from gumshoe.train.windows import Window, windows

__all__ = ["Sample", "Sampling", "samples"]


@dataclass(frozen=True)
class Sampling:
    """How rows become samples.

    Attributes:
        max_length: tokens a sample may have.
        windows: cut what is longer into windows, instead of leaving it as it is.
        unit: a sample is an episode, or a single decision with all that led to it.
        mask: rules for turns that do not train.
    """

    max_length: int
    windows: bool = False
    unit: Literal["episode", "decision"] = "episode"
    mask: tuple[Rule, ...] = RULES


@dataclass(frozen=True)
class Sample:
    """What the trainer gets, and where it is from. `masked` counts the turns that a rule took out."""

    id: str
    rendered: Rendered
    masked: int


def samples(row: Mapping[str, Any], renderer: Renderer, sampling: Sampling) -> Iterator[Sample]:
    """The samples of one row; a decision that a rule masks out gives none. Raises DatasetError."""
    row = as_conversation(row)
    name = str(row.get("id") or "")
    wrong = masked_turns(row, sampling.mask) if _is_conversation(row["messages"]) else {}
    parts = _parts(row, renderer, sampling)
    for number, part in enumerate(parts):
        trains = [turn for turn, origin in zip(part.trains, part.origins, strict=True) if origin not in wrong]
        if sampling.unit == "decision" and not trains:
            continue
        whole = {**row, "messages": part.messages}
        masked = _others(part.messages, trains)
        rendered = renderer(whole, masked=masked, sampled=_sampled(row, part))
        if sampling.windows and len(rendered.input_ids) > sampling.max_length:
            # Windows are cut by what rendering gives, which may be shorter than what was sampled.
            rendered = renderer(whole, masked=masked)
        yield Sample(f"{name}/{number}" if len(parts) > 1 else name, rendered, len(part.trains) - len(trains))


def _parts(row: Mapping[str, Any], renderer: Renderer, sampling: Sampling) -> list[Window]:
    messages: Sequence[Mapping[str, Any]] = row["messages"]
    single = sampling.unit == "decision"
    if not (single or sampling.windows) or not _is_conversation(messages):
        # Anything that is not a conversation is passed on as it is: the renderer says what is wrong with it.
        turns = tuple(turns_of(messages)) if _is_conversation(messages) else ()
        return [Window(messages, turns, turns)]

    def fits(part: Sequence[Mapping[str, Any]]) -> bool:
        return not sampling.windows or renderer.length({**row, "messages": list(part)}) <= sampling.max_length

    found = windows(messages, fits, single=single)
    if found is None:
        raise DatasetError(
            f"row {row.get('id')} has a turn that does not fit into {sampling.max_length} tokens even alone: "
            "set max_length higher, or too_long: skip"
        )
    return found


def _is_conversation(messages: object) -> bool:
    return isinstance(messages, list) and all(isinstance(message, dict) and "role" in message for message in messages)


def _sampled(row: Mapping[str, Any], part: Window) -> dict[int, Sequence[int]]:
    """The sampled tokens of the turns that a part trains, by their number among its assistant messages."""
    tokens = {entry["message"]: entry["token_ids"] for entry in row.get("sampled") or ()}
    places = dict(zip(part.trains, part.origins, strict=True))
    numbered = enumerate(turns_of(part.messages)) if tokens else ()
    return {number: tokens[places[turn]] for number, turn in numbered if places.get(turn) in tokens}


def _others(messages: Sequence[Mapping[str, Any]], trains: Collection[int]) -> frozenset[int]:
    """The assistant messages that do not train, by their number among the assistant messages."""
    if not _is_conversation(messages):
        return frozenset()
    return frozenset(number for number, turn in enumerate(turns_of(messages)) if turn not in trains)
