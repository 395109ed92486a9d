"""What a model reads of a traced function: few calls, few lines, and how they differ from those in passing tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gumshoe.text import cut_line, plural
from gumshoe.tools.code.functions import Function
from gumshoe.tools.tracing.calls import Trace, TracedCall
from gumshoe.tools.tracing.compare import Branch, CallComparison, Differences

__all__ = ["describe_trace"]

_CALLS = 3
_HEAD, _AROUND, _TAIL = 5, 2, 5
_CODE, _VALUES, _LINE = 60, 100, 200
_SIDE = 4


def describe_trace(
    function: Function,
    trace: Trace,
    calls: Sequence[TracedCall],
    comparisons: Sequence[CallComparison | None],
    differences: Differences,
) -> str:
    """How often it was called, what is only so in failing tests, and the most telling calls.

    Args:
        function: what was traced.
        trace: what was seen of it.
        calls: its calls in failing tests, the most telling first; those in passing tests where there are none.
        comparisons: of each call with the nearest passing one.
        differences: between all calls of failing and of passing tests.
    """
    lines = [f"{function.span.name} {function.path}:{function.span.start}-{function.span.end}: {_counts(trace)}"]
    if trace.failing and trace.passing:
        lines += _only_in_failing(differences)
    for index, (call, comparison) in enumerate(list(zip(calls, comparisons, strict=True))[:_CALLS]):
        ordinary = bool(trace.failing) and any(call.is_like(each) for each in trace.passing)
        others = f" and {plural(len(call.also), 'other test')}" if call.also else ""
        lines.append(f"call {call.number} in {call.test}{others}{_times(call)}{_from(call)}")
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
    return title + ended


def _times(call: TracedCall) -> str:
    return f" ({call.count} times)" if call.count > 1 else ""


def _from(call: TracedCall) -> str:
    caller = call.caller
    return f" from {caller.path}:{caller.line} {caller.function}" if caller else ""


def _call(call: TracedCall, comparison: CallComparison | None, function: Function) -> list[str]:
    """Arguments, the lines that matter with what they changed, and the result."""
    steps = call.steps
    chosen = {*range(_HEAD), *range(len(steps) - _TAIL, len(steps))}
    for difference in (comparison.branch, comparison.value) if comparison else ():
        if difference is not None:
            chosen |= set(range(difference.step - _AROUND, difference.step + _AROUND + 1))
    shown = sorted(index for index in chosen | _single_gaps(chosen) if 0 <= index < len(steps))
    lines = _given(call)
    before = -1
    for index in shown:
        if index > before + 1:
            lines.append(f"  [... {plural(index - before - 1, 'line')} ...]")
        lines.append(_step(steps[index], function.source))
        before = index
    return [*lines, f"  {_indented(call.result)}"]


def _briefly(call: TracedCall) -> list[str]:
    return [*_given(call), f"  {_indented(call.result)}"]


def _given(call: TracedCall) -> list[str]:
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
    lines += _branch(branch) if branch is not None else []
    if comparison.result is not None:
        lines.append(f"    it {_indented(comparison.result[0])}; passing {_indented(comparison.result[1])}")
    return lines


def _branch(branch: Branch) -> list[str]:
    values = f"; {_both(branch.values)}" if branch.values else ""
    return [f"    first branch: after line {branch.line} {branch.failing}, passing {branch.passing}{values}"]


def _both(values: Mapping[str, tuple[str, str]]) -> str:
    return ", ".join(
        f"{name}={cut_line(one, 60)} (passing {cut_line(other, 60)})" for name, (one, other) in values.items()
    )


def _only_in_failing(differences: Differences) -> list[str]:
    facts = [
        f"{name}={', '.join(cut_line(value, 40) for value in failing[:_SIDE])}"
        + (f" (only passing: {', '.join(cut_line(value, 40) for value in passing[:_SIDE])})" if passing else "")
        for name, (failing, passing) in differences.arguments.items()
    ]
    facts += [cut_line(result, 80) for result in differences.results[0][:_SIDE]]
    if differences.lines[0]:
        facts.append("lines " + ", ".join(map(str, differences.lines[0][:12])))
    branches = [f"{start}->{end or 'end'}" for start, end in differences.branches[0][:_SIDE]]
    if branches:
        facts.append("branches " + ", ".join(branches))
    missing = ", ".join(map(str, differences.lines[1][:12]))
    lines = [f"only in failing tests: {'; '.join(facts)}"] if facts else ["calls in failing tests differ in nothing"]
    return lines + ([f"only in passing tests: lines {missing}"] if missing else [])
