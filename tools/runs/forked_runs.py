"""Runs the tests in forks of one process: unchanged, watched by probes, and once for each changed line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import LineChange, StopProbe, TestOutcome
from gumshoe.text import cut_line, indentation, plural
from gumshoe.tools.runs.commands import Script, our_plugin
from gumshoe.tools.runs.outcomes import read_outcomes

_SEEN_BYTES = 16 << 20
_ASSIGNMENT = re.compile(r"[^\s=(]+ *=(?!=)")
_CONDITION = re.compile(r"condition |(?:true|false)$", re.IGNORECASE)
"""Changes that lead to an error which the code raises on purpose, if any; others may well make one of their own."""
_LACKS_ERROR = re.compile(r"DID NOT RAISE|\bnot raised\b", re.IGNORECASE)
_WANTS_ERROR = re.compile(r"\braises\(|\bassertRaises")
_NAMES = 80
"""Characters of test names that are shown of one list, so that all results fit into one answer."""
Effect = Literal["fixes_all", "fixes_some", "trades", "none", "unreached", "invalid"]
"""What a change does to the failing tests: all pass and no other test breaks; some pass; some pass and others break.

It is `fixes_some`, too, if it may have made the very error that the tests expect, or if not all tests were run to their
end.
"""
HELPFUL: tuple[Effect, ...] = ("fixes_all", "fixes_some", "trades")
"""What changes may do for failing tests, best first."""


class ForkOutcome(BaseModel):
    """What became of one run, as its process tells it: the exit code, None for one that was stopped, how often the
    changed line was reached, and whether all tests were run; or why the change cannot be made.
    """

    exit_code: int | None = Field(default=None, ge=-(1 << 31), lt=1 << 31)
    hits: int = Field(default=0, ge=0, lt=1 << 63)
    whole: bool = True
    error: str | None = None


_ANSWERS = TypeAdapter(list[ForkOutcome])


class ChangeResult(LineChange):
    """What a change does to the tests, which are named by their ids.

    `exit_code` is None for a run that was stopped. Tests that passed are known to fail only if it is not, and only if
    the `whole` suite was run.
    """

    error: str | None = Field(default=None, description="why there is nothing else to know")
    timed_out: bool = False
    hits: int = Field(default=0, description="how often the change took effect")
    whole: bool = True
    exit_code: int | None = None
    unchanged_exit_code: int | None = None
    passes: tuple[str, ...] = Field(default=(), description="tests that pass now, and did not before")
    fails: tuple[str, ...] = Field(default=(), description="tests that passed before, and no longer do")
    still_fails: tuple[str, ...] = Field(default=(), description="tests that fail as before")
    want_error: bool = Field(default=False, description="whether all tests that pass now lacked an expected exception")

    @property
    def effect(self) -> Effect:
        """The kind of effect, by the first line that applies.

        | the change                                                                          | effect      |
        |-------------------------------------------------------------------------------------|-------------|
        | cannot be made, or was stopped before it took effect                                | invalid     |
        | never took effect                                                                   | unreached   |
        | lets failing tests pass and some others fail                                        | trades      |
        | lets failing tests pass, but not all, or others are unknown, or perhaps by chance   | fixes_some  |
        | lets failing tests pass                                                             | fixes_all   |
        | lets no test pass, but changes the exit code to 0, as of a program without tests    | fixes_all   |
        | does anything else                                                                  | none        |

        "By chance": it may have made the very error that these tests expect (`want_error`); a change of a condition
        makes none.
        """
        if self.error:
            return "invalid"
        if not self.hits:
            return "unreached"
        if self.passes and not self.fails:
            others_known = self.whole and not self.timed_out
            by_chance = self.want_error and not _CONDITION.match(self.do)
            return "fixes_all" if others_known and not self.still_fails and not by_chance else "fixes_some"
        if self.passes:
            return "trades"
        return "fixes_all" if self.exit_code == 0 != self.unchanged_exit_code else "none"

    @property
    def tells(self) -> bool:
        """Whether there is anything to know, be it why it cannot be made: it was not stopped before it took effect."""
        return bool(self.hits) or not self.timed_out

    @property
    def share(self) -> float:
        """The share of the failing tests that pass with it."""
        return len(self.passes) / max(1, len(self.passes) + len(self.still_fails))

    def describe(self) -> str:
        """The change and its effect, on one line."""
        return f"{self.change.describe()}: {self.describe_effect()}"

    def describe_effect(self) -> str:
        """The effect in a few words."""
        if self.error:
            return self.error
        if not self.hits and self.when:
            return "took no effect: the line was not reached, or its condition was never true there or raised an error"
        if not self.hits:
            return "took no effect: the line was not reached that often" if self.time else "never reached"
        parts = [_now(self.passes, "passes", "pass"), _now(self.fails, "fails", "fail")]
        parts.append("timed out" if self.timed_out else "")
        if not any(parts) and self.exit_code != self.unchanged_exit_code:
            parts.append(f"exit code {self.exit_code}")
        if any(parts):
            return "; ".join(filter(None, parts))
        hint = f" (it ran before the line; in its place: replace {self.do})" if _ASSIGNMENT.match(self.do) else ""
        return ("no test changes" if self.whole else "no failing test passes") + hint


def _now(tests: Sequence[str], one: str, several: str) -> str:
    """What tests do now, and as many of their names as there is room for."""
    if not tests:
        return ""
    names = [cut_line(test, _NAMES) for test in tests]
    shown = max(1, sum(length <= _NAMES for length in accumulate(map(len, names))))
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    verb = one if len(tests) == 1 else several
    return f"{plural(len(tests), 'test')} now {verb}: {', '.join(names[:shown])}{more}"


@dataclass(frozen=True)
class ForkedRuns:
    """What became of each run: the exit code of the unchanged one, None if it was stopped, and its tests' outcomes by
    id; what each change does; what the probes wrote.
    """

    exit_code: int | None
    outcomes: Mapping[str, TestOutcome]
    changes: Sequence[ChangeResult]
    seen: bytes

    def as_data(self, changes: Iterable[ChangeResult] | None = None) -> dict[str, JsonValue]:
        """The data of an observation, which `read_changes` reads: of these changes, or of all.

        `unchanged` says how the unchanged tests ended.
        """
        outcomes: dict[str, JsonValue] = {test: outcome.outcome for test, outcome in self.outcomes.items()}
        return {
            "unchanged": {"exit_code": self.exit_code, "outcomes": outcomes},
            "variants": [result.model_dump(mode="json") for result in (self.changes if changes is None else changes)],
        }

    def describe(self) -> str:
        """How the unchanged tests ended, in a few words."""
        if not self.outcomes:
            return "timed out" if self.exit_code is None else f"exit code {self.exit_code}"
        failing = sum(outcome.failed for outcome in self.outcomes.values())
        return f"{failing} of {plural(len(self.outcomes), 'test')} fail"


@dataclass(frozen=True)
class KnownRun:
    """The outcomes of the unchanged tests by id, and how long they took together."""

    outcomes: Mapping[str, TestOutcome]
    duration_s: float


def run_forked(
    workspace: Workspace,
    changes: Iterable[LineChange],
    probes: Sequence[StopProbe] = (),
    known: KnownRun | None = None,
    *,
    repairs_only: bool = False,
    seconds: float | None = None,
) -> ForkedRuns:
    """Runs the tests unchanged, then with each change; nothing in the workspace changes.

    Args:
        workspace: where.
        changes: each is run on its own.
        probes: what is watched in the unchanged run of all tests. With `known` there is none, and nothing is watched,
            unless no test fails or the failing ones cannot be run alone.
        known: the unchanged tests, if they were run: then only the failing ones are run, and all of them with changes
            that let one of these pass.
        repairs_only: with `known`, run all tests only with changes that let all failing ones pass.
        seconds: when to stop, if that is to be before the task's limit for one command. Changes that were not tried by
            then are like those that ran too long.

    Raises:
        ToolFailure: the entrypoint is no Python program, or the tests ran too long.
    """
    script = Script(workspace, "whatif")
    wanted = [change.change for change in changes]
    before = known.outcomes if known is not None else {}
    request = {
        "variants": [change.model_dump() for change in wanted],
        "probes": [probe.model_dump(exclude={"value"}) for probe in probes],
        "failing": [test for test, outcome in before.items() if outcome.failed],
        "usual_s": known.duration_s if known is not None else None,
        "repairs_only": repairs_only,
        "folder": script.folder,
    }
    ran = script.run(request, f"{our_plugin('runs.outcomes')} -p no:cacheprovider", seconds)
    try:
        unchanged, *answers = read_answers(script.read("answer.json"), len(wanted) + 1)
    except ValueError:
        why = "they ran too long" if ran.timed_out else "the entrypoint starts no Python program: " + ran.output[-300:]
        raise ToolFailure("no_whatif", f"The tests could not be run with changes: {why}") from None
    if unchanged.whole:
        before = _outcomes(script, 0, unchanged)
    results = [
        _result(change, answer, before, _outcomes(script, number, answer), unchanged.exit_code)
        for number, (change, answer) in enumerate(zip(wanted, answers, strict=True), start=1)
    ]
    passing = {test for result in results for test in result.passes if test in before}
    wanting = {test for test in passing if _wants_error(workspace, before[test])}
    return ForkedRuns(
        exit_code=unchanged.exit_code,
        outcomes=before,
        changes=[
            result.model_copy(update={"want_error": bool(result.passes) and wanting.issuperset(result.passes)})
            for result in results
        ],
        seen=script.read("probes.jsonl")[:_SEEN_BYTES],
    )


def _outcomes(script: Script, number: int, answer: ForkOutcome) -> dict[str, TestOutcome]:
    """The outcomes of a run's tests by id."""
    written = script.read(f"{number}{'' if answer.whole else '.failing'}.jsonl")
    return {outcome.id: outcome for outcome in read_outcomes(written, answer.exit_code)}


