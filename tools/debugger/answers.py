"""What the debugger sends, checked: the code under test runs in the same process and may write anything there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from gumshoe.records import DebugFrame

__all__ = ["Announcement", "Answer", "CommandResult", "DebuggerStop", "read_announcement", "read_answer"]

LONGEST = 1 << 20
"""Characters of an answer; the debugger shortens whatever it shows."""
MOST, MOST_BREAKPOINTS = 1000, 200
Line = Annotated[int, Field(ge=0, lt=1 << 31)]
SourceLine = tuple[Line, str]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    def data(self, without: str = "") -> dict[str, Any]:
        """The part as it was sent, without one of its fields."""
        return self.model_dump(mode="json", exclude_unset=True, exclude={without} if without else None)


class DebuggerStop(_Part):
    """Where the program stopped and why, with the lines around; `value` is the repr of what a function returns."""

    path: str
    line: Line
    function: str
    reason: str
    source: list[Annotated[SourceLine, Field(strict=False)]] = Field(max_length=MOST)
    breakpoint: JsonValue = None
    test: str | None = None
    note: JsonValue = None
    exception: JsonValue = None
    value: JsonValue = None


class CommandResult(_Part):
    """What one command printed, and where the program stopped after it."""

    command: str
    output: str
    stop: DebuggerStop | None = None
    failed: JsonValue = None


class _Breakpoint(_Part):
    number: Line
    path: str
    line: Line
    condition: str | None = None
    temporary: bool = False
    ignore: Line = 0
    enabled: bool = True


class Announcement(_Part):
    """What is announced before the program goes on, since it may never answer: breakpoints, and results so far."""

    breakpoints: list[_Breakpoint] = Field(max_length=MOST_BREAKPOINTS)
    results: list[CommandResult] = Field(max_length=MOST)

    def table(self) -> list[dict[str, Any]]:
        """The breakpoints as plain data."""
        return [each.data() for each in self.breakpoints]


class Answer(Announcement):
    """The debugger's answer to a request.

    Attributes:
        state: what became of the program. `stale`: its code was `changed` on disk; `restart`: it is to be started
            again, for the `rest` of the commands.
        results: one per command.
        stop, frames, index: where it is, its frames, and which of these is looked at.
    """

    state: Literal["ready", "running", "stopped", "exited", "stale", "restart"]
    stop: DebuggerStop | None = None
    frames: list[DebugFrame] = Field(max_length=MOST)
    index: Line | None = None
    exit_code: int | None = None
    checkpoints: list[str] = []
    changed: list[str] = []
    rest: list[str] = []


def read_answer(message: Mapping[str, JsonValue]) -> Answer | None:
    """An answer; None if the message is none."""
    return _read(Answer, message)


def read_announcement(message: Mapping[str, JsonValue]) -> Announcement | None:
    """An announcement; None if the message is none."""
    return _read(Announcement, message)


PartT = TypeVar("PartT", bound=_Part)


def _read(kind: type[PartT], message: Mapping[str, JsonValue]) -> PartT | None:
    if len(json.dumps(message)) > LONGEST:
        return None
    try:
        return kind.model_validate(dict(message))
    except ValidationError:
        return None
