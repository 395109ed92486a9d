"""Ranks functions by how likely each is to hold the bug, by its signals: a model fitted on bugs, mostly people's.

It is a conditional logit model (D. McFadden, 1974: the culprit is one of the candidates), so a candidate's signals
count relative to those of the others. `python -m benchmarks.results.ranker fit` fits it and writes `ranker.json`, which
also says on what it was fitted and how well it did in cross-validation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import TestRun
from gumshoe.tools.ranking.signals import Failures, candidates, is_mentioned, signals_of
from gumshoe.tools.ranking.spectrum import Spectrum, Suspect, read_sources

__all__ = ["probabilities", "rank_by_signals"]

_SEARCHED = 300
"""The most names that definitions are looked for of, and the most definitions."""


def rank_by_signals(workspace: Workspace, ran: TestRun, spectrum: Spectrum) -> list[Suspect]:
    """The functions that failing tests run or mention, likeliest first. `ran` is the run that was followed."""
    failing = [outcome for outcome in ran.outcomes if outcome.failed]
    failures = Failures(failing, read_sources(workspace, (outcome.id.partition("::")[0] for outcome in failing)))
    paths = (*spectrum.lines, *_files_defining(workspace, failures.mentioned))
    functions = candidates(read_sources(workspace, paths), spectrum)
    found = [function for function in functions if function.lines or is_mentioned(function, failures)]
    signals = signals_of(found, spectrum, failures)
    suspects = [
        function.as_suspect(spectrum, probability, known)
        for function, known, probability in zip(found, signals, probabilities(signals), strict=True)
    ]
    return sorted(suspects, key=lambda suspect: (-suspect.score, suspect.path, suspect.span.start))


def _files_defining(workspace: Workspace, names: Iterable[str]) -> list[str]:
    """The files of the project, tests left out, that define one of the names: a call that is refused enters none.

    All names are one pattern, so their number is limited. The longest are kept: short ones, such as `i` or `x`, are
    mostly variables, and a long one is likely to be defined in few places.
    """
    wanted = "|".join(sorted(names, key=len)[-_SEARCHED:])
    if not wanted:
        return []
    try:
        found, _ = workspace.grep(rf"^\s*(?:async\s+def|def|class)\s+(?:{wanted})\b", limit=_SEARCHED)
    except ToolFailure:
        return []
    return [match.path for match in found if match.path.endswith(".py") and not holds_tests(match.path)]


@cache
def _model() -> dict[str, Any]:
    """The share of bugs that are in no candidate, `elsewhere`; by signal its `mean`, `deviation` and `weight`."""
    model: dict[str, Any] = json.loads(files("gumshoe.tools.ranking").joinpath("ranker.json").read_text("utf-8"))
    return model


def probabilities(found: Sequence[Mapping[str, float]], model: Mapping[str, Any] | None = None) -> list[float]:
    """The probability of each candidate by its signals. What they leave of 1 is that the bug is in none of them.

    `model` is as `ranker.json` holds it, and that one unless another is given.
    """
    model = model or _model()
    utilities = [
        sum(of["weight"] * (signals[name] - of["mean"]) / of["deviation"] for name, of in model["signals"].items())
        for signals in found
    ]
    highest = max(utilities, default=0.0)
    weights = [math.exp(utility - highest) for utility in utilities]
    total = sum(weights)
    return [(1 - model["elsewhere"]) * weight / total for weight in weights]
