"""`suspects`: which functions may hold the bug, by how the failing tests run them and by what their failures say.

The likeliest come first, as a model that was fitted on bugs, mostly people's, weighs their signals
(`ranking/ranker.py`); or the most suspicious by a single formula of spectrum-based fault localization.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Observation
from gumshoe.text import plural
from gumshoe.tools.base import BaseTool
from gumshoe.tools.ranking.ranker import rank_by_signals
from gumshoe.tools.ranking.spectrum import FORMULAS, Spectrum, Suspect, follow, functions_of, rank

RANKER = "ranker"
_SHOWN = 8
_REASONS = 2
REASONS = {
    "refused": "refused the call",
    "innermost": "the traceback ends here",
    "in_traceback": "in the traceback",
    "in_message": "named in the message",
    "in_line": "named in the failing line",
    "in_test": "named in the test",
}
"""What a signal means that is set, the most telling first: each word costs a small model time."""


class Suspects(BaseTool):
    """Runs the tests once more, following every line, and ranks the functions."""

    name = "suspects"

    def run(self, workspace: Workspace, formula: str = RANKER) -> Observation:
        """Show which functions may hold the bug, likeliest first, with what speaks for each.

        Args:
            formula: ranker for all signals together, or ochiai, dstar, tarantula or barinel alone
        """
        if formula != RANKER and formula not in FORMULAS:
            names = ", ".join([RANKER, *FORMULAS])
            raise ToolFailure("bad_arguments", f"no formula {formula!r}: use one of {names}")
        ran, spectrum = follow(workspace)
        if not spectrum.failed:
            text = "No test fails." if ran.result.exit_code == 0 else "No test was followed to its failure: use eval."
            return self.observe(text, _as_data(spectrum, ()))
        if formula == RANKER:
            ranked, title = rank_by_signals(workspace, ran, spectrum), "run or named by {}, likeliest first"
        else:
            ranked = rank(spectrum, functions_of(workspace, spectrum), FORMULAS[formula])
            title = "run by {}, most suspicious first"
        data = {**_as_data(spectrum, ranked), "formula": formula}
        return self.observe(_describe(spectrum, ranked, title), data, truncated=len(ranked) > _SHOWN)


def _as_data(spectrum: Spectrum, ranked: Sequence[Suspect]) -> dict[str, JsonValue]:
    return {
        "failed": spectrum.failed,
        "passed": spectrum.passed,
        "running": spectrum.running,
        "shown": min(len(ranked), _SHOWN),
        "suspects": [_suspect_data(suspect) for suspect in ranked],
    }


def _suspect_data(suspect: Suspect) -> dict[str, JsonValue]:
    return {
        "path": suspect.path,
        "function": suspect.span.name,
        "start": suspect.span.start,
        "end": suspect.span.end,
        "score": round(suspect.score, 4),
        "lines": list(suspect.lines),
        "distance": suspect.distance,
        "signals": {name: share for name, value in suspect.signals.items() if (share := round(value, 3))},
    }


def describe_suspect(suspect: Mapping[str, Any]) -> str:
    """`start-end path function score`, the line that stands for a suspect in the text."""
    return "{start}-{end} {path} {function} {score:.2f}".format(**suspect)


def shown_suspects(data: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The suspects in the data of an observation that are also in its text."""
    return data.get("suspects", ())[: data.get("shown", 0)]


def _describe(spectrum: Spectrum, ranked: Sequence[Suspect], title: str) -> str:
    tests = plural(spectrum.failed, "failing test")
    if spectrum.running:
        tests += " (1 did not end)"
    if not ranked:
        return f"No function of the project is run by {tests}."
    lines = [f"{describe_suspect(_suspect_data(suspect))}{_reasons(suspect)}" for suspect in ranked[:_SHOWN]]
    more = [f"[... {len(ranked) - _SHOWN} more ...]"] if len(ranked) > _SHOWN else []
    first = json.dumps({"start": ranked[0].span.start, "end": ranked[0].span.end, "path": ranked[0].path})
    return "\n".join(
        [f"{plural(len(ranked), 'function')} {title.format(tests)}", *lines, *more, f"To view the first: {first}"]
    )


def _reasons(suspect: Suspect) -> str:
    """What speaks for a suspect, besides what tests run it."""
    found = [text for name, text in REASONS.items() if suspect.signals.get(name, 0.0) >= 0.5]
    return f" ({', '.join(found[:_REASONS])})" if found else ""
