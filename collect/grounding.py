"""Whether what a pack claims was seen, and whether it holds.

A finding is *quoted* if its quote appears in the observation of the step that it cites. It is *grounded* if its
probe, run again when it was reported, was confirmed and tells failing tests from passing ones. Used where samples are
chosen and where a seeker is scored, so that both mean the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gumshoe.records import ContextPack, Finding, Step

__all__ = ["grounded_share", "is_quoted", "observation_texts", "quoted_share"]


def observation_texts(steps: Iterable[Step]) -> dict[int, str]:
    """What each step's tools answered, joined, by the step's index."""
    return {step.index: "\n".join(observation.text for observation in step.observations) for step in steps}


def is_quoted(finding: Finding, observations: Mapping[int, str]) -> bool:
    """Whether the quote, if not empty, is in the cited step's observation, any white space counting as one space."""
    quote = _normalized(finding.quote)
    return bool(quote) and quote in _normalized(observations.get(finding.step, ""))


def quoted_share(pack: ContextPack, observations: Mapping[int, str]) -> float | None:
    """The share of findings that are quoted; None where there are no findings."""
    if not pack.findings:
        return None
    return sum(is_quoted(finding, observations) for finding in pack.findings) / len(pack.findings)


def grounded_share(pack: ContextPack) -> float | None:
    """The share of findings that are grounded; None if there are no findings or none was ever checked."""
    if all(finding.check is None for finding in pack.findings):
        return None
    return sum(finding.grounded for finding in pack.findings) / len(pack.findings)


def _normalized(text: str) -> str:
    return " ".join(text.split())
