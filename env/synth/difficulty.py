"""How far the symptom of a bug is from its cause."""

from __future__ import annotations

from collections.abc import Mapping

from gumshoe.env.synth.bug import Bug, CodePosition
from gumshoe.env.synth.verify import FailedTest

__all__ = ["DIFFICULTIES", "difficulty"]

DIFFICULTIES = ("same_function", "other_function", "other_file")


def difficulty(bug: Bug, failures: Mapping[str, FailedTest]) -> str:
    """Where the cause is, seen from the innermost frame of the traceback; the nearest of all counts.

    `same_function`: the traceback ends in the function with the cause. `other_function`: in the same file.
    `other_file`: elsewhere, such as in the assertion of a test.
    """
    distances = (_distance(place, failure) for place in bug.places for failure in failures.values())
    return min(distances, key=DIFFICULTIES.index)


def _distance(place: CodePosition, failure: FailedTest) -> str:
    if not failure.frames:
        return "other_file"
    path, _, function = failure.frames[-1]
    if path != place[0]:
        return "other_file"
    return "same_function" if function == place[1].rpartition(".")[2] else "other_function"
