"""Context packs: how they are made of what was seen, how they read, and how well their places match the right ones.

| of a pack | |
|---|---|
| made | `build_pack` knows the cause, and names only code that was seen; `pack_arguments` has it reported |
| read | `pack_text`, `with_pack` for a solver, `headline` |
| checked | `is_quoted`, `grounded_share`; filters and scorers ask here, so that the words mean the same for both |
| compared | `lines_overlap` with the lines of the gold patch |

A finding is *quoted* if its quote appears in the observation of the step that it cites. It is *grounded* if its probe,
run again when it was reported, was confirmed and tells failing tests from passing ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from pydantic import JsonValue

from gumshoe.collect.episode.tool_output import NEAR, ToolOutput, first_failure, seen_code, stop_at, telling_values
from gumshoe.collect.prompts import PROMPTS, read_template, render
from gumshoe.records import ContextPack, Finding, Location, Step, Task, WhatIfProbe
from gumshoe.tools.code.functions import Region, region_of
from gumshoe.tools.evidence.facts import normal

MAX_VALUES = 2
"""The most values of variables that a pack which knows the cause cites."""
Gold = Mapping[str, Set[int]]
"""Lines by file."""

_NAME = re.compile(r"[A-Za-z_]\w*")


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
    findings = _value_findings(outputs, cause, code)
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
    margin = len(lines) if whole else NEAR
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


def _functions_around(lines: Mapping[int, str], numbers: Collection[int]) -> frozenset[int]:
    """The lines of the functions that hold some of the lines, and these lines themselves."""
    regions = [region_of(lines, number) for number in numbers if number in lines]
    inside = {line for region in regions if region.symbol for line in range(region.start, region.end + 1)}
    return frozenset({*numbers, *inside})


def _value_findings(
    outputs: Sequence[ToolOutput], cause: Mapping[str, Collection[int]], code: Mapping[str, Mapping[int, str]]
) -> list[Finding]:
    """The values, seen in the function, of names in the lines that matter; if there are none, where the debugger
    stopped.
    """
    for path, numbers in cause.items():
        lines = code.get(path, {})
        names = {name for number in numbers for name in _NAME.findall(lines.get(number, ""))}
        around = _functions_around(lines, numbers)
        for output in outputs:
            stop = stop_at(output, path, around)
            if stop is None:
                continue
            values = telling_values(output, names)[:MAX_VALUES]
            return [fact.finding(f"value of {name} there") for name, fact in values] or [
                fact.finding("the tests run through it") for fact in output.facts if fact.quote == stop
            ][:1]
    return []


def observation_texts(steps: Iterable[Step]) -> dict[int, str]:
    """What each step's tools answered, joined, by the step's index."""
    return {step.index: "\n".join(observation.text for observation in step.observations) for step in steps}


def is_quoted(finding: Finding, observations: Mapping[int, str]) -> bool:
    """Whether the quote, if not empty, is in the cited step's observation, any white space counting as one space."""
    quote = normal(finding.quote)
    return bool(quote) and quote in normal(observations.get(finding.step, ""))


def grounded_share(pack: ContextPack) -> float | None:
    """The share of findings that are grounded; None if there are no findings or none was ever checked."""
    if all(finding.check is None for finding in pack.findings):
        return None
    return sum(finding.grounded for finding in pack.findings) / len(pack.findings)


def with_pack(task: Task, pack: ContextPack | None, template: str | None = None) -> Task:
    """The task with the pack written below its problem statement; unchanged if there is no pack.

    Raises ConfigError if the template is invalid.
    """
    if pack is None:
        return task
    statement = f"{task.problem_statement.strip()}\n\n{pack_text(pack, template=template)}".rstrip()
    return task.model_copy(update={"problem_statement": statement})


def pack_text(pack: ContextPack, *, handed_over: bool = True, template: str | None = None) -> str:
    """The pack as it is read: hypothesis, places, what was seen, what was ruled out.

    Args:
        pack: what was found.
        handed_over: whether it goes to a solver, with the probes, which the solver may run again.
        template: source of a Jinja template with the variables `pack` and `handed_over`; None: the bundled one.
    """
    source = read_template(PROMPTS / "pack.jinja") if template is None else template
    return render(source, pack=pack, handed_over=handed_over)


def headline(pack: ContextPack) -> str:
    """Two lines: the first place, and the words of the finding that says the most about it."""
    first = pack.locations[0]
    lines = f"{first.start}" if first.start == first.end else f"{first.start}-{first.end}"
    place = f"{first.path}:{lines}{f' in {first.symbol}' if first.symbol else ''}"
    best = max(pack.findings, key=_strength, default=None)
    return f"{place}\n{'no evidence' if best is None else best.quote}"


def _strength(finding: Finding) -> tuple[bool, bool, bool]:
    """Confirmed findings that tell failing tests from passing ones come first, those about a change before values."""
    confirmed = finding.check is not None and finding.check.status == "confirmed"
    return finding.grounded, confirmed, isinstance(finding.probe, WhatIfProbe)


@dataclass(frozen=True)
class Overlap:
    """How what was named agrees with what was to be found, as counts."""

    named: int
    gold: int
    shared: int

    @property
    def precision(self) -> float | None:
        """Share of the named lines that are right; None if nothing was named."""
        return self.shared / self.named if self.named else None

    @property
    def recall(self) -> float | None:
        """Share of the gold lines that were named; None if there was nothing to be found."""
        return self.shared / self.gold if self.gold else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both; 0 if nothing was named, None if there was nothing to be found."""
        return 2 * self.shared / (self.named + self.gold) if self.gold else None


def lines_overlap(locations: Iterable[Location], gold: Gold) -> Overlap:
    """How the lines of `locations` agree with `gold`. A line named twice counts once.

    Works on ranges: a location of a billion lines costs no more than one of two.
    """
    ranges: dict[str, list[Location]] = {}
    for location in locations:
        ranges.setdefault(clean_path(location.path), []).append(location)
    shared = sum(
        any(line in place.lines for place in ranges.get(path, ())) for path, lines in gold.items() for line in lines
    )
    named = sum(_union_length(places) for places in ranges.values())
    return Overlap(named, sum(map(len, gold.values())), shared)


def clean_path(path: str) -> str:
    """The path without a leading `./`: `./cart.py` and `cart.py` are one file."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


def _union_length(places: Iterable[Location]) -> int:
    total, reached = 0, 0
    for place in sorted(places, key=lambda place: place.start):
        total += max(0, place.end - max(reached, place.start - 1))
        reached = max(reached, place.end)
    return total
