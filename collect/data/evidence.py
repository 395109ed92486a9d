"""From what was observed to a ContextPack: places in code that was seen, findings that cite facts.

The scripted policies read with it what was seen, and write their reports from it; the dataset's seeker view ends the
teacher's whole episodes with it. So all of them mean the same thing. Only observations count: a pack never holds what
was not seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from gumshoe.collect.episode.tool_output import ToolOutput, shown_code
from gumshoe.records import ContextPack, Fact, Finding, Location, Probe, StopProbe
from gumshoe.text import indentation
from gumshoe.tools.eval import SHOW_OUTCOMES, failing_outcomes
from gumshoe.tools.evidence.facts import EXCEPTION
from gumshoe.tools.runs.tracebacks import telling_line

__all__ = [
    "FailingTest",
    "Region",
    "build_pack",
    "failures",
    "first_failure",
    "functions_around",
    "pack_arguments",
    "region_of",
    "seen_code",
    "stop_at",
    "telling_values",
]

MARGIN = 2
"""Lines of context on each side of the lines that matter."""
MAX_QUOTE = 60
"""The most characters of a value that is cited: findings are meant to be read."""
MAX_VALUES = 2
PROGRAM = "the program"
"""Stands for the test if individual tests are not known."""

_OPENER = re.compile(r"^(?P<indent>\s*)(?:async\s+def|def|class)\s+(?P<name>\w+)")
_NAME = re.compile(r"[A-Za-z_]\w*")

Code = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class FailingTest:
    """One failing test that `eval` has shown: the step, the test's id, what was printed about it."""

    step: int
    test: str
    text: str

    @property
    def message(self) -> str:
        """What is wrong, on one line: a doctest's difference, an error or a comparison, else the first line."""
        return telling_line("" if self.test == PROGRAM else self.test, self.text)


@dataclass(frozen=True)
class Region:
    """The function or class around a line, both ends included; `symbol` is None at module level."""

    start: int
    end: int
    symbol: str | None


def seen_code(outputs: Iterable[ToolOutput]) -> dict[str, dict[int, str]]:
    """The lines of code that `view` has shown, by path and number."""
    code: dict[str, dict[int, str]] = {}
    for output in outputs:
        lines = shown_code(output)
        if lines:
            code.setdefault(output.data["path"], {}).update(lines)
    return code


def failures(outputs: Iterable[ToolOutput]) -> list[FailingTest]:
    """The failing tests that `eval` has shown, in order."""
    return [failure for output in outputs if output.tool in SHOW_OUTCOMES for failure in _failures_of(output)]


def _failures_of(output: ToolOutput) -> Iterable[FailingTest]:
    data = output.data
    for outcome in failing_outcomes(data):
        yield FailingTest(output.step, outcome.id, outcome.message)
    if not data.get("outcomes") and not data.get("passed", True):
        yield FailingTest(output.step, PROGRAM, data.get("output", ""))


def first_failure(outputs: Sequence[ToolOutput]) -> tuple[FailingTest, Fact] | None:
    """The first failing test and the fact that it fails; None if none fails, or no fact says so."""
    failure = next(iter(failures(outputs)), None)
    if failure is None:
        return None
    shown = (fact for output in outputs if output.step == failure.step for fact in output.facts)
    fact = next((fact for fact in shown if _failing_test(fact.probe) == failure.test), None)
    return None if fact is None else (failure, fact)


def _failing_test(probe: Probe) -> str | None:
    if isinstance(probe, StopProbe) and probe.expression == EXCEPTION:
        return probe.test or PROGRAM
    return None


def region_of(lines: Mapping[int, str], number: int) -> Region:
    """The innermost function or class around a line, by the indentation of the lines that were seen."""
    names: list[str] = []
    start = number
    top: int | None = None
    own = _OPENER.match(lines.get(number, ""))
    indent = indentation(_solid(lines, number))
    if own:
        names, top, indent = [own["name"]], number, len(own["indent"])
    for line in range(number - 1, 0, -1):
        if line not in lines:
            break
        start = line
        opener = _OPENER.match(lines[line])
        if opener and len(opener["indent"]) < indent:
            names.append(opener["name"])
            indent = len(opener["indent"])
            top = line if top is None else top
    if top is None:
        return Region(start, _last_seen(lines, number), None)
    return Region(top, _end_of(lines, top), ".".join(reversed(names)))


def build_pack(
    outputs: Sequence[ToolOutput],
    cause: Mapping[str, Collection[int]],
    hypothesis: str,
    *,
    whole_functions: bool = False,
) -> ContextPack | None:
    """The report of a seeker that knows the cause from the observations.

    Args:
        outputs: what was seen.
        cause: the lines that matter, by path, numbered as in the code that was seen.
        hypothesis: what is wrong.
        whole_functions: name the functions that hold the lines that matter, not these lines alone.

    Returns:
        The pack; None if none of the places was ever seen.
    """
    code = seen_code(outputs)
    locations = [
        location
        for path, numbers in cause.items()
        if path in code
        for location in _locations(path, code[path], sorted(set(numbers) & set(code[path])), whole=whole_functions)
    ]
    if not locations:
        return None
    functions = {path: functions_around(code.get(path, {}), numbers) for path, numbers in cause.items()}
    findings = _value_findings(outputs, cause, functions, code)
    if failing := first_failure(outputs):
        test, fact = failing
        findings = [fact.finding(f"{test.test.rpartition('::')[2]} fails"), *findings]
    return ContextPack(locations=tuple(locations), findings=tuple(findings), hypothesis=hypothesis)


