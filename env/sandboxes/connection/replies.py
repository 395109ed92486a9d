"""What a warden may answer, operation by operation.

Programs in the sandbox must not be able to answer in the warden's place. Should one manage it all the same, the host
still takes nothing that does not have the operation's form.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gumshoe.errors import SandboxError

__all__ = ["Output", "check_reply", "text_of"]

Count = Annotated[int, Field(ge=0, lt=1 << 63)]
ExitCode = Annotated[int, Field(ge=0, lt=1 << 31)]
Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")]


Json = dict[str, Any]
"""Came out of `json.loads`, so it holds nothing but JSON; the tools read it with models of their own."""


class _Reply(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Output(_Reply):
    """An output as the warden kept it: both ends, and how many bytes were dropped between them."""

    head: Base64
    tail: Base64
    cut: Count


class _Run(_Reply):
    exit_code: ExitCode | None
    timed_out: bool
    duration_s: Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)]
    output: Output
    warm: bool
    cold: str | None


class _Opened(_Reply):
    session: str
    warm: bool
    cold: str | None


class _Exchange(_Reply):
    output: Output
    message: Json | None
    interim: list[Json]
    timed_out: bool
    exit_code: ExitCode | None


class _Poll(_Reply):
    exit_code: ExitCode | None


class _Grep(_Reply):
    matches: list[Annotated[tuple[str, Count, str], Field(strict=False)]]
    more: bool


class _Facts(_Reply):
    root: str
    state: str
    environment: dict[str, str]
    python: str


_GitSide = Annotated[tuple[Literal["100644", "100755", "120000"], Base64], Field(strict=False)]
"""A file or a link as git sees it: its mode and its content."""

_FORMS: Mapping[str, Any] = {
    "configure": _Facts,
    "ping": dict[str, int],
    "run": _Run,
    "read": Base64,
    "read_real": Annotated[tuple[str, Base64], Field(strict=False)],
    "real_path": str,
    "walk": list[Annotated[tuple[str, str, Count], Field(strict=False)]],
    "grep": _Grep,
    "snapshot": str,
    "changes": dict[str, Annotated[tuple[_GitSide | None, _GitSide | None], Field(strict=False)]],
    "session_open": _Opened,
    "session_read_until": _Exchange,
    "session_request": _Exchange,
    "session_wait_message": _Exchange,
    "session_poll": _Poll,
    "inspect": Json,
    "tampering": list[str],
}


def check_reply(op: str, reply: object) -> Any:
    """The reply as it came. Raises SandboxError where it does not have the form of the operation's replies."""
    try:
        _adapter(op).validate_python(reply)
    except ValidationError as error:
        raise SandboxError(f"the sandbox answered {op} with something else: {error.errors()[0]['msg']}") from None
    return reply


@functools.cache
def _adapter(op: str) -> TypeAdapter[Any]:
    return TypeAdapter[Any](_FORMS[op] if op in _FORMS else type(None))


def text_of(output: Mapping[str, Any]) -> tuple[str, bool]:
    """The text of an output and whether its middle was cut out. Bytes that are not UTF-8 are replaced."""
    head = base64.b64decode(output["head"])
    tail = base64.b64decode(output["tail"])
    if not output["cut"]:
        return (head + tail).decode("utf-8", "replace"), False
    mark = f"\n[... {output['cut']} bytes cut ...]\n"
    return head.decode("utf-8", "replace") + mark + tail.decode("utf-8", "replace"), True
