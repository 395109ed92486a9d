"""The heuristics to beat: they run one tool, and report the place that it shows last or first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.episode.decisions import format_decision, turn_with_call
from gumshoe.collect.episode.tool_output import ToolOutput, last_own_frame, tool_outputs
from gumshoe.records import Completion, DebugFrame, Decision, Fact, Message, ToolSchema
from gumshoe.tools.eval import failing_outcomes
from gumshoe.tools.suspects import shown_suspects

__all__ = ["SUSPECT", "TRACEBACK", "Heuristic", "last_frame"]


@dataclass
class Heuristic:
    """Two turns: a call of `tool`, and a report of the place that `find` sees in its output.

    Where `find` sees none, the second turn calls nothing, which ends the episode.
    """

    kind: str
    tool: str
    find: Callable[[ToolOutput], dict[str, JsonValue] | None]
    plan: str
    """Said with the first call."""
    found: str
    """Said with a report."""
    nothing: str
    """Said instead of a report."""

    model = ""
    trusted = True

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Calls the tool first, then reports."""
        del tools
        seen = tool_outputs(messages)
        if not seen:
            return turn_with_call(0, format_decision(Decision.SEEK, None, self.plan), self.tool)
        report = self.find(seen[0])
        if report is None:
            return Completion(text=format_decision(Decision.REPORT, None, self.nothing))
        return turn_with_call(1, format_decision(Decision.REPORT, None, self.found), "report", report)


def last_frame(data: Mapping[str, Any]) -> DebugFrame | None:
    """The last frame in the data of an `eval`; one of tests only if there is no other."""
    frames = [frame for outcome in failing_outcomes(data) for frame in outcome.frames]
    return last_own_frame([*frames, *(DebugFrame.model_validate(frame) for frame in data.get("frames", ()))])


def _citing(facts: Sequence[Fact], path: str, line: int, claim: str) -> list[JsonValue]:
    """A finding that cites the last fact about a line; none if no fact is about it."""
    there = [fact for fact in facts if (fact.probe.path, fact.probe.line) == (path, line)]
    return [{"fact": fact.number, "claim": claim} for fact in there[-1:]]


def _end_of_traceback(output: ToolOutput) -> dict[str, JsonValue] | None:
    frame = last_frame(output.data)
    if frame is None:
        return None
    return {
        "locations": [{"path": frame.path, "start": frame.line, "end": frame.line}],
        "findings": _citing(output.facts, frame.path, frame.line, "last line of the traceback"),
        "hypothesis": f"The traceback ends at {frame.path}:{frame.line}.",
    }


def _first_suspect(output: ToolOutput) -> dict[str, JsonValue] | None:
    suspects = shown_suspects(output.data)
    if not suspects:
        return None
    first = suspects[0]
    return {
        "locations": [{"path": first["path"], "start": first["start"], "end": first["end"]}],
        "findings": _citing(output.facts[:1], first["path"], first["lines"][0], "most suspicious function"),
        "hypothesis": f"The most suspicious function is in {first['path']}.",
    }


TRACEBACK = Heuristic(
    kind="traceback",
    tool="eval",
    find=_end_of_traceback,
    plan="I run the tests.",
    found="I report the last line of the traceback.",
    nothing="The tests show no traceback.",
)
"""Runs the tests, and reports the last line of the traceback that is in the repository's own code."""

SUSPECT = Heuristic(
    kind="suspect",
    tool="suspects",
    find=_first_suspect,
    plan="I look for suspects.",
    found="I report the first suspect.",
    nothing="Running the tests shows no suspect.",
)
"""Reports the function that comes first in the list of `suspects`."""
