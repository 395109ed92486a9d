"""What the seeker reports to the solver: places, findings that can be checked, and what was ruled out."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from gumshoe.records.base import SCHEMA_VERSION, LineNumber, Record
from gumshoe.records.programs import DebugFrame
from gumshoe.text import cut_line


class Location(Record):
    """A range of lines, both ends included."""

    path: str
    start: LineNumber
    end: LineNumber
    symbol: str | None = Field(default=None, description="qualified name of the function or class, if in one")
    why: str = ""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"end {self.end} is before start {self.start}")
        return self

    def as_argument(self) -> dict[str, JsonValue]:
        """The location as `report` takes it. What can be left out is, so that a small model cannot copy it wrong: the
        symbol, which the tool finds itself, and an end that is the start.
        """
        one_line: set[str] = {"end"} if self.end == self.start else set()
        return self.model_dump(mode="json", exclude={"symbol", *one_line}, exclude_defaults=True)

    @property
    def lines(self) -> range:
        """The numbers of its lines, counted from 1."""
        return range(self.start, self.end + 1)


class StopProbe(Record):
    """What an expression is where the program stops.

    It stops the n-th time that a line is reached, or a function returns from it, while a test runs; or where the test
    fails, at its innermost frame in the project. Without an expression, the claim is that it stops there. Two names
    are special: `__return__` is what the function returns, `__exception__` holds the words of the exception.
    """

    kind: Literal["stop"] = "stop"
    event: Literal["line", "return", "failure"] = "line"
    path: str
    line: LineNumber = Field(lt=1 << 31)
    time: int | None = Field(default=None, ge=1, lt=1 << 31, description="n-th time in the test; None: some time")
    test: str | None = Field(
        default=None, description="empty: outside of the tests; None: some test, or a program without tests"
    )
    up: int = Field(default=0, ge=0, lt=1 << 31, description="frames of the project above the place")
    expression: str = ""
    value: str = Field(default="", description="as the debugger shows it")


class LineChange(Record):
    """What is done at a line, in memory, as `whatif` takes it."""

    path: str = Field(min_length=1)
    line: LineNumber = Field(lt=1 << 31)
    do: str = Field(min_length=1)
    time: int | None = Field(default=None, ge=1, lt=1 << 31, description="only the n-th time; None: every time")
    when: str | None = Field(default=None, description="only if this expression is true")

    @property
    def change(self) -> LineChange:
        """The change alone, if this is a record that says more about it."""
        return LineChange(path=self.path, line=self.line, do=self.do, time=self.time, when=self.when)

    def describe(self) -> str:
        """`path:line do`, with time and condition."""
        time = f" at time {self.time}" if self.time else ""
        when = f" when {self.when}" if self.when else ""
        return cut_line(f"{self.path}:{self.line} {self.do.replace(chr(10), '; ')}{time}{when}", 120)


class WhatIfProbe(LineChange):
    """What the tests do when a line is changed, as `whatif` says it."""

    kind: Literal["whatif"] = "whatif"
    effect: str


Probe = Annotated[StopProbe | WhatIfProbe, Field(discriminator="kind")]


class Check(Record):
    """What came of running a probe. A probe tells something when failing tests differ from passing ones in it."""

    status: Literal["confirmed", "contradicted", "unchecked"]
    telling: bool | None = Field(default=None, description="None where it was not confirmed")
    note: str = Field(default="", description="what was seen instead, why it tells nothing, or why it was not checked")


class Finding(Record):
    """A claim and the fact that it cites: the step that showed it, and the words of that step's observation.

    The environment adds the probe of the fact, and what came of running it.
    """

    claim: str
    step: int = Field(ge=0, description="index of the step that showed the fact")
    quote: str = Field(description="text of the fact")
    probe: Probe | None = Field(default=None, description="None: no fact was cited, so nothing can be run")
    check: Check | None = Field(default=None, description="None: no probe was ever run, as in older records")

    @property
    def grounded(self) -> bool:
        """Whether its probe was confirmed and tells something."""
        return self.check is not None and self.check.status == "confirmed" and self.check.telling is True


class Fact(Record):
    """One thing that an observation shows, under the number by which a report cites it. Never stored."""

    number: int = Field(ge=1, description="counted through all observations of the episode")
    step: int = Field(ge=0)
    shown: str = Field(description="words by which the observation's text shows it")
    beginning: str = Field(default="", description="of a long value: how it begins where the text cuts it")
    quote: str = Field(description="text of the fact, as findings quote it")
    probe: Probe

    def finding(self, claim: str) -> Finding:
        """A finding that cites the fact."""
        return Finding(claim=claim, step=self.step, quote=self.quote, probe=self.probe)


class RuledOut(Record):
    """A place or cause that was looked at and found innocent."""

    what: str
    why: str


class ContextPack(Record):
    """What the seeker hands to the solver, ranked best first."""

    schema_version: Literal[1] = SCHEMA_VERSION
    locations: tuple[Location, ...] = ()
    findings: tuple[Finding, ...] = ()
    failing_frame: DebugFrame | None = None
    ruled_out: tuple[RuledOut, ...] = ()
    hypothesis: str = ""
    reproduction: str = Field(
        default="",
        description="test file that was written from the issue, which the probes run; empty where there is none",
    )
