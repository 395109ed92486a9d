"""Turns dataset rows into samples: whole episodes, windows of long ones, or single decisions.

Some turns stay in the conversation and do not train, because they were mistakes. A conversation that is longer than the
context is cut into windows: every turn trains in exactly one of them, the report included. A window ends after an
assistant message, never inside one. The turns that it trains are preceded by what led to them, with the text of older
observations left out, just as an agent with a limited context sees it; if that is still too long, the oldest turns are
dropped:

    episode    system user  turn1 answer1 turn2 answer2 turn3 answer3 turn4
    window 1   system user *turn1 answer1*turn2
    window 2   system user  turn1 [left out] turn2 answer2 *turn3 answer3*turn4        (* trains)
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gumshoe.agreement import INVALID_KINDS, KEEP_TURNS, STEP, left_out
from gumshoe.errors import DatasetError
from gumshoe.train.rows.render import Rendered, Renderer

Rule = Literal["malformed", "repeated"]
RULES: tuple[Rule, ...] = get_args(Rule)

_CHANGES = frozenset({"rewrite", "bash"})
"""Tools after which there may be good reason to make the same call again."""

Message = Mapping[str, Any]
Messages = Sequence[Message]


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
    mistakes = masked_turns(row, sampling.mask)
    parts = _parts(row, renderer, sampling)
    for number, part in enumerate(parts):
        trains = [turn for turn, origin in zip(part.trains, part.origins, strict=True) if origin not in mistakes]
        if sampling.unit == "decision" and not trains:
            continue
        whole = {**row, "messages": part.messages}
        masked = [count for count, turn in enumerate(_turns(part.messages)) if turn not in trains]
        rendered = renderer(whole, masked=masked, sampled=_sampled(row, part))
        if sampling.windows and len(rendered.input_ids) > sampling.max_length:
            # Windows are cut by what rendering gives, which may be shorter than what was sampled.
            rendered = renderer(whole, masked=masked)
        yield Sample(f"{name}/{number}" if len(parts) > 1 else name, rendered, len(part.trains) - len(trains))


def _parts(row: Mapping[str, Any], renderer: Renderer, sampling: Sampling) -> list[Window]:
    def fits(part: Messages) -> bool:
        return not sampling.windows or renderer.length({**row, "messages": list(part)}) <= sampling.max_length

    found = windows(row["messages"], fits, single=sampling.unit == "decision")
    if found is None:
        raise DatasetError(
            f"row {row.get('id')} has a turn that does not fit into {sampling.max_length} tokens even alone: "
            "set max_length higher, or too_long: skip"
        )
    return found


def _sampled(row: Mapping[str, Any], part: Window) -> dict[int, Sequence[int]]:
    """The sampled tokens of the turns that a part trains, by their number among its assistant messages."""
    tokens = {entry["message"]: entry["token_ids"] for entry in row.get("sampled") or ()}
    places = dict(zip(part.trains, part.origins, strict=True))
    numbered = enumerate(_turns(part.messages)) if tokens else ()
    return {number: tokens[places[turn]] for number, turn in numbered if places.get(turn) in tokens}


def as_conversation(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row in prompt and completion form as a conversation, of which the completion trains."""
    if "messages" in row:
        return row
    read = [{**message, "weight": 0} if message["role"] == "assistant" else message for message in row["prompt"]]
    return {**row, "messages": [*read, *row["completion"]], "steps": None}


def _turns(messages: Messages) -> list[int]:
    """The positions of what the assistant wrote."""
    return [index for index, message in enumerate(messages) if message["role"] == "assistant"]


def masked_turns(row: Mapping[str, Any], rules: Collection[Rule]) -> dict[int, str]:
    """The positions of the messages that must not train, each with its reason.

    `malformed`: no call where one was due, or one that is unreadable, of an unknown tool, or with wrong arguments.
    `repeated`: the calls of an earlier turn again, with the same answers as then, and nothing changed in between.
    Whatever the rules, a message with `weight: 0` does not train (as in the fine-tuning format of OpenAI).
    """
    messages: Messages = row["messages"]
    reasons = {index: "weight 0" for index in _turns(messages) if messages[index].get("weight") == 0}
    finders: dict[Rule, Callable[[Mapping[str, Any]], Collection[int]]] = {
        "malformed": _malformed,
        "repeated": _repeated,
    }
    for rule in rules:
        reasons.update(dict.fromkeys(finders[rule](row), rule))
    return reasons


