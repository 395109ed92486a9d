"""`whatif`: change a line in memory, run the tests, and see which ones change their outcome.

Predicate switching and value replacement, see `env/inside/runs/change.py`. Nothing in the workspace changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Edit, Observation, TestOutcome, TestRun
from gumshoe.text import cut_line, plural
from gumshoe.tools.base import BaseTool
from gumshoe.tools.calls.schema import list_schema
from gumshoe.tools.runs.forked_runs import ForkedRuns, ForkOutcome, KnownRun, Variant, run_forked

__all__ = [
    "MOST_VARIANTS",
    "SHOW_CHANGES",
    "Effect",
    "Experiment",
    "WhatIf",
    "changes",
    "describe_change",
    "describe_effect",
    "describe_unchanged",
    "effect_of",
    "unchanged",
]

SHOW_CHANGES = ("whatif", "vary")
"""The tools whose data has the results of changes, under `variants`."""
Effect = Literal["repairs", "cures", "mixed", "nothing", "unreached", "invalid"]
"""What a change does to the failing tests: all pass and no other test breaks; some pass; some pass and others break."""

MOST_VARIANTS = 16
_NAMES = 80
"""Characters of test names that are shown of one list, so that all variants fit into one answer."""
_PASSED = ("passed", "xfailed")


_Variants = Annotated[
    list[Variant], list_schema({"path": str, "line": int, "do": str}, optional={"time": int, "when": str})
]


class Experiment(BaseTool):
    """A tool that runs the tests with changes, and knows what `eval` has shown since the last edit."""

    def __init__(self) -> None:
        super().__init__()
        self._known: KnownRun | None = None

    def source(self, workspace: Workspace, path: str) -> str:
        """The text of a file of the code under test. Raises ToolFailure for a test."""
        # Here, because an import of gumshoe.env brings Gymnasium.
        from gumshoe.env.inside.programs.project import holds_tests

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
        results = changes(runs, variants)
        lines = [f"unchanged: {describe_unchanged(runs)}"]
        lines += [f"{number} {describe_change(result)}" for number, result in enumerate(results, start=1)]
        return self.observe("\n".join(lines), {"unchanged": unchanged(runs), "variants": results})


def changes(runs: ForkedRuns, variants: Sequence[Variant]) -> list[dict[str, JsonValue]]:
    """Each variant, how its run ended, and the tests whose outcome differs from the unchanged run."""
    before, *outcomes = map(_outcomes, runs.outcomes)
    return [
        _result(variant, answer, before, found, runs.answers[0])
        for variant, answer, found in zip(variants, runs.answers[1:], outcomes, strict=True)
    ]


def _outcomes(outcomes: Mapping[str, TestOutcome]) -> dict[str, JsonValue]:
    """Test to outcome."""
    return {test: outcome.outcome for test, outcome in outcomes.items()}


def _result(
    variant: Variant,
    answer: ForkOutcome,
    before: Mapping[str, JsonValue],
    after: Mapping[str, JsonValue],
    unchanged: ForkOutcome,
) -> dict[str, JsonValue]:
    over = answer.exit_code is not None
    late = "timed out before this took effect" if not over and not answer.hits else None
    return {
        **variant.model_dump(),
        "error": answer.error or late,
        "timed_out": answer.error is None and not over,
        "hits": answer.hits,
        "whole": answer.whole,
        "exit_code": answer.exit_code,
        "unchanged_exit_code": unchanged.exit_code,
        "passes": [test for test, outcome in after.items() if outcome in _PASSED and before.get(test) not in _PASSED],
        "fails": [
            test
            for test, outcome in before.items()
            if outcome in _PASSED and over and answer.whole and after.get(test, "missing") not in (*_PASSED, "skipped")
        ],
        "still_fails": [
            test for test, outcome in before.items() if outcome in ("failed", "error") and after.get(test) == outcome
        ],
    }


def unchanged(runs: ForkedRuns) -> dict[str, JsonValue]:
    """How the unchanged tests ended."""
    return {"exit_code": runs.answers[0].exit_code, "outcomes": _outcomes(runs.outcomes[0])}


def describe_unchanged(runs: ForkedRuns) -> str:
    """The same in a few words."""
    outcomes = _outcomes(runs.outcomes[0])
    if not outcomes:
        code = runs.answers[0].exit_code
        return "timed out" if code is None else f"exit code {code}"
    failing = sum(outcome in ("failed", "error") for outcome in outcomes.values())
    return f"{failing} of {plural(len(outcomes), 'test')} fail"


def effect_of(result: Mapping[str, Any]) -> Effect:
    """What a change did, from its result in the data of an observation."""
    if result["error"]:
        return "invalid"
    if not result["hits"]:
        return "unreached"
    if result["passes"] and not result["fails"]:
        return "cures" if result["still_fails"] else "repairs"
    if result["passes"]:
        return "mixed"
    if result["exit_code"] == 0 and result["unchanged_exit_code"] != 0:
        return "repairs"
    return "nothing"


def describe_change(result: Mapping[str, Any]) -> str:
    """A change and what it does to the tests, on one line."""
    variant = Variant.model_validate({name: result[name] for name in Variant.model_fields})
    return f"{variant.describe()}: {describe_effect(result)}"


def describe_effect(result: Mapping[str, Any]) -> str:
    """What a variant does to the tests, in a few words."""
    if result["error"]:
        return str(result["error"])
    if not result["hits"]:
        return _unreached(result)
    changed = [(result[key], words) for key, words in _WORDS.items() if result[key]]
    parts = [f"{plural(len(tests), 'test')} now {words[len(tests) > 1]}: {_names(tests)}" for tests, words in changed]
    if result["timed_out"]:
        parts.append("timed out")
    if not parts and result["exit_code"] != result["unchanged_exit_code"]:
        parts.append(f"exit code {result['exit_code']}")
    return "; ".join(parts) or ("no test changes" if result["whole"] else "no failing test passes")


def _unreached(variant: Mapping[str, Any]) -> str:
    if variant["when"]:
        return "took no effect: the line was not reached, or its condition was never true there or raised an error"
    return "took no effect: the line was not reached that often" if variant["time"] else "never reached"


_WORDS = {"passes": ("passes", "pass"), "fails": ("fails", "fail")}
"""What is said of the tests of a list: of one, of several."""


def _names(tests: Sequence[str]) -> str:
    names = [cut_line(test, _NAMES) for test in tests]
    shown = max(1, sum(length <= _NAMES for length in accumulate(map(len, names))))
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
