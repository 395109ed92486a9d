"""`whatif` and `vary`: change lines in memory, run the tests, and see which ones change their outcome.

`whatif` makes the changes that the agent names (predicate switching and value replacement, see
`env/inside/runs/change.py`). `vary` makes the usual small ones at some lines or in the suspects, and shows which of
them let failing tests pass: mutation-based fault localization as a tool (S. Moon et al., Ask the Mutants, ICST 2014).
Nothing in the workspace changes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import JsonValue

from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Edit, LineChange, Location, Observation, TestRun
from gumshoe.text import plural
from gumshoe.tools.base import BaseTool
from gumshoe.tools.calls.schema import list_schema
from gumshoe.tools.code.small_changes import WhatifChange, changes_at
from gumshoe.tools.code.source import read_source
from gumshoe.tools.code.statements import statements_in
from gumshoe.tools.runs.forked_runs import HELPFUL, ChangeResult, ForkedRuns, KnownRun, run_forked
from gumshoe.tools.suspects import shown_suspects

SHOW_CHANGES = ("whatif", "vary")
"""The tools whose data has the results of changes, under `variants`."""
MOST_VARIANTS = 16
"""Changes in one call of `whatif`."""

# Limits of `vary`:
MOST_CHANGES = 64
"""Changes at one place."""
MOST_SECONDS, MOST_RUNS = 15.0, 4.0
"""How long changes are tried at a place: some seconds, or as long as all tests take some times if that is longer."""
MOST_SUSPECTS = 5
SUSPECTS_TIMES = 2.0
"""How much longer changes are tried in all suspects together; in each one, at most half of the time that is left."""
LEAST_SECONDS = 1.0
"""With less time left, nothing more is tried."""
_SHOWN = 3
"""Helpful changes that are shown, best first."""

_Variants = Annotated[
    list[LineChange], list_schema({"path": str, "line": int, "do": str}, optional={"time": int, "when": str})
]


class Experiment(BaseTool):
    """A tool that runs the tests with changes, and knows what `eval` has shown since the last edit."""

    def __init__(self) -> None:
        super().__init__()
        self._known: KnownRun | None = None

    def source(self, workspace: Workspace, path: str) -> str:
        """The text of a file of the code under test. Raises ToolFailure for a test."""
        text = workspace.read_text(path)
        if holds_tests(path):
            raise ToolFailure("bad_arguments", f"{path} is a test: {self.name} changes only the code under test")
        return text

    def on_reset(self, workspace: Workspace) -> None:
        """Forgets what the tests did."""
        self._known = None

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        """Forgets what the tests did."""
        self._known = None

    def on_eval(self, run: TestRun, workspace: Workspace) -> None:
        """Keeps what the tests did."""
        self._known = KnownRun({outcome.id: outcome for outcome in run.outcomes}, run.result.duration_s)

    def snapshot(self, workspace: Workspace) -> object:
        """What the tests did."""
        return self._known

    def restore(self, state: KnownRun | None, workspace: Workspace) -> None:
        """As it was."""
        self._known = state


class WhatIf(Experiment):
    """Runs the tests once unchanged and once for each variant."""

    name = "whatif"

    def run(self, workspace: Workspace, variants: _Variants, quick: bool = False) -> Observation:
        """Run the tests with lines changed in memory, and show which tests then pass or fail.

        Args:
            variants: up to 16 changes, each run on its own: path, line, and what to do there: code to run before the
                line (x = 3), skip, true or false (force an if or while), condition EXPR (for an if or while), iterate
                EXPR (for a for), return EXPR, replace CODE; time: only the n-th time; when: only under this condition
            quick: after `eval`, run only the tests that failed; all tests if one of them then passes
        """
        if not 1 <= len(variants) <= MOST_VARIANTS:
            raise ToolFailure("bad_arguments", f"give 1 to {MOST_VARIANTS} variants, not {len(variants)}")
        for variant in variants:
            self.source(workspace, variant.path)
        runs = run_forked(workspace, variants, known=self._known if quick else None)
        lines = [f"unchanged: {runs.describe()}"]
        lines += [f"{number} {change.describe()}" for number, change in enumerate(runs.changes, start=1)]
        return self.observe("\n".join(lines), runs.as_data())


class Vary(Experiment):
    """Tries changes in batches, the likeliest first, until one makes all failing tests pass and breaks none."""

    name = "vary"

    def __init__(self) -> None:
        super().__init__()
        self._edited = 0

    def run(
        self, workspace: Workspace, path: str | None = None, start: int | None = None, end: int | None = None
    ) -> Observation:
        """Try small changes in memory, one at a time, and show those that let failing tests pass; call eval first.

        Args:
            path: a file of the code under test; without it, the functions that suspects lists first
            start: first line, such as that of a function
            end: last line
        """
        if self._known is None:
            raise ToolFailure("needs_eval", "call eval first: vary runs the tests that failed there")
        if path is None and start is None and end is None:
            return self._in_suspects(workspace, self._known)
        if path is None or start is None or end is None:
            raise ToolFailure("bad_arguments", "give path, start and end, or none of them")
        return self._at(workspace, path, start, end, self._known)

    def _at(self, workspace: Workspace, path: str, start: int, end: int, known: KnownRun) -> Observation:
        found = self._changes(workspace, path, start, end)
        if not found:
            raise ToolFailure("nothing_to_vary", f"no statement at lines {start} to {end} of {path} can be changed")
        runs, results = _try(workspace, found, known, _seconds(known))
        share = f"{len(results)} of " if len(results) < len(found) else ""
        title = f"{share}{plural(len(found), 'change')} tried at lines {start} to {end} of {path}"
        data: dict[str, JsonValue] = {"path": path, "start": start, "end": end}
        return self.observe("\n".join(_described(title, runs, results)), {**data, **runs.as_data(results)})

    def _in_suspects(self, workspace: Workspace, known: KnownRun) -> Observation:
        """Varies one suspect after another until a change fixes everything."""
        suspects = self._suspects()
        until = time.monotonic() + SUSPECTS_TIMES * _seconds(known)
        runs: ForkedRuns | None = None
        results: list[ChangeResult] = []
        tried = 0
        for suspect in suspects[:MOST_SUSPECTS]:
            found = self._changes(workspace, suspect["path"], suspect["start"], suspect["end"])
            tried += 1
            if found:
                runs, new = _try(workspace, found, known, (until - time.monotonic()) / 2)
                results += new
            if _fixes_all(results) or until - time.monotonic() < 2 * LEAST_SECONDS:
                break
        if runs is None:
            raise ToolFailure("nothing_to_vary", "no statement of the first suspects can be changed")
        best = next(iter(helpful(results)), None)
        if best is not None and len(best.passes) < len(best.still_fails):
            best = None  # What helps fewer than half of the failing tests says less than the ranking.
        place = _place(best, suspects)
        title = f"{plural(len(results), 'change')} tried in {plural(tried, 'suspect')}"
        text = [
            *_described(title, runs, results),
            f"Most likely: {json.dumps(Location.model_validate(place).as_argument())}",
            f"To stop there with pdb: {json.dumps({'command': stop_command(place)})}",
        ]
        return self.observe("\n".join(text), {"place": place, **runs.as_data(results)})

    def _suspects(self) -> Sequence[Mapping[str, Any]]:
        """What `suspects` has shown since the last edit. Raises ToolFailure."""
        history = self.events.history[self._edited :]
        listed = [shown_suspects(seen.data) for seen in history if seen.tool == "suspects" and seen.failure is None]
        if not listed:
            raise ToolFailure("needs_suspects", "call suspects first, or give path, start and end")
        suspects = [suspect for suspect in listed[-1] if suspect["lines"]]
        if not suspects:
            raise ToolFailure("nothing_to_vary", "suspects has found no function: give path, start and end")
        return suspects

    def _changes(self, workspace: Workspace, path: str, start: int, end: int) -> list[WhatifChange]:
        """The changes at some lines, the likeliest first. Raises ToolFailure where there are no such lines."""
        lines = dict(enumerate(read_source(self.source(workspace, path)).shown, start=1))
        if not 1 <= start <= end or start not in lines:
            raise ToolFailure("bad_arguments", f"{path} has lines 1 to {len(lines)}, not {start} to {end}")
        statements = statements_in(path, lines, start, end)
        found = [change for statement in statements for change in changes_at(statement)]
        return sorted(found, key=lambda change: -change.power)

    def on_reset(self, workspace: Workspace) -> None:
        """Forgets the tests and the suspects."""
        super().on_reset(workspace)
        self._edited = 0

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        """Forgets the tests and the suspects."""
        super().on_edit(edit, workspace)
        self._edited = len(self.events.history)

    def snapshot(self, workspace: Workspace) -> object:
        """What the tests did, and how much happened before the last edit."""
        return super().snapshot(workspace), self._edited

    def restore(self, state: Any, workspace: Workspace) -> None:
        """As it was."""
        known, self._edited = state
        super().restore(known, workspace)


def _place(best: ChangeResult | None, suspects: Sequence[Mapping[str, Any]]) -> dict[str, JsonValue]:
    """A location for a report: the line of a change that fixes everything, else the function where changes help, else
    the first suspect.
    """
    owner = suspects[0]
    if best is not None:
        in_file = [suspect for suspect in suspects if suspect["path"] == best.path]
        around = [suspect for suspect in in_file if suspect["start"] <= best.line <= suspect["end"]]
        owner = max(around, key=lambda suspect: suspect["start"])
    start, end = owner["start"], owner["end"]
    if best is not None and best.effect == "fixes_all":
        start = end = best.line
    return {"path": owner["path"], "start": start, "end": end, "symbol": owner["function"]}


def stop_command(place: Mapping[str, Any]) -> str:
    """The lines for `pdb` that stop at the first line of a place and show the values there."""
    return f"b {place['path']}:{place['start']}\nc\nlocals"


def _described(title: str, runs: ForkedRuns, results: Sequence[ChangeResult]) -> list[str]:
    shown = [result.describe() for result in helpful(results)[:_SHOWN]]
    return [f"{title}; unchanged, {runs.describe()}", *shown, _rest(results, len(shown))]


def _fixes_all(results: Sequence[ChangeResult]) -> bool:
    return any(result.effect == "fixes_all" for result in results)


def helpful(results: Sequence[ChangeResult]) -> list[ChangeResult]:
    """The changes with the best effect that any of them has for the failing tests."""
    by_effect = {effect: [result for result in results if result.effect == effect] for effect in HELPFUL}
    return next((found for found in by_effect.values() if found), [])


def _seconds(known: KnownRun) -> float:
    """How long changes are tried at a place."""
    return max(MOST_SECONDS, MOST_RUNS * known.duration_s)


def _try(
    workspace: Workspace, found: Sequence[WhatifChange], known: KnownRun, seconds: float
) -> tuple[ForkedRuns, list[ChangeResult]]:
    """The runs of the last batch, and the results of all changes that there was time to try.

    Lines that a batch has shown to be out of the failing tests' reach are not tried again.
    """
    until = time.monotonic() + seconds
    results: list[ChangeResult] = []
    left = list(found)
    while True:
        batch, left = left[:MOST_VARIANTS], left[MOST_VARIANTS:]
        changes = [LineChange(path=change.path, line=change.line, do=change.do) for change in batch]
        runs = run_forked(workspace, changes, known=known, repairs_only=True, seconds=until - time.monotonic())
        results += [result for result in runs.changes if result.tells]
        unreached = {result.line for result in results if result.effect == "unreached"}
        left = [change for change in left if change.line not in unreached]
        is_late = until - time.monotonic() < LEAST_SECONDS
        if not left or is_late or len(results) >= MOST_CHANGES or _fixes_all(results):
            return runs, results


def _rest(results: Sequence[ChangeResult], shown: int) -> str:
    """What is not shown change by change."""
    effects = [result.effect for result in results]
    if not effects:
        return "There was no time to try any: the failing tests run too long."
    if set(effects) == {"invalid"}:
        return f"None of them can be made: {results[0].error}"
    if set(effects) <= {"unreached", "invalid"}:
        return "The failing tests do not reach these lines."
    more = sum(effect in HELPFUL for effect in effects) - shown
    if more:
        return f"{plural(more, 'other change')} let failing tests pass, too, or some of them."
    return "No other change lets a failing test pass." if shown else "No change lets a failing test pass."
