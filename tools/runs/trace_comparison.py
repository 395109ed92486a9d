"""How a function's calls in failing tests differ from those in passing tests, and what a model reads of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import BaseModel

from gumshoe.env.inside.runs.calls import FIRST_STEPS
from gumshoe.text import cut_line, plural
from gumshoe.tools.code.functions import Function
from gumshoe.tools.code.source import count_common
from gumshoe.tools.runs.traced_calls import Trace, TracedCall, is_hidden

_NAMED = 6
"""Arguments and results that are kept of what occurs on one side only."""
_MOST_VALUES = 6
"""Variables that are kept of a place where two calls part."""
_COMPARED = 200
"""Passing calls that a failing one is compared with; also the lines and branches that are kept of one side."""
# What the text shows; the data hold all of it.
_CALLS = 3
"""Calls."""
_HEAD, _AROUND, _TAIL = 5, 2, 5
"""Lines of a call: at its beginning, on each side of where it differs from a passing one, and at its end."""
_CODE, _VALUES, _LINE = 60, 100, 200
"""Characters: of a line's code or of an argument, of the variables that a line changes, and of a line of the text."""
_SIDE = 4
"""Values, results and branches of what occurs on one side only."""


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


class Sides(NamedTuple):
    """What occurs only in failing tests, and only in passing ones."""

    failing: list[Any]
    passing: list[Any]


class Differences(BaseModel):
    """What occurs only on one side. A branch is `(from, to)`, where `to` is 0 for the end of the call."""

    arguments: dict[str, Sides]
    """The values by name; no name whose failing values all occur in passing tests, too."""
    results: Sides
    lines: Sides
    branches: Sides


def compare(call: TracedCall, passing: Sequence[TracedCall], source: Sequence[str]) -> CallComparison | None:
    """A failing call beside the nearest passing one; None where there is no passing one, or one like it."""
    candidates = passing[:_COMPARED]
    if not candidates or any(call.is_like(other) for other in candidates):
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
        arguments={name: sides for name, sides in arguments.items() if sides.failing and passing},
        results=_only(failing, passing, lambda call: [call.result] if call.is_result_known else []),
        lines=_sorted(_only(failing, passing, lambda call: call.lines, most=_COMPARED)),
        branches=_sorted(_only(failing, passing, _edges, most=_COMPARED)),
    )


def _given(call: TracedCall, name: str) -> list[str]:
    return [call.arguments[name]] if name in call.arguments and not is_hidden(call.arguments[name]) else []


def _sorted(sides: Sides) -> Sides:
    return Sides(sorted(sides.failing), sorted(sides.passing))


def _only(
    failing: Sequence[TracedCall],
    passing: Sequence[TracedCall],
    facts: Callable[[TracedCall], Iterable[Any]],
    most: int = _NAMED,
) -> Sides:
    """The facts of one side that no call of the other side has."""
    failed = dict.fromkeys(fact for call in failing for fact in facts(call))
    passed = dict.fromkeys(fact for call in passing for fact in facts(call))
    only_failed = [fact for fact in failed if fact not in passed]
    only_passed = [fact for fact in passed if fact not in failed]
    return Sides(only_failed[:most], only_passed[:most])


def _edges(call: TracedCall) -> list[tuple[int, int]]:
    """Which line came after which; 0 is the end of the call. Where steps were left out of the middle, those after them
    do not count.
    """
    lines = call.lines if not call.skipped else call.lines[:FIRST_STEPS]
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
    return {name: found[name] for name in order[:_MOST_VALUES]}


def _state(call: TracedCall, steps: int) -> dict[str, str]:
    state = dict(call.arguments)
    for _, changed, _ in call.steps[:steps]:
        state.update(changed)
    return state


# - what a model reads


def describe_trace(
    function: Function,
    trace: Trace,
    calls: Sequence[TracedCall],
    comparisons: Sequence[CallComparison | None],
    differences: Differences,
) -> str:
    """How often it was called, what is only so in failing tests, and the most telling calls.

    `calls` are those in failing tests, the most telling first, each with its comparison; those in passing tests where
    there are none.
    """
    lines = [f"{function.span.name} {function.path}:{function.span.start}-{function.span.end}: {_counts(trace)}"]
    if trace.failing and trace.passing:
        lines += _only_in_failing(differences)
    for index, (call, comparison) in enumerate(list(zip(calls, comparisons, strict=True))[:_CALLS]):
        ordinary = bool(trace.failing) and any(call.is_like(other) for other in trace.passing)
        others = f" and {plural(len(call.also), 'other test')}" if call.also else ""
        times = f" ({call.count} times)" if call.count > 1 else ""
        caller = call.caller
        place = f" from {caller.path}:{caller.line} {caller.function}" if caller else ""
        lines.append(f"call {call.number} in {call.test}{others}{times}{place}")
        lines += _briefly(call) if ordinary and index else _call(call, comparison, function)
        if comparison is not None:
            lines += _compared(comparison, trace.passing[comparison.passing])
        elif ordinary:
            lines.append("  the same in a passing test")
    if len(calls) > _CALLS:
        lines.append(f"[... {len(calls) - _CALLS} other calls ...]")
    return "\n".join(cut_line(line, _LINE) for line in lines)


