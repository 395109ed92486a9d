"""Runs probes in one new run of the tests, and says of each whether it holds, and whether that tells anything.

A probe tells something when failing tests differ from passing ones in it. One that stops in passing tests alone, or
whose value passing tests have there as well, tells nothing; neither does a change after which no failing test passes,
or others fail that the quote does not mention.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Check, Finding, Probe, StopProbe, TestOutcome, WhatIfProbe
from gumshoe.text import cut_line, plural
from gumshoe.tools.evidence.facts import EXCEPTION, RETURNED, normal
from gumshoe.tools.runs.forked_runs import ChangeResult, ForkedRuns, run_forked
from gumshoe.tools.runs.tracebacks import doctest_place
from gumshoe.tools.whatif import MOST_VARIANTS

MOST_PROBES = 200
"""Probes of one run that stop the program."""
MOST_READINGS = 20_000
_NO_PROBE = "it has no probe"
_OTHER_PROBE = "its probe looks for something else than its quote says"
_LOST = "too deep a recursion, or the program itself, ended the tracing of the test"
_NOTE = 160
_ID = re.compile(r"(?<![\w.])\d{14,15}(?![\w.])")
_ADDRESSES = range(0x5500_0000_0000, 0x8000_0000_0000)
"""Where Linux places the objects of a program, on 64-bit processors."""

Short = Annotated[str, Field(max_length=10_000)]


class ProbeReading(BaseModel):
    """What one probe saw at one time; its process is that of the tests, so nothing in it is taken on trust."""

    probe: int = Field(ge=0, lt=MOST_PROBES)
    event: Literal["line", "return", "failure"] = "line"
    test: str | None = None
    time: int = Field(default=1, ge=1, lt=1 << 31)
    values: list[Short] = Field(default=[], max_length=2)
    error: Short | None = None
    problem: Short | None = None
    lost: bool = False


@dataclass(frozen=True)
class ProbeResult:
    """What came of a probe: whether it holds, and what it saw, in all tests."""

    check: Check
    readings: Sequence[ProbeReading] = ()


def check_findings(workspace: Workspace, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings with what came of their probes, which all run at once.

    A probe confirms only what its finding's quote says.
    """
    checks = check_probes(workspace, [finding.probe for finding in findings])
    return tuple(
        finding.model_copy(
            update={
                "check": _unchecked(_OTHER_PROBE)
                if check.status == "confirmed" and not _quotes_probe(finding)
                else check
            }
        )
        for finding, check in zip(findings, checks, strict=True)
    )


def _quotes_probe(finding: Finding) -> bool:
    """Whether a finding's quote holds what its probe looks for. It does until somebody edits one of the two."""
    probe = finding.probe
    assert probe is not None
    if isinstance(probe, WhatIfProbe):
        words = (probe.change.describe(), probe.effect)
    elif probe.expression in (EXCEPTION, RETURNED):
        words = (probe.value,)
    elif probe.expression:
        words = (probe.expression, probe.value)
    else:
        words = () if probe.up else (probe.path,)
    return all(_contains(normal(finding.quote), normal(each)) for each in words)


def check_probes(workspace: Workspace, probes: Sequence[Probe | None]) -> list[Check]:
    """What came of each probe; what is no probe, or cannot be run, is unchecked."""
    if all(probe is None for probe in probes):
        return [_unchecked(_NO_PROBE) for _ in probes]
    try:
        return [result.check for result in run_probes(workspace, probes)[1]]
    except ToolFailure as failure:
        return [_unchecked(_NO_PROBE if probe is None else failure.message) for probe in probes]


def run_probes(
    workspace: Workspace, probes: Sequence[Probe | None]
) -> tuple[Mapping[str, TestOutcome], list[ProbeResult]]:
    """Runs the tests once under all probes that stop, and once for each that changes a line. Raises ToolFailure.

    Returns the outcomes of the unchanged tests, and what came of each probe.
    """
    stops = [(place, probe) for place, probe in enumerate(probes) if isinstance(probe, StopProbe)][:MOST_PROBES]
    changes = [(place, probe) for place, probe in enumerate(probes) if isinstance(probe, WhatIfProbe)][:MOST_VARIANTS]
    runs = run_forked(workspace, [probe for _, probe in changes], [probe for _, probe in stops])
    readings = read_readings(runs.seen)
    results = [ProbeResult(_unchecked(_NO_PROBE if probe is None else "too many probes")) for probe in probes]
    for number, (place, probe) in enumerate(stops):
        found = [reading for reading in readings if reading.probe == number]
        seen = [reading for reading in found if not reading.lost]
        results[place] = ProbeResult(_judge_stop(probe, found, runs), seen)
    for (place, probe), change in zip(changes, runs.changes, strict=True):
        results[place] = ProbeResult(_judge_change(probe, change))
    return runs.outcomes, results


def read_readings(data: bytes) -> list[ProbeReading]:
    """What the probes wrote; lines that are none of it are passed over, and so is what is too much."""
    readings: list[ProbeReading] = []
    for line in data.splitlines()[:MOST_READINGS]:
        try:
            readings.append(ProbeReading.model_validate_json(line))
        except ValidationError:
            continue
    return readings


def _judge_change(probe: WhatIfProbe, result: ChangeResult) -> Check:
    effect = result.describe_effect()
    if not _begins(effect, probe.effect):
        return Check(status="contradicted", note=cut_line(f"the effect is: {effect}", _NOTE))
    if result.fails and _begins(result.model_copy(update={"fails": ()}).describe_effect(), probe.effect):
        return Check(status="confirmed", telling=False, note="other tests fail then")
    telling = bool(result.passes) or result.exit_code == 0 != result.unchanged_exit_code
    return Check(status="confirmed", telling=telling, note="" if telling else "no failing test passes then")


