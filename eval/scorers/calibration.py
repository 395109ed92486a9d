"""Whether a policy is right as often as it says it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean

from gumshoe.eval.records import CalibrationBin
from gumshoe.eval.scorers.localization import first_right_rank, gold_of
from gumshoe.records import Oracle, Score, Trajectory

__all__ = ["Brier", "Confidence", "Top1Hit", "expected_error", "reliability", "stated_confidence"]


def stated_confidence(trajectory: Trajectory) -> float | None:
    """The confidence of the turn that handed the pack over; None where nothing was handed over or stated."""
    if trajectory.context_pack is None or not trajectory.steps:
        return None
    return trajectory.steps[-1].confidence


def top1_hit(trajectory: Trajectory, oracle: Oracle) -> bool | None:
    """Whether the pack's first location holds a gold line; None without a pack, or without gold lines."""
    gold = gold_of(oracle)
    if trajectory.context_pack is None or not gold:
        return None
    return first_right_rank(trajectory.context_pack.locations, gold) == 1


class Confidence:
    """How sure the policy said it was when it handed over."""

    name = "confidence"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's last turn."""
        return Score(name=self.name, value=stated_confidence(trajectory))


class Top1Hit:
    """Whether the first location holds a gold line: what the stated confidence is about."""

    name = "top1_hit"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's pack and the gold patch."""
        right = top1_hit(trajectory, oracle)
        return Score(name=self.name, value=None if right is None else float(right))


class Brier:
    """The squared difference between the confidence stated with the report and whether its first location is right.

    0 is best; always saying 0.5 gives 0.25. None where nothing was reported or no confidence was stated.
    """

    name = "brier"

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """Reads the trajectory's last turn, its pack and the gold patch."""
        confidence, right = stated_confidence(trajectory), top1_hit(trajectory, oracle)
        if confidence is None or right is None:
            return Score(name=self.name, value=None, explanation="no confidence was stated with a report")
        return Score(name=self.name, value=(confidence - right) ** 2, explanation=f"said {confidence:g}, {right=}")


def reliability(pairs: Iterable[tuple[float, bool]], bins: int = 10) -> tuple[CalibrationBin, ...]:
    """The reliability curve of (confidence, right) pairs: bins of equal width, empty ones left out.

    A confidence of 1 belongs to the last bin. The order of the pairs makes no difference.
    """
    grouped: dict[int, list[tuple[float, bool]]] = {}
    for confidence, right in pairs:
        grouped.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, right))
    return tuple(
        CalibrationBin(
            low=number / bins,
            high=(number + 1) / bins,
            confidence=fmean(sorted(confidence for confidence, _ in of_bin)),
            right=sum(right for _, right in of_bin) / len(of_bin),
            count=len(of_bin),
        )
        for number, of_bin in sorted(grouped.items())
    )


def expected_error(curve: Sequence[CalibrationBin]) -> float | None:
    """The expected calibration error: the gap between confidence and truth, weighted by count; None without bins."""
    total = sum(point.count for point in curve)
    return sum(point.count * abs(point.confidence - point.right) for point in curve) / total if total else None
