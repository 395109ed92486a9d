"""The heuristics to beat: they run one tool, and report the place that it shows last or first.

`vary` also tries small changes in the suspects, and reports where one helps. If the agent has `pdb`, it also stops
there, and cites what it sees last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gumshoe.collect.episode.tool_output import ToolOutput, fact_of_change, first_failure, last_own_frame, stop_at
from gumshoe.collect.policies.strategy import Situation, Turn
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.records import ContextPack, DebugFrame, Decision, Fact, Finding, Location
from gumshoe.tools.eval import failing_outcomes
from gumshoe.tools.runs.forked_runs import ChangeResult, Effect, read_changes
from gumshoe.tools.suspects import shown_suspects
from gumshoe.tools.whatif import helpful, stop_command

NOTHING = "Running the tests shows no suspect."
CLAIMS: dict[Effect, str] = {
    "fixes_all": "this change repairs it",
    "fixes_some": "this change helps",
    "trades": "this change helps in part",
}
SURE: dict[Effect | None, float] = {"fixes_all": 0.8, "fixes_some": 0.6, "trades": 0.6, None: 0.4}
"""The confidence in a report, by what a change did there: how often the place held a line of the fix on bugs of
thirteen packages, none of them in configs/results/held_out.txt. 40 of 51 where it repairs, 28 of 48 where it helps, 19
of 45 where nothing helps."""


@dataclass
class OneLook:
    """Calls one tool, and reports the place that `find` sees in its answer. Without a place, the episode ends.

    `plan` is said with the call, `found` with the report, `nothing` instead of a report.
    """

    kind: str
    tool: str
    find: Callable[[ToolOutput], ContextPack | None]
    plan: str
    found: str
    nothing: str

    @property
    def tools(self) -> frozenset[str]:
        """Those that it cannot do without."""
        return frozenset({self.tool, "report"})

    def choose(self, situation: Situation) -> Turn:
        """The call, then the report."""
        output = situation.last(self.tool)
        if output is None:
            return Turn(Decision.SEEK, None, self.plan, self.tool)
        pack = self.find(output)
        if pack is None:
            return Turn(Decision.REPORT, None, self.nothing)
        return situation.report(pack, None, self.found)


def last_frame(data: Mapping[str, Any]) -> DebugFrame | None:
    """The last frame in the data of an `eval`; one of tests only if there is no other."""
    frames = [frame for outcome in failing_outcomes(data) for frame in outcome.frames]
    return last_own_frame([*frames, *(DebugFrame.model_validate(frame) for frame in data.get("frames", ()))])


def _end_of_traceback(output: ToolOutput) -> ContextPack | None:
    frame = last_frame(output.data)
    if frame is None or holds_tests(frame.path):
        return None
    place = Location(path=frame.path, start=frame.line, end=frame.line)
    findings = _citing(output.facts, frame.path, frame.line, "last line of the traceback")
    return ContextPack(
        locations=(place,), findings=findings, hypothesis=f"The traceback ends at {frame.path}:{frame.line}."
    )


def _first_suspect(output: ToolOutput) -> ContextPack | None:
    suspects = shown_suspects(output.data)
    if not suspects:
        return None
    first = suspects[0]
    place = Location(path=first["path"], start=first["start"], end=first["end"])
    findings = _citing(output.facts[:1], place.path, min(first["lines"], default=0), "likeliest function")
    return ContextPack(locations=(place,), findings=findings, hypothesis=f"The likeliest function is in {place.path}.")


def _citing(facts: Sequence[Fact], path: str, line: int, claim: str) -> tuple[Finding, ...]:
    """A finding that cites the last fact about a line; none if no fact is about it."""
    there = [fact for fact in facts if (fact.probe.path, fact.probe.line) == (path, line)]
    return tuple(fact.finding(claim) for fact in there[-1:])


TRACEBACK = OneLook(
    kind="traceback",
    tool="eval",
    find=_end_of_traceback,
    plan="I run the tests.",
    found="I report the last line of the traceback.",
    nothing="The tests show no traceback through the code under test.",
)
"""Runs the tests, and reports the last line of the traceback that is in the repository's own code, tests left out."""

