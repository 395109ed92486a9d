"""`whatif`: change a line in memory, run the tests, and see which ones change their outcome.

Predicate switching and value replacement, see `env/inside/runs/change.py`. Nothing in the workspace changes.
"""

from __future__ import annotations

from typing import Annotated

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Edit, LineChange, Observation, TestRun
from gumshoe.tools.base import BaseTool
from gumshoe.tools.calls.schema import list_schema
from gumshoe.tools.runs.forked_runs import KnownRun, run_forked

__all__ = ["MOST_VARIANTS", "SHOW_CHANGES", "Experiment", "WhatIf"]

SHOW_CHANGES = ("whatif", "vary")
"""The tools whose data has the results of changes, under `variants`."""
MOST_VARIANTS = 16

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
        lines = [f"unchanged: {runs.describe()}"]
        lines += [f"{number} {change.describe()}" for number, change in enumerate(runs.changes, start=1)]
        return self.observe("\n".join(lines), runs.as_data())
