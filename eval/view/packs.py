"""A ContextPack held against the gold patch and against the episode it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from gumshoe.collect.packs import is_quoted, observation_texts
from gumshoe.eval.scorers.localization import changed_lines, clean_path
from gumshoe.records import ContextPack, Finding, Location, Step
from gumshoe.tools.probe_checks import describe_place

__all__ = ["pack_of"]


def pack_of(pack: ContextPack | None, steps: Sequence[Step], gold: str | None) -> dict[str, Any] | None:
    """What the player shows of a pack; None where nothing was reported.

    `hit` of a location is None where the gold patch is not known; `missed` are the lines of the gold patch that no
    location holds.
    """
    if pack is None:
        return None
    wanted = changed_lines(gold)
    texts = observation_texts(steps)
    return {
        "hypothesis": pack.hypothesis,
        "locations": [
            {**place.model_dump(mode="json"), "hit": None if wanted is None else _hits(place, wanted)}
            for place in pack.locations
        ],
        "findings": [
            {**finding.model_dump(mode="json"), **_marks(finding, texts), "known": finding.step in texts}
            for finding in pack.findings
        ],
        "ruled_out": [item.model_dump(mode="json") for item in pack.ruled_out],
        "failing_frame": pack.failing_frame.model_dump(mode="json") if pack.failing_frame else None,
        "missed": _missed(pack, wanted),
        "reproduction": _reproduction(pack, steps),
    }


def _marks(finding: Finding, texts: Mapping[int, str]) -> dict[str, Any]:
    """Whether it is quoted and grounded, and where its probe looks; `grounded` is None where nothing was ever run."""
    return {
        "quoted": is_quoted(finding, texts),
        "grounded": None if finding.check is None else finding.grounded,
        "place": None if finding.probe is None else describe_place(finding.probe),
    }


def _reproduction(pack: ContextPack, steps: Sequence[Step]) -> dict[str, Any] | None:
    """The test that was written from the issue, and where it was placed; None if there is none."""
    if not pack.reproduction:
        return None
    written = (seen.data.get("path") for step in steps for seen in step.observations if seen.tool == "reproduce")
    return {"path": next((str(path) for path in written if path), ""), "code": pack.reproduction}


def _hits(place: Location, wanted: Mapping[str, Set[int]]) -> bool:
    return any(line in place.lines for line in wanted.get(clean_path(place.path), ()))


def _missed(pack: ContextPack, wanted: Mapping[str, Set[int]] | None) -> list[dict[str, Any]]:
    return [
        {"path": path, "line": line}
        for path, lines in sorted((wanted or {}).items())
        for line in sorted(lines)
        if not any(line in place.lines for place in pack.locations if clean_path(place.path) == path)
    ]
