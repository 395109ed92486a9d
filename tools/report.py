"""`report`: the seeker reports what it found."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import ContextPack, DebugFrame, Decision, Finding, Location, Observation, RuledOut
from gumshoe.tools.base import BaseTool
from gumshoe.tools.text import plural

__all__ = ["PACK_TOKENS", "Report", "pack_tokens"]

PACK_TOKENS = 2000
"""Tokens a pack may have, counted as `pack_tokens` does."""

_CHARACTERS_PER_TOKEN = 4


class _LocationArgument(BaseModel):
    """A location as a model writes it: `end` may be left out."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    start: int = Field(ge=1)
    end: int | None = None
    symbol: str | None = None
    why: str | None = None

    def to_record(self) -> Location:
        end = self.end if self.end is not None else self.start
        return Location(path=self.path, start=self.start, end=end, symbol=self.symbol or None, why=self.why or "")


def _shape(required: str, optional: str = "") -> dict[str, Any]:
    """The schema of an object from `name:type` words; types are s (string) and i (integer)."""
    types = {"s": "string", "i": "integer"}
    fields = [word.split(":") for word in f"{required} {optional}".split()]
    return {
        "type": "object",
        "properties": {name: {"type": types[kind]} for name, kind in fields},
        "required": [word.split(":")[0] for word in required.split()],
    }


def _list(items: dict[str, Any]) -> WithJsonSchema:
    return WithJsonSchema({"type": "array", "items": items})


_Locations = Annotated[list[_LocationArgument], _list(_shape("path:s start:i end:i", "symbol:s why:s"))]
_Findings = Annotated[list[Finding], _list(_shape("claim:s step:i quote:s"))]
_RuledOut = Annotated[list[RuledOut], _list(_shape("what:s why:s"))]
_Frame = Annotated[DebugFrame, WithJsonSchema(_shape("path:s line:i function:s"))]


class Report(BaseTool):
    """Takes a ContextPack apart into arguments. The environment ends the episode."""

    name = "report"
    decision = Decision.REPORT

    def run(
        self,
        workspace: Workspace,
        locations: _Locations,
        findings: _Findings,
        hypothesis: str,
        ruled_out: _RuledOut | None = None,
        failing_frame: _Frame | None = None,
    ) -> Observation:
        """Hand over what you found. Ends the search.

        Args:
            locations: where the bug is, best first
            findings: facts, each with the step that showed it and words quoted from it
            hypothesis: what is wrong
            ruled_out: innocent suspects
            failing_frame: frame that fails
        """
        if not locations:
            raise ToolFailure("bad_arguments", f"locations is empty: give at least one. Usage: {self.signature.usage}")
        pack = ContextPack(
            locations=tuple(self._location(location) for location in locations),
            findings=tuple(findings),
            failing_frame=failing_frame,
            ruled_out=tuple(ruled_out or ()),
            hypothesis=hypothesis,
        )
        tokens = pack_tokens(pack)
        if tokens > PACK_TOKENS:
            raise ToolFailure("too_long", f"the report has {tokens} tokens of {PACK_TOKENS}: keep the best of it")
        text = f"reported {plural(len(pack.locations), 'location')}, {plural(len(pack.findings), 'finding')}"
        return self.observe(text, {"context_pack": pack.model_dump(mode="json"), "tokens": tokens})

    def _location(self, location: _LocationArgument) -> Location:
        if location.end is not None and location.end < location.start:
            raise ToolFailure("bad_arguments", f"location {location.path}: end is before start")
        return location.to_record()


def pack_tokens(pack: ContextPack) -> int:
    """About how many tokens the pack costs its reader: its JSON at four characters a token."""
    return -(-len(pack.model_dump_json(exclude_defaults=True)) // _CHARACTERS_PER_TOKEN)
