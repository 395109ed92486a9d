"""How likely each suspect is before anything was tried: a few facts about it, weighed.

The weights are those of a conditional logit model (D. McFadden, 1974: the culprit is one of the suspects), fitted by
maximum likelihood with an L2 penalty of 1 on 192 synthetic bugs in toolz, itsdangerous, h11, boltons, blinker and
markupsafe, and rounded. No figure should be measured on these packages. A score alone says too much: a function with
a line that only the failing tests run is often where the failure shows, not where it comes from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gumshoe.collect.episode.tool_output import ToolOutput
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.records import DebugFrame, TestOutcome
from gumshoe.tools.eval import failing_outcomes

__all__ = ["ELSEWHERE", "failing_frames", "failing_tests", "prior_weight"]

RANK = -1.0
"""Exponent of the rank in the list of suspects, which takes scores and distances into account."""
SCORE = 0.8
"""Exponent of the score."""
LINES = 0.5
"""Exponent of the number of the most suspicious lines."""
CRASHES = 1.0
"""Logarithm of how many times likelier a function is if all failing tests end in it, as far as the project's code
goes; not with a `raise` or an `assert`, because finding something wrong is no sign of being wrong.
"""
CALLED = 0.75
"""... if its name (for a special method, that of its class) is in the code at which all failing tests end."""
ELSEWHERE = 0.36
"""How likely it is that the bug is in none of the functions shown, compared to one that is first, with a score of 1,
one line, and nothing else to be said about it.
"""
IN_TESTS = -3.0
"""Logarithm of how many times likelier a function is if it is part of the tests: a guess."""


def prior_weight(suspect: Mapping[str, Any], rank: int, failing: Sequence[TestOutcome]) -> float:
    """How likely a suspect is, compared to others.

    Args:
        suspect: as `suspects` shows it.
        rank: its place in the list, from 1.
        failing: the outcomes of the failing tests, as `eval` shows them.
    """
    total = RANK * math.log(rank) + SCORE * math.log(max(suspect["score"], 1e-6))
    total += LINES * math.log(max(1, len(suspect["lines"])))
    if failing:
        total += CRASHES * sum(_crashes_in(suspect, outcome) for outcome in failing) / len(failing)
        total += CALLED * sum(_mentions(outcome, suspect["function"]) for outcome in failing) / len(failing)
    if holds_tests(suspect["path"]):
        total += IN_TESTS
    return math.exp(total)


def failing_tests(outputs: Iterable[ToolOutput]) -> list[TestOutcome]:
    """The outcomes of the failing tests that `eval` has shown."""
    return [outcome for output in outputs if output.tool == "eval" for outcome in failing_outcomes(output.data)]


def failing_frames(outputs: Iterable[ToolOutput]) -> set[tuple[str, int]]:
    """Places in the project, tests left out, that an exception of a failing test went through."""
    return {(frame.path, frame.line) for outcome in failing_tests(outputs) for frame in _own_frames(outcome)}


def _own_frames(outcome: TestOutcome) -> list[DebugFrame]:
    return [frame for frame in outcome.frames if not holds_tests(frame.path)]


def _crashes_in(suspect: Mapping[str, Any], outcome: TestOutcome) -> bool:
    """Whether a failing test's innermost frame in the project is in the suspect and not at a `raise` or an `assert`."""
    last = next(reversed(_own_frames(outcome)), None)
    if last is None or last.code.startswith(("raise", "assert")):
        return False
    return last.path == suspect["path"] and suspect["start"] <= last.line <= suspect["end"]


def _mentions(outcome: TestOutcome, function: str) -> bool:
    """Whether the code of a failing test's frames has the name of a function or, for a special method, that of its
    class.
    """
    *owners, name = function.split(".")
    if name.startswith("__") and owners:
        name = owners[-1]
    return any(re.search(rf"\b{re.escape(name)}\b", frame.code) for frame in outcome.frames)
