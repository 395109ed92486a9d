"""The heuristics to beat: they run one tool, and report the place that it shows last or first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.episode.decisions import format_decision, turn_with_call
from gumshoe.collect.episode.tool_output import ToolOutput, tool_outputs
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.records import Completion, DebugFrame, Decision, Message, ToolSchema
from gumshoe.tools.runs.tracebacks import describe_frame
from gumshoe.tools.suspects import describe_suspect, shown_suspects

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


def last_frame(data: Mapping[str, Any]) -> tuple[DebugFrame, str] | None:
    """The last frame in the data of an `eval`, and words that quote it; frames of tests only if there is no other."""
    failing = [outcome for outcome in data.get("outcomes", ()) if outcome["outcome"] in ("failed", "error")]
    frames = [DebugFrame.model_validate(frame) for outcome in failing for frame in outcome.get("frames", ())]
    found = [(frame, describe_frame(frame)) for frame in frames]
    for printed in data.get("frames", ()):
        frame = DebugFrame.model_validate(printed)
        found.append((frame, frame.code or f"line {frame.line}"))
    own = [pair for pair in found if not holds_tests(pair[0].path)]
    return (own or found or [None])[-1]


def _end_of_traceback(output: ToolOutput) -> dict[str, JsonValue] | None:
    found = last_frame(output.data)
    if found is None:
        return None
    frame, quote = found
    return {
        "locations": [{"path": frame.path, "start": frame.line, "end": frame.line}],
        "findings": [{"claim": "last line of the traceback", "step": output.step, "quote": quote}],
        "hypothesis": f"The traceback ends at {frame.path}:{frame.line}.",
    }


def _first_suspect(output: ToolOutput) -> dict[str, JsonValue] | None:
    suspects = shown_suspects(output.data)
    if not suspects:
        return None
    first = suspects[0]
    return {
        "locations": [{"path": first["path"], "start": first["start"], "end": first["end"]}],
        "findings": [
            {"claim": "most suspicious function", "step": output.step, "quote": describe_suspect(first)},
        ],
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
