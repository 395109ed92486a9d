"""How a function's calls in failing tests differ from those in passing tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from gumshoe.tools.code.source import count_common
from gumshoe.tools.tracing.calls import TracedCall, is_hidden

__all__ = ["Branch", "CallComparison", "Differences", "ValueDifference", "compare", "summarize"]

_NAMED = 6
_VALUES = 6
_COMPARED = 200


class ValueDifference(BaseModel):
    """The first variable that a line set to different values; `step` is the index of the line in both calls."""

    step: int
    line: int
    name: str
    failing: str
    passing: str


class Branch(BaseModel):
    """Where two calls first go different ways: what comes after the line, and the variables that differ there."""

    step: int
    line: int
    failing: str
    passing: str
    values: dict[str, tuple[str, str]]
    """Name to value in the failing and in the passing call, those that the line names first."""


class CallComparison(BaseModel):
    """A failing call compared with the nearest passing one: equal arguments, then the longest equal beginning."""

    passing: int
    """Index of the passing call."""
    arguments: dict[str, tuple[str, str]]
    """The arguments that differ; empty where all are equal, so that the difference lies elsewhere."""
    value: ValueDifference | None
    branch: Branch | None
    result: tuple[str, str] | None
    """What the two came to, where that differs."""


class Differences(BaseModel):
    """What occurs only on one side. Lines and branches `(from, to)` as lists; `to` is 0 for the end of the call."""

    arguments: dict[str, tuple[list[str], list[str]]]
    """Name to the values that only failing and only passing tests pass; no name whose failing values all pass, too."""
    results: tuple[list[str], list[str]]
    lines: tuple[list[int], list[int]]
    branches: tuple[list[tuple[int, int]], list[tuple[int, int]]]


def compare(call: TracedCall, passing: Sequence[TracedCall], source: Sequence[str]) -> CallComparison | None:
    """A failing call beside the nearest passing one; None where there is no passing one, or one like it."""
    candidates = passing[:_COMPARED]
    if not candidates or any(call.is_like(each) for each in candidates):
        return None
    index = max(range(len(candidates)), key=lambda number: (*_nearness(call, candidates[number]), -number))
    other = candidates[index]
    known = call.is_result_known and other.is_result_known
    return CallComparison(
        passing=index,
        arguments=_unequal(call.arguments, other.arguments),
        value=_first_value(call, other),
        branch=_first_branch(call, other, source),
        result=(call.result, other.result) if known and call.result != other.result else None,
    )


def summarize(failing: Sequence[TracedCall], passing: Sequence[TracedCall]) -> Differences:
    """What occurs in calls of one side only."""
    names = dict.fromkeys(name for call in failing for name in call.arguments)
    arguments = {name: _only(failing, passing, lambda call, name=name: _given(call, name)) for name in names}
    return Differences(
        arguments={name: sides for name, sides in arguments.items() if sides[0] and passing},
        results=_only(failing, passing, lambda call: [call.result] if call.is_result_known else []),
        lines=_sorted(_only(failing, passing, lambda call: call.lines, most=_COMPARED)),
        branches=_sorted(_only(failing, passing, _edges, most=_COMPARED)),
    )


def _given(call: TracedCall, name: str) -> list[str]:
    return [call.arguments[name]] if name in call.arguments and not is_hidden(call.arguments[name]) else []


def _sorted(sides: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
    return sorted(sides[0]), sorted(sides[1])


def _only(
    failing: Sequence[TracedCall],
    passing: Sequence[TracedCall],
    facts: Callable[[TracedCall], Iterable[Any]],
    most: int = _NAMED,
) -> tuple[list[Any], list[Any]]:
    """The facts of one side that no call of the other side has."""
    one = dict.fromkeys(fact for call in failing for fact in facts(call))
    other = dict.fromkeys(fact for call in passing for fact in facts(call))
    return [each for each in one if each not in other][:most], [each for each in other if each not in one][:most]


def _edges(call: TracedCall) -> list[tuple[int, int]]:
    """Which line came after which; 0 is the end of the call. Where steps are left out, the last ones do not count."""
    lines = call.lines if not call.skipped else call.lines[:_COMPARED]
    over = call.outcome != "unfinished" and not call.skipped
    return list(pairwise([*lines, 0] if over else lines))


def _nearness(call: TracedCall, other: TracedCall) -> tuple[bool, int, int]:
    equal = sum(other.arguments.get(name) == value for name, value in call.arguments.items())
    return call.arguments == other.arguments, count_common(call.lines, other.lines), equal


def _unequal(one: dict[str, str], other: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Values that differ or may differ: of those that are not shown, nobody knows."""
    return {name: (value, other[name]) for name, value in one.items() if name in other and other[name] != value}


def _different(one: dict[str, str], other: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Values that are known to differ."""
    return {name: sides for name, sides in _unequal(one, other).items() if not any(map(is_hidden, sides))}


def _first_value(call: TracedCall, other: TracedCall) -> ValueDifference | None:
    """The first value that a line gives which differs, as far as both run the same lines."""
    for step in range(count_common(call.lines, other.lines)):
        line, changed, _ = call.steps[step]
        for name, (value, there) in _different(changed, other.steps[step][1]).items():
            return ValueDifference(step=step, line=line, name=name, failing=value, passing=there)
    return None


def _first_branch(call: TracedCall, other: TracedCall, source: Sequence[str]) -> Branch | None:
    common = count_common(call.lines, other.lines)
    ways = _way(call, common), _way(other, common)
    if not common or ways[0] == ways[1]:
        return None
    line = call.lines[common - 1]
    text = source[line - 1] if line <= len(source) else ""
    return Branch(
        step=common - 1, line=line, failing=ways[0], passing=ways[1], values=_values_there(call, other, common, text)
    )


def _way(call: TracedCall, step: int) -> str:
    """What comes at a step: another line, or the end of the call."""
    if step < len(call.steps):
        raised = call.steps[step - 1][2] if step else ""
        return f"line {call.lines[step]}" + (f" after {raised.splitlines()[0]}" if raised else "")
    return "its end: " + ("raised" if call.outcome == "raised" else call.outcome)


def _values_there(call: TracedCall, other: TracedCall, steps: int, text: str) -> dict[str, tuple[str, str]]:
    """Variables that differ when both have run so many steps; those that the line names come first."""
    words = set(re.findall(r"[^\W\d]\w*", text))
    found = _different(_state(call, steps), _state(other, steps))
    order = sorted(found, key=lambda name: name.rpartition(".")[2] not in words)
    return {name: found[name] for name in order[:_VALUES]}


def _state(call: TracedCall, steps: int) -> dict[str, str]:
    state = dict(call.arguments)
    for _, changed, _ in call.steps[:steps]:
        state.update(changed)
    return state
