"""From what was observed to a ContextPack: places in code that was seen, findings quoted word for word.

The scripted teacher hands over with it, and the dataset's seeker view closes the teacher's whole episodes with it, so
that both mean the same. Only observations count: what nobody has seen is in no pack.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from gumshoe.collect.observed import Observed
from gumshoe.records import ContextPack, Finding, Location

__all__ = [
    "Failure",
    "Region",
    "build_pack",
    "failures",
    "functions_around",
    "pack_arguments",
    "region_of",
    "seen_code",
    "stop_at",
    "telling_values",
    "values_at",
]

MARGIN = 2
"""Lines of context on each side of the lines that matter."""
MAX_QUOTE = 60
"""Characters of a quote. What is longer is not cut but left for something shorter: a quote is to be read, and small
models must be able to learn to give it word for word."""
MAX_VALUES = 2
PROGRAM = "the program"
"""Stands for the test where single tests are not known; its lines count from the last."""

_TITLE = re.compile(r"^(?P<path>\S+) \d+-\d+ of \d+ lines?$")
_LINE = re.compile(r"^[* ] *(?P<number>\d+)(?: (?P<text>.*))?$")
_HIT = re.compile(r"^(?P<path>[^\s:]+):(?P<number>\d+)[: ] ?(?P<text>.*)$")
_OPENER = re.compile(r"^(?P<indent>\s*)(?:async\s+def|def|class)\s+(?P<name>\w+)")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>.+)")
_NO_OUTCOMES = re.compile(r"^(?:exit code [1-9]|timed out)")
_NAME = re.compile(r"[A-Za-z_]\w*")

Code = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class Failure:
    """One failing test as `eval` told it: the step, the test's id, the lines below it."""

    step: int
    test: str
    lines: tuple[str, ...]

    @property
    def message(self) -> str:
        """The line that says what is wrong: an error or a comparison, else the first."""
        telling = [line for line in self.lines if re.search(r"\b\w*(?:Error|Exception|Warning)\b|\bassert\b", line)]
        return (telling or list(self.lines) or [""])[0]


@dataclass(frozen=True)
class Region:
    """The function or class around a line, both ends included; `symbol` is None at module level."""

    start: int
    end: int
    symbol: str | None


def seen_code(observations: Iterable[Observed]) -> dict[str, dict[int, str]]:
    """The lines of code that `view` has shown, by path and number."""
    code: dict[str, dict[int, str]] = {}
    for observation in observations:
        first, *rest = observation.text.splitlines() or [""]
        title = _TITLE.match(first) if observation.tool == "view" else None
        for line in rest if title else ():
            match = _LINE.match(line)
            if title and match:
                code.setdefault(title["path"], {})[int(match["number"])] = match["text"] or ""
    return code


def failures(observations: Iterable[Observed]) -> list[Failure]:
    """The failing tests that `eval` has shown, in order."""
    found: list[Failure] = []
    for observation in observations:
        if observation.tool != "eval":
            continue
        summary, *details = observation.text.splitlines() or [""]
        if _NO_OUTCOMES.match(summary):
            lines = tuple(line.strip() for line in reversed(details) if line.strip())
            found.append(Failure(observation.step, PROGRAM, lines))
        for line in details:
            match = _FAILED.match(line)
            if match:
                found.append(Failure(observation.step, match["test"], ()))
            elif line.startswith("  ") and found and found[-1].step == observation.step:
                found[-1] = Failure(found[-1].step, found[-1].test, (*found[-1].lines, line.strip()))
    return found


def region_of(lines: Mapping[int, str], number: int) -> Region:
    """The innermost function or class around a line, told from the indentation of the lines that were seen."""
    names: list[str] = []
    start = number
    top: int | None = None
    own = _OPENER.match(lines.get(number, ""))
    indent = _indent(_solid(lines, number))
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
    observations: Sequence[Observed],
    cause: Mapping[str, Collection[int]],
    hypothesis: str,
    *,
    brief: bool = False,
) -> ContextPack | None:
    """What a seeker hands over that knows the cause from the observations.

    Args:
        observations: what was seen.
        cause: the lines that matter, by path, numbered as in the code that was seen.
        hypothesis: what is wrong.
        brief: only what a very small model can copy: the whole window that was viewed instead of the lines that
            matter, how many tests fail, where the program stopped.

    Returns:
        The pack; None where none of the places was ever seen.
    """
    code = seen_code(observations)
    place = _window if brief else _locations
    locations = [
        location
        for path, numbers in cause.items()
        if path in code
        for location in place(path, code[path], sorted(set(numbers) & set(code[path])))
    ]
    if not locations:
        return None
    functions = {path: functions_around(code.get(path, {}), numbers) for path, numbers in cause.items()}
    if brief:
        findings = [*_count_findings(observations), *_stop_findings(observations, functions)]
    else:
        findings = [*_failure_findings(observations), *_value_findings(observations, cause, functions, code)]
    return ContextPack(locations=tuple(locations), findings=tuple(findings), hypothesis=hypothesis)


def pack_arguments(pack: ContextPack) -> dict[str, JsonValue]:
    """The pack as the arguments of a `report` call, without what is empty."""
    arguments: dict[str, JsonValue] = pack.model_dump(
        mode="json",
        include={"locations", "findings", "hypothesis", "ruled_out", "failing_frame"},
        exclude_defaults=True,
    )
    return {"locations": [], "findings": [], "hypothesis": "", **arguments}


