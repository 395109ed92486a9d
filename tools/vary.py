"""`vary`: try the usual small changes at some lines, and see which ones let failing tests pass.

Mutation-based fault localization as a tool (S. Moon et al., Ask the Mutants, ICST 2014): `small_changes` makes the
changes, and each is run as `whatif` runs one, in memory. Nothing in the workspace changes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Observation
from gumshoe.tools.forked_runs import ForkedRuns, KnownRun, Variant, run_forked
from gumshoe.tools.small_changes import WhatifChange, changes_at
from gumshoe.tools.statements import statements_in
from gumshoe.tools.text import plural
from gumshoe.tools.whatif import (
    MOST_VARIANTS,
    Effect,
    Experiment,
    changes,
    describe_change,
    describe_unchanged,
    effect_of,
    unchanged,
)

__all__ = ["HELPFUL", "MOST_CHANGES", "Vary"]

MOST_CHANGES = 64
MOST_SECONDS = 15.0
"""After so long, no more changes are tried."""
_SHOWN = 3
"""Helpful changes that are shown, best first."""
HELPFUL: tuple[Effect, ...] = ("repairs", "cures", "mixed")
"""What changes may do for failing tests, best first."""


class Vary(Experiment):
    """Tries changes in batches, the likeliest first, until one makes all failing tests pass and breaks none."""

    name = "vary"

    def run(self, workspace: Workspace, path: str, start: int, end: int) -> Observation:
        """Try small changes in memory, one at a time, and show those that let failing tests pass; call eval first.

        Args:
            path: a file of the code under test
            start: first line, such as that of a function
            end: last line
        """
        lines = dict(enumerate(self.source(workspace, path).splitlines(), start=1))
        if not 1 <= start <= end or start not in lines:
            raise ToolFailure("bad_arguments", f"{path} has lines 1 to {len(lines)}, not {start} to {end}")
        if self._known is None:
            raise ToolFailure("needs_eval", "call eval first: vary runs the tests that failed there")
        found = [change for each in statements_in(path, lines, start, end) for change in changes_at(each)]
        if not found:
            raise ToolFailure("nothing_to_vary", f"no statement at lines {start} to {end} of {path} can be changed")
        found.sort(key=lambda change: -change.power)
        runs, results = _try(workspace, found, self._known)
        helpful = _helpful(results)
        share = f"{len(results)} of " if len(results) < len(found) else ""
        title = f"{share}{plural(len(found), 'change')} tried at lines {start} to {end} of {path}"
        shown = [describe_change(result) for result in helpful[:_SHOWN]]
        text = "\n".join([f"{title}; unchanged, {describe_unchanged(runs)}", *shown, _rest(results, len(shown))])
        data: dict[str, JsonValue] = {"path": path, "start": start, "end": end}
        return self.observe(text, {**data, "unchanged": unchanged(runs), "variants": [*results]})


def _helpful(results: Sequence[dict[str, JsonValue]]) -> list[dict[str, JsonValue]]:
    """The changes with the best effect that any of them has for the failing tests."""
    by_effect = {effect: [result for result in results if effect_of(result) == effect] for effect in HELPFUL}
    return next((found for found in by_effect.values() if found), [])


def _try(
    workspace: Workspace, found: Sequence[WhatifChange], known: KnownRun
) -> tuple[ForkedRuns, list[dict[str, JsonValue]]]:
    """The runs of the last batch, and the results of all changes tried.

    Lines that a batch has shown to be out of the failing tests' reach are not tried again.
    """
    until = time.monotonic() + MOST_SECONDS
    results: list[dict[str, Any]] = []
    left = list(found)
    while True:
        batch, left = left[:MOST_VARIANTS], left[MOST_VARIANTS:]
        variants = [Variant(path=one.path, line=one.line, do=one.do) for one in batch]
        runs = run_forked(workspace, variants, known=known, repairs_only=True)
        results += changes(runs, variants)
        unreached = {result["line"] for result in results if effect_of(result) == "unreached"}
        left = [one for one in left if one.line not in unreached]
        is_over = not left or len(results) >= MOST_CHANGES or time.monotonic() > until
        if is_over or any(effect_of(result) == "repairs" for result in results):
            return runs, results


def _rest(results: Sequence[dict[str, JsonValue]], shown: int) -> str:
    """What is not shown change by change."""
    effects = [effect_of(result) for result in results]
    if set(effects) == {"invalid"}:
        return f"None of them can be made: {results[0]['error']}"
    if set(effects) <= {"unreached", "invalid"}:
        return "The failing tests do not reach these lines."
    more = sum(effect in HELPFUL for effect in effects) - shown
    if more:
        return f"{plural(more, 'other change')} let failing tests pass, too, or some of them."
    return "No other change lets a failing test pass." if shown else "No change lets a failing test pass."
