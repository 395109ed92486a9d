"""The heuristic that tries small changes in one suspect after another, and reports where one repairs everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.decisions import format_decision
from gumshoe.collect.evidence import MAX_QUOTE, FailingTest, failures, pack_arguments
from gumshoe.collect.tool_output import ToolOutput, tool_outputs
from gumshoe.errors import PolicyError
from gumshoe.records import Completion, ContextPack, Decision, Finding, Location, Message, ToolCall, ToolSchema
from gumshoe.tools.spans import MODULE
from gumshoe.tools.suspects import describe_suspect, shown_suspects
from gumshoe.tools.whatif import describe_change, effect_of

__all__ = ["VaryPolicy"]

NOTHING = "Running the tests shows no suspect."


class VaryPolicy:
    """Runs the tests, looks for suspects, varies the first ones until a change repairs everything, and reports.

    Args:
        suspects: the most suspects that are varied.
    """

    kind = "vary"
    model = ""
    trusted = True

    def __init__(self, *, suspects: int = 3) -> None:
        self._suspects = suspects

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The next turn; one without a call where nothing is suspected. Raises PolicyError if a tool is missing."""
        missing = {"eval", "suspects", "vary", "report"} - {tool.name for tool in tools}
        if missing:
            raise PolicyError(f"the policy vary needs the tool {', '.join(sorted(missing))}: list it in agent.tools")
        outputs = tool_outputs(messages)
        turn = len(outputs)
        if turn == 0:
            return _turn(turn, "I run the tests to see what fails.", "eval", {})
        if turn == 1:
            return _turn(turn, _failing(outputs), "suspects", {})
        suspects = [one for output in outputs if output.tool == "suspects" for one in shown_suspects(output.data)]
        if not suspects:
            return Completion(text=format_decision(Decision.REPORT, None, NOTHING))
        varied = [output for output in outputs if output.tool == "vary"]
        repair = _repair(varied)
        left = suspects[len(varied) : self._suspects]
        if left and repair is None and outputs[-1].tool != "report":
            arguments = {"path": left[0]["path"], "start": left[0]["start"], "end": left[0]["end"]}
            return _turn(turn, _why(suspects, varied), "vary", arguments)
        pack = _pack(outputs, suspects, repair)
        return _turn(turn, pack.hypothesis, "report", pack_arguments(pack), Decision.REPORT)


def _turn(
    turn: int, why: str, tool: str, arguments: dict[str, JsonValue], decision: Decision = Decision.SEEK
) -> Completion:
    call = ToolCall(id=f"call-{turn}", name=tool, arguments=arguments)
    return Completion(text=format_decision(decision, None, why), tool_calls=(call,), finish_reason="tool_calls")


def _failing(outputs: Sequence[ToolOutput]) -> str:
    failed = failures(outputs)
    where = failed[0].test.rpartition("::")[2] if failed else "the tests"
    return f"Which functions do the runs of {where} share?"


def _why(suspects: Sequence[Any], varied: Sequence[ToolOutput]) -> str:
    following = suspects[len(varied)]["function"]
    if not varied:
        return f"{following} is the first suspect: would a small change there help?"
    return f"No change in {suspects[len(varied) - 1]['function']} repairs it: {following} is next."


def _repair(varied: Sequence[ToolOutput]) -> tuple[int, Any] | None:
    """The first change that lets all failing tests pass and breaks none, with the step that showed it."""
    found = [(output.step, result) for output in varied for result in output.data.get("variants", ())]
    return next((one for one in found if effect_of(one[1]) == "repairs"), None)


def _pack(outputs: Sequence[ToolOutput], suspects: Sequence[Any], repair: tuple[int, Any] | None) -> ContextPack:
    findings = [_failure(one) for one in failures(outputs)[:1]]
    if repair is None:
        first = suspects[0]
        step = next(output.step for output in outputs if output.tool == "suspects")
        findings.append(Finding(claim="the first suspect", step=step, quote=describe_suspect(first)))
        hypothesis = f"No small change repairs it; {first['function']} is still the first suspect."
        return _made(first, first["start"], first["end"], findings, hypothesis)
    step, result = repair
    line, do = result["line"], result["do"]
    findings.append(Finding(claim="this change repairs it", step=step, quote=describe_change(result)))
    inside = [one for one in suspects if one["path"] == result["path"] and one["start"] <= line <= one["end"]]
    owner = max(inside, key=lambda one: one["start"], default={"path": result["path"], "function": MODULE})
    hypothesis = f"Line {line} is wrong: with `{do}` there, all failing tests pass and none breaks."
    return _made(owner, line, line, findings, hypothesis)


def _failure(one: FailingTest) -> Finding:
    quote = one.message if 0 < len(one.message) <= MAX_QUOTE else one.test
    return Finding(claim="how it fails", step=one.step, quote=quote)


def _made(owner: Any, start: int, end: int, findings: Sequence[Finding], hypothesis: str) -> ContextPack:
    symbol = None if owner["function"] == MODULE else owner["function"]
    place = Location(path=owner["path"], start=start, end=end, symbol=symbol)
    return ContextPack(locations=(place,), findings=tuple(findings), hypothesis=hypothesis)