def _counts(trace: Trace) -> str:
    failing, passing = plural(trace.failed, "failing test"), plural(trace.passed, "passing test")
    if not trace.failed:
        title = f"{plural(trace.passing_calls, 'call')} in {passing}; no test fails"
    else:
        called = plural(trace.failing_calls, "call") if trace.failing_calls else "not called"
        title = f"{called} in {failing}, {plural(trace.passing_calls, 'call')} in {passing}"
    ended = "" if trace.ended and not trace.unfinished else "; the tests were stopped, they ran too long"
    others = f" and {plural(len(trace.lost) - 1, 'other test')}" if len(trace.lost) > 1 else ""
    if not trace.lost:
        return title + ended
    return f"{title}{ended}; calls after tracing ended in {trace.lost[0]}{others} are missing (too deep a recursion)"


def _call(call: TracedCall, comparison: CallComparison | None, function: Function) -> list[str]:
    """Arguments, the lines that matter with what they changed, and the result."""
    steps = call.steps
    chosen = {*range(_HEAD), *range(len(steps) - _TAIL, len(steps))}
    for difference in (comparison.branch, comparison.value) if comparison else ():
        if difference is not None:
            chosen |= set(range(difference.step - _AROUND, difference.step + _AROUND + 1))
    shown = sorted(index for index in chosen | _single_gaps(chosen) if 0 <= index < len(steps))
    lines = _argument_lines(call)
    before = -1
    for index in shown:
        if index > before + 1:
            lines.append(f"  [... {plural(index - before - 1, 'line')} ...]")
        lines.append(_step(steps[index], function.source))
        before = index
    return [*lines, f"  {_indented(call.result)}"]


def _briefly(call: TracedCall) -> list[str]:
    return [*_argument_lines(call), f"  {_indented(call.result)}"]


def _argument_lines(call: TracedCall) -> list[str]:
    """The arguments, those of the call before the state of the object."""
    names = sorted(call.arguments, key=lambda name: name.startswith("self."))
    return [f"  {_pairs({name: cut_line(call.arguments[name], _CODE) for name in names})}"] if names else []


def _single_gaps(chosen: set[int]) -> set[int]:
    """Lines that take no more room than a word about their being left out."""
    return {index + 1 for index in chosen if index + 2 in chosen}


def _step(step: tuple[int, Mapping[str, str], str], source: Sequence[str]) -> str:
    line, changed, raised = step
    code = cut_line(source[line - 1].strip() if line <= len(source) else "", _CODE)
    facts = [cut_line(_pairs(changed), _VALUES)] if changed else []
    facts += [f"raised {raised.splitlines()[0]}"] if raised else []
    return f"  {line} {code}" + (f"  # {'; '.join(facts)}" if facts else "")


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _compared(comparison: CallComparison, other: TracedCall) -> list[str]:
    lines = [f"  nearest passing call: {other.test} call {other.number}"]
    if comparison.arguments:
        lines.append(f"    arguments: {_both(comparison.arguments)}")
    else:
        lines.append("    equal arguments")
    branch, value = comparison.branch, comparison.value
    if value is not None and (branch is None or value.step <= branch.step):
        lines.append(f"    first value: line {value.line} {value.name}={value.failing}, passing {value.passing}")
    if branch is not None:
        values = f"; {_both(branch.values)}" if branch.values else ""
        lines.append(f"    first branch: after line {branch.line} {branch.failing}, passing {branch.passing}{values}")
    if comparison.result is not None:
        lines.append(f"    it {_indented(comparison.result[0])}; passing {_indented(comparison.result[1])}")
    return lines


def _both(values: Mapping[str, tuple[str, str]]) -> str:
    return ", ".join(
        f"{name}={cut_line(one, 60)} (passing {cut_line(other, 60)})" for name, (one, other) in values.items()
    )


def _only_in_failing(differences: Differences) -> list[str]:
    facts = [
        f"{name}={_first_values(sides.failing)}"
        + (f" (only passing: {_first_values(sides.passing)})" if sides.passing else "")
        for name, sides in differences.arguments.items()
    ]
    facts += [cut_line(result, 80) for result in differences.results.failing[:_SIDE]]
    if differences.lines.failing:
        facts.append("lines " + ", ".join(map(str, differences.lines.failing[:12])))
    branches = [f"{start}->{end or 'end'}" for start, end in differences.branches.failing[:_SIDE]]
    if branches:
        facts.append("branches " + ", ".join(branches))
    missing = ", ".join(map(str, differences.lines.passing[:12]))
    lines = [f"only in failing tests: {'; '.join(facts)}"] if facts else ["calls in failing tests differ in nothing"]
    return lines + ([f"only in passing tests: lines {missing}"] if missing else [])


def _first_values(values: Sequence[str]) -> str:
    return ", ".join(cut_line(value, 40) for value in values[:_SIDE])
