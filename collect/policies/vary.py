"""The heuristic that tries small changes in one suspect after another, and reports where one helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.decisions import format_decision
from gumshoe.collect.evidence import failures, pack_arguments
from gumshoe.collect.tool_output import ToolOutput, tool_outputs
from gumshoe.errors import PolicyError
from gumshoe.records import Completion, ContextPack, Decision, Finding, Location, Message, ToolCall, ToolSchema
from gumshoe.tools.spans import MODULE
from gumshoe.tools.suspects import describe_suspect, shown_suspects
from gumshoe.tools.vary import HELPFUL
from gumshoe.tools.whatif import Effect, describe_change, describe_effect, effect_of

__all__ = ["VaryPolicy"]

NOTHING = "Running the tests shows no suspect."


class VaryPolicy:
    """Runs the tests, looks for suspects, varies them until a change helps, and reports where.

    A change that repairs everything is reported with its line, one that helps some failing tests and breaks none with
    its function. Without either, a function where changes help some tests and break others comes before the first
    suspect.

    Args:
        suspects: the most suspects that are varied.
    """

    kind = "vary"
    model = ""
    trusted = True

    def __init__(self, *, suspects: int = 5) -> None:
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
        best = _best(varied)
        left = suspects[len(varied) : self._suspects]
        if left and (best is None or best.effect == "mixed") and outputs[-1].tool != "report":
            arguments = {"path": left[0]["path"], "start": left[0]["start"], "end": left[0]["end"]}
            return _turn(turn, _why(suspects, varied), "vary", arguments)
        pack = _pack(outputs, suspects, best)
        return _turn(turn, pack.hypothesis, "report", pack_arguments(pack), Decision.REPORT)


@dataclass(frozen=True)
class _Helpful:
    """A change that lets failing tests pass: the step that showed it, where it was looked for, and the change."""

    step: int
    tried: Mapping[str, Any]
    change: Mapping[str, Any]

    @property
    def effect(self) -> Effect:
        return effect_of(self.change)


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
    return f"No change in {suspects[len(varied) - 1]['function']} helps enough: {following} is next."


def _best(varied: Sequence[ToolOutput]) -> _Helpful | None:
    """The first change of those with the best effect."""
    results = [
        _Helpful(output.step, output.data, change) for output in varied for change in output.data.get("variants", ())
    ]
    by_effect = {effect: [one for one in results if one.effect == effect] for effect in HELPFUL}
    return next((found[0] for found in by_effect.values() if found), None)


def _pack(outputs: Sequence[ToolOutput], suspects: Sequence[Any], best: _Helpful | None) -> ContextPack:
    findings = [Finding(claim="what fails", step=one.step, quote=one.test) for one in failures(outputs)[:1]]
    if best is None:
        first = suspects[0]
        step = next(output.step for output in outputs if output.tool == "suspects")
        findings.append(Finding(claim="the first suspect", step=step, quote=describe_suspect(first)))
        hypothesis = f"No small change helps; {first['function']} is still the first suspect."
        return _made(first, first["start"], first["end"], findings, hypothesis)
    findings.append(Finding(claim=_CLAIMS[best.effect], step=best.step, quote=_quote(best.change)))
    return _repaired(best, suspects, findings) if best.effect == "repairs" else _helped(best, suspects, findings)


_CLAIMS = {"repairs": "this change repairs it", "cures": "this change helps", "mixed": "this change helps in part"}


def _repaired(best: _Helpful, suspects: Sequence[Any], findings: Sequence[Finding]) -> ContextPack:
    path, line, do = (best.change[name] for name in ("path", "line", "do"))
    inside = [one for one in suspects if one["path"] == path and one["start"] <= line <= one["end"]]
    owner = max(inside, key=lambda one: one["start"], default={"path": path, "function": MODULE})
    change = f"with `{do}` there" if _is_plain(do) else "after a small change there"
    hypothesis = f"Line {line} is wrong: {change}, all failing tests pass and none breaks."
    return _made(owner, line, line, findings, hypothesis)


def _helped(best: _Helpful, suspects: Sequence[Any], findings: Sequence[Finding]) -> ContextPack:
    tried: dict[str, Any] = {name: best.tried[name] for name in ("path", "start", "end")}
    unknown: dict[str, Any] = {**tried, "function": MODULE}
    owner = next((one for one in suspects if tried.items() <= one.items()), unknown)
    hypothesis = f"Small changes in {owner['function']} help some of the failing tests: the cause is there."
    return _made(owner, owner["start"], owner["end"], findings, hypothesis)


def _quote(change: Mapping[str, Any]) -> str:
    whole = describe_change(change)
    return whole if _is_plain(whole) else describe_effect(change)


def _is_plain(text: str) -> bool:
    """Whether a text stands in JSON as it is: small models lose track of escapes."""
    return text.isprintable() and not set(text) & {'"', "\\"}


def _made(owner: Any, start: int, end: int, findings: Sequence[Finding], hypothesis: str) -> ContextPack:
    symbol = None if owner["function"] == MODULE else owner["function"]
    place = Location(path=owner["path"], start=start, end=end, symbol=symbol)
    return ContextPack(locations=(place,), findings=tuple(findings), hypothesis=hypothesis)