def _locations(path: str, lines: Mapping[int, str], numbers: Sequence[int]) -> list[Location]:
    """One location for each function that holds some of the lines."""
    grouped: dict[Region, list[int]] = {}
    for number in numbers:
        grouped.setdefault(region_of(lines, number), []).append(number)
    return [
        Location(
            path=path,
            start=max(region.start, min(inside) - MARGIN),
            end=max(min(region.end, max(inside) + MARGIN), max(inside)),
            symbol=region.symbol,
        )
        for region, inside in grouped.items()
    ]


def _window(path: str, lines: Mapping[int, str], numbers: Sequence[int]) -> list[Location]:
    """The unbroken run of lines that were seen around the first of the lines that matter."""
    if not numbers:
        return []
    start = end = numbers[0]
    while start - 1 in lines:
        start -= 1
    while end + 1 in lines:
        end += 1
    return [Location(path=path, start=start, end=end)]


def _failure_findings(observations: Sequence[Observed]) -> list[Finding]:
    """The first failure: what is wrong, or which test fails, whichever is short enough to be quoted; else how many."""
    for failure in failures(observations)[:1]:
        told = [failure.message, *([] if failure.test == PROGRAM else [failure.test])]
        quote = next((quote for quote in told if quote and len(quote) <= MAX_QUOTE), None)
        if quote is not None:
            return [Finding(claim=f"{failure.test.rpartition('::')[2]} fails", step=failure.step, quote=quote)]
    return _count_findings(observations)


def _count_findings(observations: Sequence[Observed]) -> list[Finding]:
    """The summary of the first run of the tests that failed."""
    failed = {failure.step for failure in failures(observations)[:1]}
    return [
        Finding(claim="tests fail", step=observation.step, quote=observation.text.partition("\n")[0][:MAX_QUOTE])
        for observation in observations
        if observation.step in failed and observation.tool == "eval"
    ]


def functions_around(lines: Mapping[int, str], numbers: Collection[int]) -> frozenset[int]:
    """The lines of the functions that hold some of the lines, and these lines themselves."""
    regions = [region_of(lines, number) for number in numbers if number in lines]
    inside = {line for region in regions if region.symbol for line in range(region.start, region.end + 1)}
    return frozenset({*numbers, *inside})


def _value_findings(
    observations: Sequence[Observed],
    cause: Mapping[str, Collection[int]],
    functions: Mapping[str, Collection[int]],
    code: Code,
) -> list[Finding]:
    """The values seen in the function that are named in the lines that matter, quoted; where none is, where it
    stopped.
    """
    for path, numbers in cause.items():
        names = {name for number in numbers for name in _NAME.findall(code.get(path, {}).get(number, ""))}
        for observation in observations:
            if stop_at(observation, path, functions[path]) is None:
                continue
            values = telling_values(observation, names)
            return [
                Finding(claim=f"value of {name} there", step=observation.step, quote=line)
                for name, line in values[:MAX_VALUES]
            ] or _stop_findings([observation], {path: functions[path]})
    return []


def _stop_findings(observations: Sequence[Observed], places: Mapping[str, Collection[int]]) -> list[Finding]:
    """Where the debugger stopped at one of the places, first time."""
    for path, numbers in places.items():
        for observation in observations:
            stopped = stop_at(observation, path, numbers)
            if stopped is not None:
                return [Finding(claim="the tests run through it", step=observation.step, quote=stopped)]
    return []


def stop_at(observation: Observed, path: str, numbers: Collection[int]) -> str | None:
    """`path:line`, as the debugger gave it when it stopped at one of the lines, or near it; None where it did not."""
    if observation.tool != "pdb" or not numbers:
        return None
    for line in observation.text.splitlines():
        match = re.match(rf"> ({re.escape(path)}:(\d+))\b", line)
        if match and min(numbers) - MARGIN <= int(match[2]) <= max(numbers) + MARGIN:
            return match[1]
    return None


def values_at(observation: Observed) -> list[tuple[str, str]]:
    """The values that the debugger showed: name and the whole line `name = value`."""
    found = (re.match(r"^\s*([A-Za-z_]\w*) = \S.*$", line) for line in observation.text.splitlines())
    return [(match[1], match[0].strip()) for match in found if match]


def telling_values(observation: Observed, names: Collection[str], longest: int = MAX_QUOTE) -> list[tuple[str, str]]:
    """The values of `names` that fit into a quote, short ones first; an object that a method belongs to tells less
    than any other.
    """
    values = [(name, line) for name, line in values_at(observation) if name in names and len(line) <= MAX_QUOTE]
    return sorted(values, key=lambda value: (value[0] in {"self", "cls"}, len(value[1])))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _solid(lines: Mapping[int, str], number: int) -> str:
    """The line, or the next one that is not blank."""
    while number in lines and not lines[number].strip():
        number += 1
    return lines.get(number, "")


def _end_of(lines: Mapping[int, str], top: int) -> int:
    """The last line of the block that opens at `top`, as far as it was seen; blank lines at its end left out."""
    indent = _indent(lines[top])
    end = number = top
    while number + 1 in lines:
        number += 1
        text = lines[number]
        if text.strip() and _indent(text) <= indent and not text.lstrip().startswith((")", "]", "}")):
            break
        if text.strip():
            end = number
    return end


def _last_seen(lines: Mapping[int, str], number: int) -> int:
    while number + 1 in lines:
        number += 1
    return number
