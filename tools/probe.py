"""`probe`: look at values where the program stops, in all tests at once; or run the probes of a report again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Check, Observation, Probe, StopProbe, TestOutcome, WhatIfProbe
from gumshoe.text import cut_line
from gumshoe.tools.base import BaseTool
from gumshoe.tools.calls.schema import list_schema
from gumshoe.tools.evidence.checks import ProbeReading, describe_place, is_then, run_probes

__all__ = ["MOST_AT_ONCE", "ProbeTool"]

MOST_AT_ONCE = 16
_VALUES = 6
_VALUE = 120
_KEPT = 40


class _Argument(BaseModel):
    """A probe as a model writes it, or copies it from a report. Without a value or an effect it is a question."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["stop", "whatif"] | None = None
    event: Literal["line", "return", "failure"] = "line"
    path: str = Field(min_length=1)
    line: int = Field(ge=1, lt=1 << 31)
    time: int | None = Field(default=None, ge=1, lt=1 << 31)
    test: str | None = None
    up: int = Field(default=0, ge=0, lt=1 << 31)
    expression: str = ""
    value: str | None = None
    do: str | None = None
    when: str | None = None
    effect: str = ""

    def to_record(self) -> Probe:
        if self.do is not None:
            return WhatIfProbe(
                path=self.path, line=self.line, do=self.do, time=self.time, when=self.when, effect=self.effect
            )
        return StopProbe(
            event=self.event,
            path=self.path,
            line=self.line,
            time=self.time,
            test=self.test,
            up=self.up,
            expression=self.expression,
            value=self.value or "",
        )


_Probes = Annotated[
    list[_Argument],
    list_schema({"path": str, "line": int, "expression": str}, optional={"time": int, "test": str, "value": str}),
]


class ProbeTool(BaseTool):
    """Runs the tests once, and looks at all places as they come by. Nothing stops, and nothing changes."""

    name = "probe"

    def run(self, workspace: Workspace, probes: _Probes) -> Observation:
        """Show values of expressions at places in the code, in failing and passing tests, or check probes of a report.

        Args:
            probes: up to 16: path, line, expression; time: only the n-th time in a test; test: only this one; value:
                what it should be. A probe from a report can be given as it is
        """
        if not 1 <= len(probes) <= MOST_AT_ONCE:
            raise ToolFailure("bad_arguments", f"give 1 to {MOST_AT_ONCE} probes, not {len(probes)}")
        for probe in probes:
            workspace.read_text(probe.path)
        records = [probe.to_record() for probe in probes]
        probed = run_probes(workspace, records)
        asked = [probe.value is None and probe.do is None and bool(probe.expression) for probe in probes]
        lines = [
            f"{number} {describe_place(record)}: "
            + (_values(record, looks, probed.outcomes) if question else _marked(check))
            for number, (record, question, looks, check) in enumerate(
                zip(records, asked, probed.looks, probed.checks, strict=True), start=1
            )
        ]
        checks = [
            None if question else check.model_dump(mode="json")
            for question, check in zip(asked, probed.checks, strict=True)
        ]
        data = {
            "probes": [record.model_dump(mode="json") for record in records],
            "checks": checks,
            "looks": [[look.model_dump(mode="json") for look in looks[:_KEPT]] for looks in probed.looks],
        }
        return self.observe("\n".join(lines), data)


def _values(probe: Probe, looks: Sequence[ProbeReading], outcomes: Mapping[str, TestOutcome]) -> str:
    """What the expression is, by test: failing ones first, each value of a test once."""
    assert isinstance(probe, StopProbe)
    about = [each for each in looks if each.problem is None and is_then(probe, each)]
    if not about:
        problem = next((each.problem for each in looks if each.problem), None)
        return problem or "no test stops there"
    ordered = sorted(about, key=lambda each: _passes(each, outcomes))
    texts = dict.fromkeys(
        f"{each.error or f'{probe.expression} = {each.values[0]}'} in {_named(each, outcomes)}" for each in ordered
    )
    shown = [cut_line(text, _VALUE) for text in list(texts)[:_VALUES]]
    more = [f"and {len(texts) - _VALUES} more"] if len(texts) > _VALUES else []
    return "; ".join([*shown, *more])


def _passes(seen: ProbeReading, outcomes: Mapping[str, TestOutcome]) -> bool:
    outcome = outcomes.get(seen.test or "")
    return outcome is not None and not outcome.failed


def _named(seen: ProbeReading, outcomes: Mapping[str, TestOutcome]) -> str:
    outcome = outcomes.get(seen.test or "")
    return f"{seen.test or 'the program'}{f' ({outcome.outcome})' if outcome else ''}"


def _marked(check: Check) -> str:
    telling = ", tells nothing" if check.telling is False else ""
    return f"{check.status}{telling}{f': {check.note}' if check.note else ''}"