def _begins(text: str, words: str) -> bool:
    """Whether a text begins with words that are not cut in the middle of one."""
    return bool(words) and re.match(re.escape(words) + r"(?![\w/.\[-])", text) is not None


def _judge_stop(probe: StopProbe, found: Sequence[ProbeReading], runs: ForkedRuns) -> Check:
    readings = [reading for reading in found if not reading.lost]
    check = _judge_readings(probe, readings, runs.outcomes, is_over=runs.exit_code is not None)
    is_lost = any(reading.lost and probe.test in (None, reading.test) for reading in found)
    return _unchecked(_LOST) if is_lost and check.status == "contradicted" else check


def _judge_readings(
    probe: StopProbe, readings: Sequence[ProbeReading], outcomes: Mapping[str, TestOutcome], *, is_over: bool
) -> Check:
    problem = next((reading.problem for reading in readings if reading.problem is not None), None)
    if problem is not None:
        return Check(status="contradicted", note=cut_line(problem, _NOTE))
    if probe.test and probe.test not in outcomes:
        return _unchecked(f"{probe.test} is not run" if is_over else "the tests ran too long")
    if probe.expression == EXCEPTION:
        readings = [*readings, *_messages(probe, outcomes)]
    there = [reading for reading in readings if reading.event == probe.event and is_at_time(probe, reading)]
    matching = [reading for reading in there if _matches(probe, reading)]
    if not matching:
        return _contradicted(probe, there, is_over=is_over)
    return _judge_telling(probe, matching, readings, outcomes)


def _messages(probe: StopProbe, outcomes: Mapping[str, TestOutcome]) -> Iterable[ProbeReading]:
    """What the test runner says of the failures at the probe's place, as readings."""
    for test, outcome in outcomes.items():
        if outcome.failed and _fails_there(probe, outcome):
            yield ProbeReading(probe=0, event="failure", test=test, values=[outcome.message[:10_000]])


def _fails_there(probe: StopProbe, outcome: TestOutcome) -> bool:
    """Whether a test failed at the probe's place, as far as the runner tells it: of a doctest it gives a text alone."""
    if outcome.frames:
        places = [(frame.path, frame.line) for frame in outcome.frames]
        # Too deep a recursion ends wherever the limit is reached, which depends on how the tests were started.
        return (probe.path, probe.line) in (places if outcome.message.startswith("RecursionError") else places[-1:])
    example = doctest_place(outcome.id, outcome.message)
    if example is not None:
        return (probe.path, probe.line) == example
    lines = re.findall(r"\bline (\d+)", outcome.message)
    return not lines or str(probe.line) in lines


def is_at_time(probe: StopProbe, reading: ProbeReading) -> bool:
    """Whether a reading was taken in the test, and at the time in it, that a probe is about."""
    return probe.test in (None, reading.test or "") and probe.time in (None, reading.time)


def _matches(probe: StopProbe, reading: ProbeReading) -> bool:
    if reading.error is not None:
        return False
    if not probe.expression or (probe.expression == EXCEPTION and not probe.value):
        return True
    wanted = _comparable(probe.value)
    if probe.expression == EXCEPTION:
        return any(_contains(_comparable(value), wanted) for value in reading.values)
    return any(_comparable(value) == wanted for value in reading.values)


def _contains(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _comparable(text: str) -> str:
    """The text with single spaces, and without what `id()` returns, which differs from run to run."""
    return _ID.sub(lambda number: "id" if int(number[0]) in _ADDRESSES else number[0], normal(text))


def _contradicted(probe: StopProbe, there: Sequence[ProbeReading], *, is_over: bool) -> Check:
    if there:
        seen = there[0].error or next(iter(there[0].values), "")
        return Check(status="contradicted", note=cut_line(f"it is {normal(seen)}", _NOTE))
    if not is_over:
        return _unchecked("the tests ran too long")
    why = "it does not fail there" if probe.event == "failure" else "it does not stop there"
    return Check(status="contradicted", note=why)


def _judge_telling(
    probe: StopProbe,
    matching: Sequence[ProbeReading],
    readings: Sequence[ProbeReading],
    outcomes: Mapping[str, TestOutcome],
) -> Check:
    passed = {test for test, outcome in outcomes.items() if not outcome.failed}
    if outcomes and all(reading.test is None for reading in matching):
        return Check(status="confirmed", telling=False, note="it stops there outside of the tests")
    if all(reading.test in passed for reading in matching):
        return Check(status="confirmed", telling=False, note="only a passing test stops there")
    # Not the first one that ran: a project may run its tests in a random order.
    same = min(
        (
            reading.test
            for reading in readings
            if reading.test in passed and reading.event in (probe.event, "line") and _matches(probe, reading)
        ),
        default=None,
    )
    if same is not None and probe.expression != EXCEPTION:
        return Check(status="confirmed", telling=False, note=cut_line(f"the same in {same}, which passes", _NOTE))
    return Check(status="confirmed", telling=True)


def _unchecked(why: str) -> Check:
    return Check(status="unchecked", note=cut_line(why, _NOTE))


def describe_place(probe: Probe) -> str:
    """Where a probe stops, or what it changes, in a few words."""
    if isinstance(probe, WhatIfProbe):
        return probe.change.describe()
    where = f"{probe.path}:{probe.line}"
    if probe.event != "line":
        where += " (return)" if probe.event == "return" else " (failure)"
    above = f", {plural(probe.up, 'frame')} up" if probe.up else ""
    time = f", time {probe.time}" if probe.time else ""
    return f"{where}{above}{time}{f' in {probe.test}' if probe.test else ''}"