def pack_arguments(pack: ContextPack, outputs: Iterable[ToolOutput]) -> dict[str, JsonValue]:
    """The pack as the arguments of a `report` call, without empty optional ones or the end of a location of one line.

    Findings cite facts by their numbers in `outputs`, from which they were made.
    """
    arguments: dict[str, JsonValue] = pack.model_dump(
        mode="json", include={"hypothesis", "ruled_out", "failing_frame"}, exclude_defaults=True
    )
    locations: list[JsonValue] = [location.as_argument() for location in pack.locations]
    numbers = {(fact.step, fact.probe): fact.number for output in outputs for fact in output.facts}
    findings: list[JsonValue] = [
        {"fact": numbers[finding.step, finding.probe], "claim": finding.claim}
        for finding in pack.findings
        if finding.probe is not None
    ]
    return {"locations": locations, "findings": findings, **arguments}


def _locations(path: str, lines: Mapping[int, str], numbers: Sequence[int], *, whole: bool) -> list[Location]:
    """One location for each function with some of the lines: these lines with a margin, or all that was seen of it."""
    margin = len(lines) if whole else MARGIN
    grouped: dict[Region, list[int]] = {}
    for number in numbers:
        grouped.setdefault(region_of(lines, number), []).append(number)
    return [
        Location(
            path=path,
            start=max(region.start, min(inside) - margin),
            end=max(min(region.end, max(inside) + margin), max(inside)),
            symbol=region.symbol,
        )
        for region, inside in grouped.items()
    ]


def functions_around(lines: Mapping[int, str], numbers: Collection[int]) -> frozenset[int]:
    """The lines of the functions that hold some of the lines, and these lines themselves."""
    regions = [region_of(lines, number) for number in numbers if number in lines]
    inside = {line for region in regions if region.symbol for line in range(region.start, region.end + 1)}
    return frozenset({*numbers, *inside})


def _value_findings(
    outputs: Sequence[ToolOutput],
    cause: Mapping[str, Collection[int]],
    functions: Mapping[str, Collection[int]],
    code: Code,
) -> list[Finding]:
    """The values, seen in the function, of names in the lines that matter; if there are none, where the debugger
    stopped.
    """
    for path, numbers in cause.items():
        names = {name for number in numbers for name in _NAME.findall(code.get(path, {}).get(number, ""))}
        for output in outputs:
            stop = stop_at(output, path, functions[path])
            if stop is None:
                continue
            values = telling_values(output, names)[:MAX_VALUES]
            return [fact.finding(f"value of {name} there") for name, fact in values] or [
                fact.finding("the tests run through it") for fact in output.facts if fact.quote == stop
            ][:1]
    return []


def stop_at(output: ToolOutput, path: str, numbers: Collection[int]) -> str | None:
    """`path:line` where the debugger stopped at one of the lines, or near it; None if it did not."""
    if output.tool != "pdb" or not numbers:
        return None
    for result in output.data.get("results", ()):
        stop = result.get("stop") or {}
        if stop.get("path") == path and min(numbers) - MARGIN <= stop["line"] <= max(numbers) + MARGIN:
            return f"{path}:{stop['line']}"
    return None


def telling_values(output: ToolOutput, names: Collection[str] | None = None) -> list[tuple[str, Fact]]:
    """The values of variables that the debugger showed: name and fact, short ones first.

    `self` and `cls` come last, as they tell the least.

    Args:
        output: the debugger's answer.
        names: the variables; by default, all.
    """
    values = [
        (name, fact)
        for fact in output.facts
        for name in [_expression(fact.probe)]
        if name.isidentifier() and (names is None or name in names) and len(fact.quote) <= MAX_QUOTE
    ]
    return sorted(values, key=lambda value: (value[0] in {"self", "cls"}, len(value[1].quote)))


def _expression(probe: Probe) -> str:
    return probe.expression if isinstance(probe, StopProbe) else ""


def _solid(lines: Mapping[int, str], number: int) -> str:
    """The line, or the next one that is not blank."""
    while number in lines and not lines[number].strip():
        number += 1
    return lines.get(number, "")


def _end_of(lines: Mapping[int, str], top: int) -> int:
    """The last line of the block that opens at `top`, as far as it was seen; blank lines at its end left out."""
    indent = indentation(lines[top])
    end = number = top
    while number + 1 in lines:
        number += 1
        text = lines[number]
        if text.strip() and indentation(text) <= indent and not text.lstrip().startswith((")", "]", "}")):
            break
        if text.strip():
            end = number
    return end


def _last_seen(lines: Mapping[int, str], number: int) -> int:
    while number + 1 in lines:
        number += 1
    return number
