"""Context packs: how they read, whether their quotes were seen, how well their places match the right ones.

A finding is *quoted* if its quote appears in the observation of the step that it cites. It is *grounded* if its probe,
run again when it was reported, was confirmed and tells failing tests from passing ones. Filters and scorers both ask
here, so that the words mean the same for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from gumshoe.collect.prompts import PROMPTS, read_template, render
from gumshoe.records import ContextPack, Finding, Location, Step, Task, WhatIfProbe
from gumshoe.tools.evidence.facts import normal

__all__ = [
    "Gold",
    "Overlap",
    "clean_path",
    "grounded_share",
    "headline",
    "is_quoted",
    "lines_overlap",
    "observation_texts",
    "pack_text",
    "with_pack",
]

Gold = Mapping[str, Set[int]]
"""Lines by file."""


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
