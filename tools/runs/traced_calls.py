"""The calls of a function as the recorder in the sandbox writes them, where any program can write to the same file."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationError

FILE_BYTES = 8 << 20
MOST_CALLS = 2000
MOST_LINES = 50_000
ALSO = 50
LONGEST_TEXT = 700
LONGEST_CALL = 300
"""Lines of one call."""

_HIDDEN = re.compile(r"<\w+, not shown \d+>")

Count = Annotated[int, Field(ge=0, lt=1 << 31)]
Text = Annotated[str, AfterValidator(lambda text: text[:LONGEST_TEXT])]
Values = Annotated[dict[Text, Text], Field(max_length=500)]


def is_hidden(text: str) -> bool:
    """Whether a value is not known: the recorder had no time left to put it into words."""
    return _HIDDEN.fullmatch(text) is not None


class Caller(BaseModel):
    """The frame of the project that called."""

    path: Text
    line: Count
    function: Text


class TracedCall(BaseModel):
    """One call, and how many of its test were equal to it: in arguments, lines and outcome.

    `steps` are the lines in the order in which they ran, each with the variables that it changed and the exception
    that was raised there, if any. `skipped` steps are left out of their middle.
    """

    number: Count
    count: Count
    arguments: Values
    caller: Caller | None
    steps: list[tuple[Count, Values, Text]] = Field(max_length=LONGEST_CALL)
    skipped: Count
    outcome: Literal["returned", "raised", "unfinished"]
    value: Text
    yields: list[Text] = Field(max_length=100)
    yielded: Count
    test: Text = ""
    also: list[str] = Field(default_factory=list[str], max_length=0)
    """Other tests with an equal call, at most 50. Only `merge` fills it; a record that comes with some is refused."""

    @property
    def lines(self) -> list[int]:
        """The lines that ran, in order."""
        return [line for line, _, _ in self.steps]

    @property
    def result(self) -> str:
        """What the call came to, in words."""
        if self.outcome == "unfinished":
            return "did not end"
        value = f"yielded {', '.join(self.yields)}" if self.yielded else f"returned {self.value}"
        return value if self.outcome == "returned" else f"raised {self.value}"

    @property
    def is_result_known(self) -> bool:
        """Whether all that the call came to was put into words."""
        return not any(map(is_hidden, (self.value, *self.yields)))

    def is_like(self, other: TracedCall) -> bool:
        """Whether arguments, lines and result are the same."""
        return (self.arguments, self.lines, self.result) == (other.arguments, other.lines, other.result)


class _Test(BaseModel):
    test: Text
    failed: bool
    unfinished: bool
    lost: bool = False
    calls: Count
    kept: list[TracedCall] = Field(max_length=500)


class _Tests(BaseModel):
    failed: Count = 0
    passed: Count = 0


class _Mark(BaseModel):
    """The test that begins, or at the end how many tests there were."""

    begins: Text = ""
    tests: _Tests | None = None


class Trace(BaseModel):
    """What was seen of a function. `failing` and `passing` are its calls in such tests; of passing tests, only calls
    that are unlike all before. `running` is the test in which the process ended, if that is so. `lost` are tests whose
    later calls are not known, since tracing ended in the middle.
    """

    failed: int = 0
    passed: int = 0
    ended: bool = False
    running: str = ""
    unfinished: bool = False
    lost: list[str] = Field(default_factory=list[str])
    failing_calls: int = 0
    passing_calls: int = 0
    failing_tests: list[str] = Field(default_factory=list[str])
    failing: list[TracedCall] = Field(default_factory=list[TracedCall])
    passing: list[TracedCall] = Field(default_factory=list[TracedCall])


def merge(calls: Sequence[TracedCall]) -> list[TracedCall]:
    """One call for all that are equal, the first, with the other tests that it is in."""
    merged: dict[tuple[object, ...], TracedCall] = {}
    for call in calls:
        key = (tuple(sorted(call.arguments.items())), tuple(call.lines), call.result)
        known = merged.setdefault(key, call)
        if known is not call and call.test not in (known.test, *known.also) and len(known.also) < ALSO:
            merged[key] = known.model_copy(update={"also": [*known.also, call.test]})
    return list(merged.values())


def read_trace(data: bytes) -> Trace:
    """What was recorded, without lines that cannot be read, and what follows 2,000 calls, 50,000 lines or 8 MiB."""
    trace = Trace()
    for line in islice(io.BytesIO(data[:FILE_BYTES]), MOST_LINES):
        if len(trace.failing) + len(trace.passing) > MOST_CALLS:
            break
        try:
            _add(trace, _Test.model_validate_json(line))
        except ValidationError:
            _add_mark(trace, line)
    return trace


def _add_mark(trace: Trace, line: bytes) -> None:
    with suppress(ValidationError):
        mark = _Mark.model_validate_json(line)
        trace.running = mark.begins or trace.running
        if mark.tests is not None:
            trace.failed, trace.passed, trace.ended, trace.running = mark.tests.failed, mark.tests.passed, True, ""


def _add(trace: Trace, test: _Test) -> None:
    calls = [call.model_copy(update={"test": test.test}) for call in test.kept]
    trace.unfinished = trace.unfinished or test.unfinished
    if test.lost:
        trace.lost.append(test.test)
    if not test.calls:
        return
    if test.failed:
        trace.failing_tests.append(test.test)
        trace.failing_calls += test.calls
        trace.failing += calls
    else:
        trace.passing_calls += test.calls
        trace.passing += calls
