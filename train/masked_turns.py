"""Which turns of an episode were mistakes: they stay in the conversation, but are not trained.

Only the row is read here: its messages and, if the dataset has one, its step table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, get_args

__all__ = ["RULES", "Rule", "masked_turns", "turns_of"]

Rule = Literal["malformed", "repeated"]
RULES: tuple[Rule, ...] = get_args(Rule)

MALFORMED = frozenset({"unreadable_call", "unknown_tool", "bad_arguments"})
"""Failures, in the step table, that say the call itself was wrong."""

_STEP = re.compile(r"\A\[step \d+\] ")
_CHANGES = frozenset({"rewrite", "bash"})
"""Tools after which there may be good reason to make the same call again."""

Messages = Sequence[Mapping[str, Any]]


def turns_of(messages: Messages) -> list[int]:
    """The positions of what the assistant wrote."""
    return [index for index, message in enumerate(messages) if message["role"] == "assistant"]


def masked_turns(row: Mapping[str, Any], rules: Collection[Rule]) -> dict[int, str]:
    """The positions of the messages that must not train, each with its reason.

    `malformed`: no call where one was due, or one that is unreadable, of an unknown tool, or with wrong arguments.
    `repeated`: the calls of an earlier turn again, with the same answers as then, and nothing changed in between.
    Whatever the rules, a message with `weight: 0` does not train (as in the fine-tuning format of OpenAI).
    """
    messages: Messages = row["messages"]
    found = {index: "weight 0" for index in turns_of(messages) if messages[index].get("weight") == 0}
    finders: dict[Rule, Callable[[Mapping[str, Any]], Collection[int]]] = {
        "malformed": _malformed,
        "repeated": _repeated,
    }
    for rule in rules:
        found.update(dict.fromkeys(finders[rule](row), rule))
    return found


def _malformed(row: Mapping[str, Any]) -> set[int]:
    turns = turns_of(row["messages"])
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
        position[entry["step"]] for entry in steps if entry.get("failure") in MALFORMED and entry["step"] in position
    }


def _repeated(row: Mapping[str, Any]) -> set[int]:
    messages: Messages = row["messages"]
    turns = turns_of(messages)
    seen: set[str] = set()
    found: set[int] = set()
    for turn, end in zip(turns, [*turns[1:], len(messages)], strict=False):
        functions = [call.get("function") or {} for call in messages[turn].get("tool_calls") or ()]
        if any(function.get("name") in _CHANGES for function in functions):
            seen.clear()
        answers = [_STEP.sub("", str(answer.get("content"))) for answer in messages[turn + 1 : end]]
        calls = [[function.get("name"), function.get("arguments")] for function in functions]
        key = json.dumps([calls, answers], sort_keys=True, default=str)
        if functions and key in seen:
            found.add(turn)
        seen.add(key)
    return found
