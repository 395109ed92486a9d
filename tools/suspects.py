"""`suspects`: which functions the failing tests run, and the passing ones do not.

Spectrum-based fault localisation. A line that `f` of `F` failing tests and `p` passing tests run is suspicious by the
Ochiai coefficient, `f / sqrt(F * (f + p))`: 1 where all failing tests and no passing ones run it. (R. Abreu,
P. Zoeteweij, A. van Gemund: On the Accuracy of Spectrum-based Fault Localization, TAIC PART 2007.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, Field, JsonValue, ValidationError

from gumshoe.errors import ToolFailure
from gumshoe.protocols import TestRun, Workspace
from gumshoe.records import Observation
from gumshoe.tools.base import BaseTool
from gumshoe.tools.source import read_source
from gumshoe.tools.spans import Span, spans
from gumshoe.tools.text import plural

__all__ = ["Spectrum", "Suspect", "Suspects", "ochiai", "rank"]

_SHOWN = 8
_RECORD = "lines.json"

Count = Annotated[int, Field(ge=0)]


class Spectrum(BaseModel):
    """What the plugin `gumshoe_suspects` wrote.

    `lines` holds, by path and line, how many failing and passing tests ran it, and when the first failing one did so
    last (0: not at all).
    """

    failed: Count
    passed: Count
    lines: dict[str, dict[int, tuple[Count, Count, Count]]]


@dataclass(frozen=True)
class Suspect:
    """A function that failing tests run: its lines, the most suspicious of them, and how suspicious these are."""

    path: str
    span: Span
    score: float
    lines: tuple[int, ...]
    last: int


class Suspects(BaseTool):
    """Runs the tests once more, following every line, and ranks the functions."""

    name = "suspects"

    def run(self, workspace: Workspace) -> Observation:
        """Show which functions failing tests run more than passing ones, most suspicious first."""
        run, spectrum = _measure(workspace)
        if not spectrum.failed:
            text = "No test fails." if run.passed else "No test was followed to its failure: use eval."
            return self.observe(text, _as_data(spectrum, ()))
        ranked = rank(spectrum, _functions(workspace, spectrum))
        return self.observe(_describe(spectrum, ranked), _as_data(spectrum, ranked), truncated=len(ranked) > _SHOWN)


def ochiai(failing: int, passing: int, failed: int) -> float:
    """How suspicious a line is, 0 to 1.

    Args:
        failing: failing tests that run it.
        passing: passing tests that run it.
        failed: all failing tests.
    """
    return failing / math.sqrt(failed * (failing + passing)) if failing else 0.0


def rank(spectrum: Spectrum, functions: Mapping[str, Sequence[Span]]) -> list[Suspect]:
    """The functions that failing tests run, most suspicious first.

    A function is as suspicious as its most suspicious line. Among equals, one with more such lines comes first, then
    the one that ran last before the failure.

    Args:
        spectrum: what ran.
        functions: by path, outer before inner; a line belongs to the innermost one.
    """
    found = [
        suspect
        for path, spans_there in functions.items()
        for suspect in _suspects_of(path, spans_there, spectrum)
        if suspect.score
    ]
    return sorted(found, key=lambda suspect: (-suspect.score, -len(suspect.lines), -suspect.last))


def _suspects_of(path: str, functions: Sequence[Span], spectrum: Spectrum) -> Iterator[Suspect]:
    lines: dict[Span, dict[int, tuple[int, int, int]]] = {}
    for line, counts in spectrum.lines[path].items():
        around = next((span for span in reversed(functions) if span.start <= line <= span.end), None)
        if around is not None:
            lines.setdefault(around, {})[line] = counts
    for span, counted in lines.items():
        scores = {line: ochiai(failing, passing, spectrum.failed) for line, (failing, passing, _) in counted.items()}
        worst = max(scores.values())
        yield Suspect(
            path=path,
            span=span,
            score=worst,
            lines=tuple(sorted(line for line, score in scores.items() if score == worst)),
            last=max(order for _, _, order in counted.values()),
        )


def _measure(workspace: Workspace) -> tuple[TestRun, Spectrum]:
    """Runs the tests under the plugin. Raises ToolFailure where that tells nothing."""
    record = f"{workspace.sandbox.support}/{_RECORD}"
    run = workspace.run_tests(plugins={"gumshoe_suspects": {"GUMSHOE_LINES": record}})
    try:
        written = json.loads(workspace.sandbox.read_file(record, inside=False))
        return run, Spectrum.model_validate(written)
    except (OSError, ValueError, ValidationError):
        why = "they ran too long" if run.result.timed_out else "they are not run by pytest in one process"
        raise ToolFailure("no_spectrum", f"The tests could not be followed: {why}. Use eval and pdb.") from None


def _functions(workspace: Workspace, spectrum: Spectrum) -> dict[str, tuple[Span, ...]]:
    """The functions of the files that ran and that the agent may see."""
    functions: dict[str, tuple[Span, ...]] = {}
    for path in sorted(spectrum.lines):
        try:
            source = "\n".join(read_source(workspace.read_text(path)).shown)
        except ToolFailure:
            continue
        functions[path] = tuple(span for span in spans(source) or () if not span.is_class)
    return functions


def _as_data(spectrum: Spectrum, ranked: Sequence[Suspect]) -> dict[str, JsonValue]:
    return {
        "failed": spectrum.failed,
        "passed": spectrum.passed,
        "suspects": [
            {
                "path": suspect.path,
                "function": suspect.span.name,
                "start": suspect.span.start,
                "end": suspect.span.end,
                "score": round(suspect.score, 4),
                "lines": list(suspect.lines),
            }
            for suspect in ranked
        ],
    }


def _describe(spectrum: Spectrum, ranked: Sequence[Suspect]) -> str:
    tests = plural(spectrum.failed, "failing test")
    if not ranked:
        return f"No function of the project is run by {tests}."
    lines = [
        f"{suspect.span.start}-{suspect.span.end} {suspect.path} {suspect.span.name} {suspect.score:.2f}"
        for suspect in ranked[:_SHOWN]
    ]
    more = [f"[... {len(ranked) - _SHOWN} more ...]"] if len(ranked) > _SHOWN else []
    first = json.dumps({"start": ranked[0].span.start, "end": ranked[0].span.end, "path": ranked[0].path})
    title = f"{plural(len(ranked), 'function')} run by {tests}, most suspicious first"
    return "\n".join([title, *lines, *more, f"To view the first: {first}"])
