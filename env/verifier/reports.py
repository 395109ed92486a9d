"""What the supervisor in the sandbox says about one run of the tests, checked against itself.

Each test is started and gets one result; the runner's own exit code follows, and the end of the interpreter; the
process ends with that code, and it fits the outcomes. Whatever does not fit is a problem, and a run with a problem
resolves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field, JsonValue, ValidationError

from gumshoe.errors import SandboxError
from gumshoe.records import ExecResult, TestOutcome, TestRun

__all__ = ["CheckedRun", "check_report"]

WORST_FIRST = ("error", "failed", "xpassed", "skipped", "xfailed", "passed")
NO_TESTS, INTERRUPTED = 5, 2
SHOWN = 3


class SupervisorReport(BaseModel):
    """The supervisor's answer."""

    exit_code: int | None
    timed_out: bool
    duration_s: float = Field(ge=0)
    output: str
    events: list[list[JsonValue]]
    problems: list[str]
    left: list[str]
    protected: bool


@dataclass(frozen=True)
class CheckedRun:
    """One run of the tests.

    Attributes:
        run: how it ended, and the outcome of each test.
        broken: files and other collections that could not be loaded, with the reason.
        problems: why its outcomes prove nothing; empty for a sound run.
        tampering: what the code under test did to the test runner, and the processes that it left behind.
    """

    run: TestRun
    broken: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[str, ...] = ()
    tampering: tuple[str, ...] = ()


def check_report(data: bytes, *, direct: bool) -> CheckedRun:
    """Reads and checks a report.

    Args:
        data: the JSON text that the supervisor wrote.
        direct: whether the tests ran in our own program, whose exit code is the runner's.

    Raises:
        SandboxError: it is not a report.
    """
    try:
        report = SupervisorReport.model_validate_json(data)
    except ValidationError as error:
        raise SandboxError(f"the verifier's report cannot be read: {error.error_count()} errors") from None
    seen = _Events()
    for event in report.events:
        seen.take(event)
    outcomes = tuple(seen.outcomes.values())
    result = ExecResult(
        exit_code=None if report.timed_out else report.exit_code,
        output=report.output,
        duration_s=report.duration_s,
        timed_out=report.timed_out,
    )
    problems = (*report.problems, *seen.problems, *_end_problems(report, seen, direct=direct))
    left = [f"processes left behind: {', '.join(report.left)}"] if report.left and not report.timed_out else []
    return CheckedRun(
        run=TestRun(result=result, outcomes=outcomes),
        broken=seen.broken,
        problems=tuple(dict.fromkeys(problems)),
        tampering=tuple(dict.fromkeys((*seen.tampering, *left))),
    )


class _Events:
    """Follows the reports in their order."""

    def __init__(self) -> None:
        self.outcomes: dict[str, TestOutcome] = {}
        self.broken: dict[str, str] = {}
        self.problems: list[str] = []
        self.tampering: list[str] = []
        self.code: int | None = None
        self.final = False
        self._open: dict[str, int] = {}

    def take(self, event: Sequence[Any]) -> None:
        """One report."""
        match event:
            case ["final"] if not self.final:
                self.final = True
            case _ if self.final or self.code is not None:
                self.problems.append("something was reported after the end of the tests")
            case ["start", str(name)]:
                self._open[name] = self._open.get(name, 0) + 1
            case ["result", str(name), str(outcome), str(message), str(title)]:
                self._result(name, outcome, message, title)
            case ["broken", str(name), str(message)]:
                self.broken[name] = message
            case ["tampered", str(text)]:
                self.tampering.append(text)
                self.problems.append(f"the test runner was tampered with: {text}")
            case ["end", int(code)]:
                self.code = code
                self._end()
            case _:
                self.problems.append("a report has an unknown format")

    def _result(self, name: str, outcome: str, message: str, title: str) -> None:
        if not self._open.get(name):
            self.problems.append(f"{name} has a result and was not started")
            return
        self._open[name] -= 1
        if outcome not in WORST_FIRST:
            self.problems.append(f"{name} has the unknown outcome {outcome}")
            return
        before = self.outcomes.get(name)
        if before is None or WORST_FIRST.index(outcome) < WORST_FIRST.index(before.outcome):
            facts = {"id": name, "outcome": outcome, "message": message, "title": title}
            self.outcomes[name] = TestOutcome.model_validate(facts)

    def _end(self) -> None:
        unfinished = [name for name, count in self._open.items() if count]
        if unfinished:
            self.problems.append(f"tests have no result: {_shown(unfinished)}")


def _end_problems(report: SupervisorReport, seen: _Events, *, direct: bool) -> Iterable[str]:
    """What contradicts the way in which the run ended."""
    if report.timed_out:
        yield f"the tests run for more than {report.duration_s:.0f} s"
        return
    if seen.code is None:
        what = (
            "no test reported an outcome" if not (seen.outcomes or seen.broken) else "the tests did not run to the end"
        )
        yield f"{what} (exit code {report.exit_code})"
        return
    if not seen.final:
        yield "the process of the tests left before the interpreter ended"
    if report.exit_code != seen.code and (direct or seen.code == 0):
        yield f"the runner ended with {seen.code} and its process with exit code {report.exit_code}"
    failing = [name for name, one in seen.outcomes.items() if one.outcome in ("failed", "error")]
    wrong = bool(failing or seen.broken)
    lenient = any(one.outcome == "xpassed" for one in seen.outcomes.values())
    if seen.code == 0 and wrong:
        yield f"the runner ended with 0 although tests fail: {_shown([*failing, *seen.broken])}"
    elif seen.code in (1, INTERRUPTED) and not wrong and not lenient:
        yield f"the runner ended with {seen.code} although no test fails"
    elif seen.code not in (0, 1, INTERRUPTED, NO_TESTS):
        yield f"the runner ended with {seen.code}"


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
