"""The investigator: it looks where it expects to learn the most, and reports when it is sure enough.

It keeps a belief about where the bug is, which is worked out anew from all that was observed, so that a replayed
episode comes to the same one. It knows no answer and asks no language model. The tool `suspects` gives the prior;
changes tried in memory (predicate switching, value replacement, mutants) are the evidence. Its report names the
likeliest places, what was seen there, and which suspects were ruled out and why.

    observations ──> form_belief ──> looks ──> the best worth its cost ──> a turn with its call
                         │             └─ none, or sure enough
                         ▼                       ▼
                     conclusion ──────────────> pack_of ──> report
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.collect.episode.tool_output import ToolOutput, first_failure, last_own_frame, stop_at, telling_values
from gumshoe.collect.policies.investigator.belief import Belief, SuspectFunction, TriedChange, form_belief
from gumshoe.collect.policies.investigator.looks import Look, looks
from gumshoe.collect.policies.investigator.words import Words
from gumshoe.collect.policies.strategy import Situation, Turn
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.records import ContextPack, DebugFrame, Decision, Finding, Location, RuledOut
from gumshoe.tools.code.statements import Statement
from gumshoe.tools.eval import failing_outcomes
from gumshoe.tools.runs.forked_runs import HELPFUL
from gumshoe.tools.runs.tracebacks import describe_frame

NOTHING = "Nothing that can be run here points to a place."
CHOICE_NOISE = 0.25
"""How much the choice among looks varies: the standard deviation of the noise on the logarithm of their worth."""
NARROW = 0.5
"""A statement stands for its function once it has this share of the function's probability."""
WORTH_NAMING = 0.15
MOST_PLACES, MOST_RULED_OUT, MOST_TRIALS = 3, 4, 1
MOST_VALUES = 2


class Investigator:
    """The strategy of one episode.

    Args:
        sure: the probability of the first location at which it reports.
        patience: the worth, in bits for each run of the tests, below which another look is not taken.
        turns: maximum number of looks.
    """

    kind = "investigator"
    tools = frozenset({"report"})

    def __init__(self, *, sure: float = 0.9, patience: float = 0.02, turns: int = 24) -> None:
        self._sure = sure
        self._patience = patience
        self._turns = turns

    def choose(self, situation: Situation) -> Turn:
        """The best look, or the report."""
        outputs = situation.outputs
        belief = form_belief(outputs)
        probability = conclusion(belief).probability
        words = Words(situation.rng, belief, outputs)
        found = looks(belief, outputs, situation.offered)
        tested = bool(belief.trials) or all(look.kind not in ("view", "whatif") for look in found)
        # It is never sure enough without an experiment.
        is_sure = tested and probability >= self._sure
        look = None if is_sure or situation.turn >= self._turns else self._best(found, situation.rng)
        if look is not None:
            return Turn(Decision.SEEK, probability, words.before(look), look.kind, look.arguments)
        pack = pack_of(belief, outputs, words, values=situation.last("report") is None)
        if pack is None:
            return Turn(Decision.REPORT, 0.0, NOTHING)
        return situation.report(pack, probability, words.at_the_end(pack))

    def _best(self, found: Sequence[Look], rng: random.Random) -> Look | None:
        """The look that is worth the most, give or take some noise; None if none is worth its cost."""
        worthwhile = [look for look in found if look.worth >= self._patience]
        return max(worthwhile, key=lambda look: look.worth * rng.lognormvariate(0, CHOICE_NOISE), default=None)


@dataclass(frozen=True)
class Conclusion:
    """The likeliest place, and the probability that the bug is there."""

    function: SuspectFunction | None
    statement: Statement | None
    probability: float


def conclusion(belief: Belief) -> Conclusion:
    """Where the bug is, as far as one can tell: a statement if one stands out, else a function."""
    ranked = belief.ranked()
    return _place(belief, ranked[0]) if ranked else Conclusion(None, None, 0.0)


def _place(belief: Belief, function: SuspectFunction) -> Conclusion:
    probability = belief.functions[function]
    best = next(iter(belief.statements_of(function)), None)
    if best is not None and belief.statements[best] >= NARROW * probability:
        return Conclusion(function, best, belief.statements[best])
    return Conclusion(function, None, probability)


def pack_of(belief: Belief, outputs: Sequence[ToolOutput], words: Words, *, values: bool = True) -> ContextPack | None:
    """The report; None if nothing points anywhere. Without `values`, it cites no values from the debugger."""
    ranked = belief.ranked()
    if not ranked:
        return _pack_of_traceback(outputs, words)
    first = conclusion(belief)
    named = [function for function in ranked[:MOST_PLACES] if belief.functions[function] >= WORTH_NAMING]
    places = [_place(belief, function) for function in named or ranked[:1]]
    return ContextPack(
        locations=tuple(_location(place, words) for place in places),
        findings=tuple(_findings(belief, outputs, first, words, values=values)),
        failing_frame=_failing_frame(outputs),
        ruled_out=tuple(ruled_out(belief, named or ranked[:1], words)),
        hypothesis=_hypothesis(belief, first, words),
    )