SUSPECT = OneLook(
    kind="suspect",
    tool="suspects",
    find=_first_suspect,
    plan="I look for suspects.",
    found="I report the first suspect.",
    nothing=NOTHING,
)
"""Reports the function that comes first in the list of `suspects`."""


class VarySuspects:
    """Runs the tests, looks for suspects, varies them, and reports where a change helps, or else the first suspect.

    With `pdb`, it stops at that place before it reports.
    """

    kind = "vary"
    tools = frozenset({"eval", "suspects", "vary", "report"})

    def choose(self, situation: Situation) -> Turn:
        """The next turn; one without a call if nothing is suspected."""
        if situation.last("eval") is None:
            return Turn(Decision.SEEK, None, "I run the tests to see what fails.", "eval")
        listed, varied, stopped = (situation.last(tool) for tool in ("suspects", "vary", "pdb"))
        if listed is None:
            return Turn(Decision.SEEK, None, "Which functions do the failing tests run?", "suspects")
        suspects = shown_suspects(listed.data)
        if not suspects:
            return Turn(Decision.REPORT, None, NOTHING)
        if varied is None:
            return Turn(Decision.SEEK, None, f"Where in {suspects[0]['function']} does a small change help?", "vary")
        place = varied.data.get("place") or {**suspects[0], "symbol": suspects[0]["function"]}
        if "pdb" in situation.offered and stopped is None:
            why = f"What are the values at line {place['start']}?"
            return Turn(Decision.SEEK, None, why, "pdb", {"command": stop_command(place)})
        best = next(iter(helpful(read_changes(varied.data))), None)
        if best is not None and not _holds(place, best):
            best = None
        pack = _pack(situation.outputs, listed, place, varied, best)
        thought = pack.hypothesis
        value = _seen_at(place, stopped) if stopped is not None else None
        if value is not None:  # The fewer words a report has, the fewer a small model can get wrong.
            pack = pack.model_copy(update={"findings": (value,), "hypothesis": ""})
            thought = "I report this place."
        return situation.report(pack, SURE[None if best is None else best.effect], thought)


def _holds(place: Mapping[str, Any], change: ChangeResult) -> bool:
    return place["path"] == change.path and place["start"] <= change.line <= place["end"]


def _seen_at(place: Mapping[str, Any], stopped: ToolOutput) -> Finding | None:
    """What the debugger showed last at the place, as a rule a value; None if it did not stop there.

    The last fact of an observation is the easiest one to learn to cite.
    """
    stop = stop_at(stopped, place["path"], range(place["start"], place["end"] + 1))
    return stopped.facts[-1].finding("seen where it stopped") if stop and stopped.facts else None


def _pack(
    outputs: Sequence[ToolOutput],
    listed: ToolOutput,
    place: Mapping[str, Any],
    varied: ToolOutput,
    best: ChangeResult | None,
) -> ContextPack:
    if best is None:
        found = [fact.finding("the first suspect") for fact in listed.facts[:1]]
        hypothesis = f"No small change helps enough; {place['symbol']} is still the first suspect."
    else:
        fact = fact_of_change(varied, best)
        found = [fact.finding(CLAIMS[best.effect])] if fact else []
        hypothesis = _hypothesis(best, place)
    if failing := first_failure(outputs):
        found = [failing[1].finding("what fails"), *found]
    location = Location(path=place["path"], start=place["start"], end=place["end"])
    return ContextPack(locations=(location,), findings=tuple(found), hypothesis=hypothesis)


def _hypothesis(best: ChangeResult, place: Mapping[str, Any]) -> str:
    """Without the code of the change: a small model that writes code into its thought loses track of the call."""
    if best.effect != "fixes_all":
        return f"Small changes in {place['symbol']} help some of the failing tests: the cause is there."
    return f"Line {best.line} is wrong: after a small change there, all failing tests pass and none breaks."