def _malformed(row: Mapping[str, Any]) -> set[int]:
    turns = _turns(row["messages"])
    if not row.get("tools"):
        return set()
    known = {(tool.get("function") or tool).get("name") for tool in row["tools"]}
    wrong = {turn for turn in turns if not _well_formed(row["messages"][turn], known, is_last=turn == turns[-1])}
    return wrong | _failed(row.get("steps") or (), turns)


def _well_formed(message: Mapping[str, Any], known: Collection[str], *, is_last: bool) -> bool:
    calls = message.get("tool_calls") or ()
    if not calls:
        # The last turn may close the conversation in words; any other one without a call wasted its turn.
        return is_last and "<tool_call>" not in (message.get("content") or "")
    functions = [call.get("function") or {} for call in calls]
    return all(call.get("name") in known and isinstance(call.get("arguments"), Mapping) for call in functions)


def _failed(steps: Sequence[Mapping[str, Any]], turns: Sequence[int]) -> set[int]:
    """Turns that the step table reports as malformed. The table names steps in the order of the turns."""
    numbers = list(dict.fromkeys(entry["step"] for entry in steps))
    position = dict(zip(numbers, turns, strict=False))
    return {
        position[entry["step"]]
        for entry in steps
        if entry.get("failure") in INVALID_KINDS and entry["step"] in position
    }


def _repeated(row: Mapping[str, Any]) -> set[int]:
    messages: Messages = row["messages"]
    turns = _turns(messages)
    seen: set[str] = set()
    repeated: set[int] = set()
    for turn, end in zip(turns, [*turns[1:], len(messages)], strict=False):
        functions = [call.get("function") or {} for call in messages[turn].get("tool_calls") or ()]
        if any(function.get("name") in _CHANGES for function in functions):
            seen.clear()
        answers = [STEP.sub("", str(answer.get("content"))) for answer in messages[turn + 1 : end]]
        calls = [[function.get("name"), function.get("arguments")] for function in functions]
        key = json.dumps([calls, answers], sort_keys=True, default=str)
        if functions and key in seen:
            repeated.add(turn)
        seen.add(key)
    return repeated


@dataclass(frozen=True)
class Window:
    """A part of an episode: its messages, and the positions among them of the turns that train.

    `origins` are the positions that these turns had in the episode.
    """

    messages: Messages
    trains: tuple[int, ...]
    origins: tuple[int, ...]


def windows(messages: Messages, fits: Callable[[Messages], bool], *, single: bool = False) -> list[Window] | None:
    """The windows of a conversation; a single whole one if it fits. None if a turn cannot be made to fit.

    With `single` there is one window per turn, instead of as many turns as fit.
    """
    turns = _turns(messages)
    if not turns or (not single and fits(messages)):
        return [Window(list(messages), tuple(turns), tuple(turns))]
    found: list[Window] = []
    start = 0
    while start < len(turns):
        begin = turns[start]
        context = next((each for each in _contexts(messages, turns, start) if fits([*each, messages[begin]])), None)
        if context is None:
            return None

        def upto(end: int, context: list[Message] = context, begin: int = begin) -> list[Message]:
            return [*context, *messages[begin : turns[end - 1] + 1]]

        end = start + 1
        if not single:
            end += bisect.bisect_left(range(end + 1, len(turns) + 1), True, key=lambda last: not fits(upto(last)))
        origins = tuple(turns[start:end])
        found.append(Window(upto(end), tuple(turn - begin + len(context) for turn in origins), origins))
        start = end
    return found


def _contexts(messages: Messages, turns: Sequence[int], start: int) -> Iterator[list[Message]]:
    """What precedes turn `start`: whole, then ever shorter."""
    whole = list(messages[: turns[start]])
    yield whole
    for kept in range(min(KEEP_TURNS, start), -1, -1):
        yield [_left_out(message) if at < turns[start - kept] else message for at, message in enumerate(whole)]
    for dropped in range(1, start + 1):
        yield [*messages[: turns[0]], *(_left_out(message) for message in whole[turns[dropped] :])]


def _left_out(message: Message) -> Message:
    """A tool message without its text, replaced by the text that the agent sees instead."""
    if message["role"] != "tool":
        return message
    content = str(message.get("content") or "")
    text = left_out(content)
    return message if text == content else {**message, "content": text}