def pack_so_far(outputs: Sequence[ToolOutput]) -> ContextPack | None:
    """The report on what any policy has seen up to now; None if nothing points anywhere."""
    belief = form_belief(outputs)
    return pack_of(belief, outputs, Words(random.Random(0), belief, outputs))


def _hypothesis(belief: Belief, place: Conclusion, words: Words) -> str:
    function, statement = place.function, place.statement
    assert function is not None
    if statement is None:
        return words.hypothesis(f"{function.name} ({function.place})", "", best_trial(belief, place))
    where, goes_on = f"{function.name} ({statement.place})", statement.end > statement.line
    return words.hypothesis(where, statement.code, best_trial(belief, place), goes_on=goes_on)


def best_trial(belief: Belief, place: Conclusion) -> TriedChange | None:
    """The change at a place that did the most for the failing tests."""
    return next(iter(_useful(belief, place)), None)


def _is_at(trial: TriedChange, place: Conclusion) -> bool:
    if place.statement is not None:
        return (trial.path, trial.line) == (place.statement.path, place.statement.line)
    return place.function is not None and place.function.holds(trial.path, trial.line)


def _location(place: Conclusion, words: Words) -> Location:
    function, statement = place.function, place.statement
    assert function is not None
    start, end = (function.start, function.end) if statement is None else (statement.line, statement.end)
    repaired = any(one.effect == "fixes_all" and _is_at(one, place) for one in words.belief.trials)
    why = words.why(place.probability, repaired=repaired)
    return Location(path=function.path, start=start, end=end, symbol=function.name, why=why)


def _findings(
    belief: Belief, outputs: Sequence[ToolOutput], first: Conclusion, words: Words, *, values: bool
) -> list[Finding]:
    """How it fails, what experiments and values at the place have shown, why it was suspected."""
    failing = first_failure(outputs)
    found = [failing[1].finding(words.fails(failing[0]))] if failing else []
    found += [one.fact.finding(words.effect(one)) for one in _useful(belief, first) if one.fact]
    function = first.function
    if function is not None:
        found += [
            one for output in outputs if values or output.tool != "pdb" for one in _seen_in(function, output, words)
        ]
        found = found or [one for output in outputs for one in _suspected(function, output, words)]
    return found


def _useful(belief: Belief, place: Conclusion) -> list[TriedChange]:
    """The changes at a place that did something for the failing tests, best first."""
    there = [one for one in belief.trials if one.effect in HELPFUL and _is_at(one, place)]
    return sorted(there, key=lambda one: (HELPFUL.index(one.effect), len(one.fails) - len(one.passes)))[:MOST_TRIALS]


def _seen_in(function: SuspectFunction, output: ToolOutput, words: Words) -> list[Finding]:
    """What one observation says of a function."""
    if stop_at(output, function.path, range(function.start, function.end + 1)) is None:
        return []
    return [fact.finding(words.value(name, function)) for name, fact in telling_values(output)[:MOST_VALUES]]


def _suspected(function: SuspectFunction, output: ToolOutput, words: Words) -> list[Finding]:
    """That a function was a suspect: this tells little, so it counts only if there is nothing else."""
    facts = output.facts if output.tool == "suspects" else ()
    there = [fact for fact in facts if function.holds(fact.probe.path, fact.probe.line)]
    return [fact.finding(words.suspicious(function)) for fact in there[:1]]


def ruled_out(belief: Belief, named: Sequence[SuspectFunction], words: Words) -> list[RuledOut]:
    """Suspects that are not named, with what speaks against them."""
    found: list[RuledOut] = []
    for function in belief.ranked():
        if function in named or len(found) == MOST_RULED_OUT:
            continue
        there = [one for one in belief.trials if function.holds(one.path, one.line)]
        found.append(RuledOut(what=f"{function.name} ({function.place})", why=words.against(there)))
    return found


def _failing_frame(outputs: Sequence[ToolOutput]) -> DebugFrame | None:
    return last_own_frame([frame for output in outputs if output.tool == "eval" for frame in _frames_in(output)])


def _frames_in(output: ToolOutput) -> list[DebugFrame]:
    """The frames of failing tests that the text of an `eval` shows: it names only some tests."""
    found = [frame for outcome in failing_outcomes(output.data) for frame in outcome.frames]
    printed = [DebugFrame.model_validate(frame) for frame in output.data.get("frames", ())]
    return [
        *(frame for frame in found if describe_frame(frame) in output.text),
        *(frame for frame in printed if f"line {frame.line}" in output.text),
    ]


def _pack_of_traceback(outputs: Sequence[ToolOutput], words: Words) -> ContextPack | None:
    """If there are no suspects, the last frame of the traceback, if that is in the code under test."""
    frame = _failing_frame(outputs)
    if frame is None or holds_tests(frame.path):
        return None
    facts = [fact for output in outputs if output.tool == "eval" for fact in output.facts]
    there = [fact for fact in facts if (fact.probe.path, fact.probe.line) == (frame.path, frame.line)]
    return ContextPack(
        locations=(Location(path=frame.path, start=frame.line, end=frame.line, why=words.raised()),),
        findings=tuple(fact.finding(words.raised()) for fact in there[:1]),
        failing_frame=frame,
        hypothesis=f"It fails at {frame.path}:{frame.line}.",
    )