def _result(
    change: LineChange,
    answer: ForkOutcome,
    before: Mapping[str, TestOutcome],
    after: Mapping[str, TestOutcome],
    unchanged_exit_code: int | None,
) -> ChangeResult:
    is_over = answer.exit_code is not None
    passed = {test for test, outcome in before.items() if outcome.passed}
    good = {test for test, outcome in after.items() if outcome.passed or outcome.outcome == "skipped"}
    return ChangeResult(
        **change.model_dump(),
        error=answer.error or (None if is_over or answer.hits else "timed out before this took effect"),
        timed_out=answer.error is None and not is_over,
        hits=answer.hits,
        whole=answer.whole,
        exit_code=answer.exit_code,
        unchanged_exit_code=unchanged_exit_code,
        passes=tuple(test for test, outcome in after.items() if outcome.passed and test not in passed),
        fails=tuple(test for test in before if test in passed - good) if is_over and answer.whole else (),
        still_fails=tuple(
            test
            for test, outcome in before.items()
            if outcome.failed and test in after and after[test].outcome == outcome.outcome
        ),
    )


def _wants_error(workspace: Workspace, outcome: TestOutcome) -> bool:
    """Whether a test fails since an exception that it expects was not raised, or another one was.

    Where another was, the line of the test, or the one that its block begins with, shows what is expected.
    """
    if _LACKS_ERROR.search(outcome.message):
        return True
    if not outcome.frames:
        return False
    first = outcome.frames[0]
    try:
        lines = workspace.read_text(first.path).splitlines()[: first.line]
    except ToolFailure:
        return False
    last = lines[-1] if lines else ""
    above = (line for line in reversed(lines) if line.strip() and indentation(line) < indentation(last))
    return any(_WANTS_ERROR.search(line) for line in (last, next(above, "")))


def read_answers(data: bytes, count: int) -> list[ForkOutcome]:
    """The answers in the file that the runs' parent wrote. Raises ValueError if it does not hold so many."""
    try:
        answers = _ANSWERS.validate_json(data)
    except ValidationError:
        raise ValueError("not a list of answers") from None
    if len(answers) != count:
        raise ValueError(f"{len(answers)} answers, not {count}")
    return answers


def read_changes(data: Mapping[str, Any]) -> list[ChangeResult]:
    """The results of changes in the data of an observation. Raises ValidationError."""
    return [ChangeResult.model_validate(result) for result in data.get("variants", ())]
