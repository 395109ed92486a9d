"""`probe`: look at values where the program stops, in all tests at once; or run the probes of a report again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import BeforeValidator

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Check, Observation, Probe, StopProbe, TestOutcome
from gumshoe.text import cut_line
from gumshoe.tools.base import BaseTool
from gumshoe.tools.calls.schema import list_schema
from gumshoe.tools.evidence.checks import ProbeReading, describe_place, is_at_time, run_probes

MOST_AT_ONCE = 16
_VALUES = 6
_VALUE = 120
_KEPT = 40


def _typed(probe: object) -> object:
    """A probe as a model writes it or copies it from a report: without nulls, with the kind that its fields tell."""
    if not isinstance(probe, Mapping):
        return probe
    given = {name: value for name, value in cast("Mapping[str, object]", probe).items() if value is not None}
    return {"kind": "whatif", "effect": "", **given} if "do" in given else {"kind": "stop", **given}


_Probes = Annotated[
    list[Annotated[Probe, BeforeValidator(_typed)]],
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
        outcomes, results = run_probes(workspace, probes)
        asked = [bool(getattr(probe, "expression", "")) and "value" not in probe.model_fields_set for probe in probes]
        lines = [
            f"{number} {describe_place(probe)}: "
            + (_values(probe, result.readings, outcomes) if question else _marked(result.check))
            for number, (probe, question, result) in enumerate(zip(probes, asked, results, strict=True), start=1)
        ]
        checks = [
            None if question else result.check.model_dump(mode="json")
            for question, result in zip(asked, results, strict=True)
        ]
        data = {
            "probes": [probe.model_dump(mode="json") for probe in probes],
            "checks": checks,
            "looks": [[reading.model_dump(mode="json") for reading in result.readings[:_KEPT]] for result in results],
        }
        return self.observe("\n".join(lines), data)


def _values(probe: Probe, readings: Sequence[ProbeReading], outcomes: Mapping[str, TestOutcome]) -> str:
    """What the expression is, by test: failing ones first, each value of a test once."""
    assert isinstance(probe, StopProbe)
    about = [reading for reading in readings if reading.problem is None and is_at_time(probe, reading)]
    if not about:
        problem = next((reading.problem for reading in readings if reading.problem), None)
        return problem or "no test stops there"
    ordered = sorted(about, key=lambda reading: _passes(reading, outcomes))
    texts = dict.fromkeys(
        f"{reading.error or f'{probe.expression} = {reading.values[0]}'} in {_named(reading, outcomes)}"
        for reading in ordered
    )
    shown = [cut_line(text, _VALUE) for text in list(texts)[:_VALUES]]
    more = [f"and {len(texts) - _VALUES} more"] if len(texts) > _VALUES else []
    return "; ".join([*shown, *more])


def _passes(reading: ProbeReading, outcomes: Mapping[str, TestOutcome]) -> bool:
    outcome = outcomes.get(reading.test or "")
    return outcome is not None and not outcome.failed


def _named(reading: ProbeReading, outcomes: Mapping[str, TestOutcome]) -> str:
    outcome = outcomes.get(reading.test or "")
    return f"{reading.test or 'the program'}{f' ({outcome.outcome})' if outcome else ''}"


def _marked(check: Check) -> str:
    telling = ", tells nothing" if check.telling is False else ""
    return f"{check.status}{telling}{f': {check.note}' if check.note else ''}"
