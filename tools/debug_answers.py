"""What the debugger may answer. Its process also runs the code under test: nothing in an answer is taken on trust."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from gumshoe.records import DebugFrame

__all__ = ["read_answer", "read_breakpoints"]

LONGEST = 1 << 20
"""Characters of an answer; the debugger shortens whatever it shows."""
MOST, MOST_BREAKPOINTS = 1000, 200
Line = Annotated[int, Field(ge=0, lt=1 << 31)]
SourceLine = tuple[Line, str]


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Stop(_Part):
    path: str
    line: Line
    function: str
    reason: str
    source: list[Annotated[SourceLine, Field(strict=False)]] = Field(max_length=MOST)
    breakpoint: JsonValue = None
    test: str | None = None


class _Result(_Part):
    command: str
    output: str
    stop: _Stop | None = None


class _Breakpoint(_Part):
    number: Line
    path: str
    line: Line
    condition: str | None = None
    temporary: bool = False
    ignore: Line = 0
    enabled: bool = True


class _Breakpoints(_Part):
    breakpoints: list[_Breakpoint] = Field(max_length=MOST_BREAKPOINTS)


class _Answer(_Breakpoints):
    state: Literal["ready", "running", "stopped", "exited", "stale", "restart"]
    results: list[_Result] = Field(max_length=MOST)
    stop: _Stop | None = None
    frames: list[DebugFrame] = Field(max_length=MOST)
    index: Line | None = None
    exit_code: int | None = None
    checkpoints: list[str] = []
    changed: list[str] = []
    rest: list[str] = []


def read_answer(message: Mapping[str, JsonValue]) -> dict[str, Any] | None:
    """An answer as plain data; None where it is not one."""
    return _read(_Answer, message)


def read_breakpoints(message: Mapping[str, JsonValue]) -> list[dict[str, Any]] | None:
    """The table of breakpoints in an announcement; None where there is none."""
    found = _read(_Breakpoints, message)
    return None if found is None else found["breakpoints"]


def _read(kind: type[BaseModel], message: Mapping[str, JsonValue]) -> dict[str, Any] | None:
    """The message as plain data, with the fields of its own that were left out, but not those of its parts."""
    if len(json.dumps(message)) > LONGEST:
        return None
    try:
        read = kind.model_validate(dict(message))
    except ValidationError:
        return None
    missing: dict[str, Any] = {
        name: getattr(read, name) for name in kind.model_fields if name not in read.model_fields_set
    }
    return {**missing, **read.model_dump(mode="json", exclude_unset=True)}
