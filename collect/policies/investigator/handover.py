"""What the investigator hands over: the likeliest places, what was seen of them, and who was ruled out and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.collect.evidence import failures, stop_at, telling_values
from gumshoe.collect.policies.investigator.belief import Belief, Function, Trial
from gumshoe.collect.policies.investigator.statements import Statement
from gumshoe.collect.policies.investigator.words import Words
from gumshoe.collect.tool_output import ToolOutput
from gumshoe.records import ContextPack, DebugFrame, Finding, Location, RuledOut
from gumshoe.tools.inside.gumshoe_project import holds_tests
from gumshoe.tools.suspects import describe_suspect, shown_suspects
from gumshoe.tools.tracebacks import describe_frame

__all__ = ["Conclusion", "conclusion", "pack_of"]

NARROW = 0.5
"""A statement stands for its function once it has so much of the function's probability."""
WORTH_NAMING = 0.15
MOST_PLACES, MOST_RULED_OUT, MOST_TRIALS = 3, 4, 3
LONGEST_QUOTE = 160


@dataclass(frozen=True)
class Conclusion:
    """The likeliest place, and the probability that the bug is there."""

    function: Function | None
    statement: Statement | None
    probability: float


def conclusion(belief: Belief) -> Conclusion:
    """Where the bug is, as far as one can tell: a statement where that stands out, else a function."""
    ranked = belief.ranked()
    return _place(belief, ranked[0]) if ranked else Conclusion(None, None, 0.0)


def _place(belief: Belief, function: Function) -> Conclusion:
    probability = belief.functions[function]
    best = next(iter(belief.statements_of(function)), None)
    if best is not None and belief.statements[best] >= NARROW * probability:
        return Conclusion(function, best, belief.statements[best])
    return Conclusion(function, None, probability)


def pack_of(belief: Belief, outputs: Sequence[ToolOutput], words: Words) -> ContextPack | None:
    """The report; None where nothing points anywhere."""
    ranked = belief.ranked()
    if not ranked:
        return _pack_of_traceback(outputs, words)
    first = conclusion(belief)
    named = [function for function in ranked[:MOST_PLACES] if belief.functions[function] >= WORTH_NAMING]
    places = [_place(belief, function) for function in named or ranked[:1]]
    return ContextPack(
        locations=tuple(_location(place, words) for place in places),
        findings=tuple(_findings(belief, outputs, first, words)),
        failing_frame=_failing_frame(outputs),
        ruled_out=tuple(_ruled_out(belief, named or ranked[:1], words)),
        hypothesis=words.hypothesis(first.function, first.statement, best_trial(belief, first)),
    )


def best_trial(belief: Belief, place: Conclusion) -> Trial | None:
    """The change at a place that did most for the failing tests."""
    order = {"repairs": 0, "cures": 1, "mixed": 2}
    if place.function is None:
        return None
    there = [one for one in belief.trials if one.effect in order and _is_at(one, place)]
    return min(there, key=lambda one: order[one.effect], default=None)


def _is_at(trial: Trial, place: Conclusion) -> bool:
    if place.statement is not None:
        return (trial.path, trial.line) == (place.statement.path, place.statement.line)
    return place.function is not None and place.function.holds(trial.path, trial.line)


def _location(place: Conclusion, words: Words) -> Location:
    function, statement = place.function, place.statement
    assert function is not None
    start, end = (function.start, function.end) if statement is None else (statement.line, statement.end)
    return Location(path=function.path, start=start, end=end, symbol=function.name, why=words.why(place.probability))


def _findings(belief: Belief, outputs: Sequence[ToolOutput], first: Conclusion, words: Words) -> list[Finding]:
    found: list[Finding] = []
    for failure in failures(outputs)[:1]:
        quote = failure.message if len(failure.message) <= LONGEST_QUOTE else failure.test
        found.append(Finding(claim=words.fails(failure), step=failure.step, quote=quote))
    found += [
        Finding(claim=words.effect(one), step=one.step, quote=one.quote)
        for one in sorted(
            belief.trials,
            key=lambda one: (
                ("repairs", "cures", "mixed").index(one.effect) if one.effect in ("repairs", "cures", "mixed") else 9
            ),
        )
        if one.effect in ("repairs", "cures", "mixed") and _is_at(one, first)
    ][:MOST_TRIALS]
    function = first.function
    for output in outputs if function else ():
        assert function is not None
        if stop_at(output, function.path, range(function.start, function.end + 1)):
            names = {name for result in output.data["results"] for name, _ in result.get("values", ())}
            found += [
                Finding(claim=words.value(name, function), step=output.step, quote=line)
                for name, line in telling_values(output, names)[:2]
            ]
    for output in outputs:
        for suspect in shown_suspects(output.data) if output.tool == "suspects" and function else ():
            if function is not None and (suspect["path"], suspect["start"]) == (function.path, function.start):
                claim = words.suspicious(function)
                found.append(Finding(claim=claim, step=output.step, quote=describe_suspect(suspect)))
    return found


def _ruled_out(belief: Belief, named: Sequence[Function], words: Words) -> list[RuledOut]:
    """Suspects that are not named, with what speaks against them."""
    found: list[RuledOut] = []
    for function in belief.ranked():
        if function in named or len(found) == MOST_RULED_OUT:
            continue
        there = [one for one in belief.trials if function.holds(one.path, one.line)]
        found.append(RuledOut(what=f"{function.name} ({function.place})", why=words.against(function, there)))
    return found


def _failing_frame(outputs: Sequence[ToolOutput]) -> DebugFrame | None:
    frames = _frames(outputs)
    own = [frame for _, frame in frames if not holds_tests(frame.path)]
    return (own or [frame for _, frame in frames] or [None])[-1]


def _frames(outputs: Sequence[ToolOutput]) -> list[tuple[int, DebugFrame]]:
    """The frames of failing tests that `eval` has shown, with the step."""
    return [
        (output.step, DebugFrame.model_validate(frame))
        for output in outputs
        if output.tool == "eval"
        for frame in [
            *(
                frame
                for outcome in output.data.get("outcomes", ())
                if outcome["outcome"] in ("failed", "error")
                for frame in outcome.get("frames", ())
            ),
            *output.data.get("frames", ()),
        ]
    ]


def _pack_of_traceback(outputs: Sequence[ToolOutput], words: Words) -> ContextPack | None:
    """Where there are no suspects, the last frame of the traceback."""
    frames = _frames(outputs)
    frame = _failing_frame(outputs)
    if frame is None:
        return None
    step = next(step for step, one in frames if one == frame)
    quote = describe_frame(frame) if frame.code else f"line {frame.line}"
    return ContextPack(
        locations=(Location(path=frame.path, start=frame.line, end=frame.line, why=words.raised()),),
        findings=(Finding(claim=words.raised(), step=step, quote=quote),),
        failing_frame=frame,
        hypothesis=words.hypothesis_of_frame(frame),
    )
