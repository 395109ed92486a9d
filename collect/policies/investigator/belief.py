"""Where the bug may be, and how likely: a belief over functions and, once they were viewed, their statements.

The prior is what `suspects` says. Each change that `whatif` tried is evidence about the statement it was tried at, by
Bayes' rule: making all failing tests pass is far more likely where the bug is than elsewhere, and changing nothing is a
little less likely. If only a few of several failing tests pass, that says next to nothing: any change that keeps a test
from reaching the place of its failure can do that.

The likelihoods are counted in episodes on synthetic bugs: most of them on 192 of toolz, itsdangerous, h11, boltons,
blinker and markupsafe, `FALSE_REPAIR` on 206 of 18 packages. No figure should be measured on any of these packages:
`configs/eval/investigator.yaml` leaves them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gumshoe.collect.episode.tool_output import ToolOutput, fact_of_change, seen_code
from gumshoe.records import Fact
from gumshoe.tools.code.small_changes import changes_at
from gumshoe.tools.code.statements import Statement, statements_in
from gumshoe.tools.eval import failing_outcomes
from gumshoe.tools.runs.forked_runs import ChangeResult, read_changes
from gumshoe.tools.runs.tracebacks import own_frames
from gumshoe.tools.suspects import shown_suspects
from gumshoe.tools.trace import MOST_CALLS

RAISED_THERE = 2.0
"""How many times likelier a statement is if the exception went through it."""
UNREMARKABLE, HEADER, UNREACHED = 0.25, 0.1, 0.05
"""How likely a statement is compared to one of the most suspicious of its function: an unremarkable one; the line
with the `def`; one that no failing test reaches.
"""
IDLE = 5.0
"""How much likelier a statement that does nothing makes its function, all of it due to that statement: a value that
nobody uses is often one that should have been returned. Fitted as the weights of the prior were.
"""
FALSE_REPAIR = 0.0005
"""How often a change at an innocent statement makes all failing tests pass: 6 of 11,280 in the episodes on 206
synthetic bugs in 18 packages, no matter how many tests fail.
"""
RARE = 0.05
"""How likely a change of an unknown kind is to repair a wrong statement."""
REPAIRABLE = 0.6
"""The share of bugs that all changes at their statement together would repair."""
HELPS_SOME, HELPS_MOST = 1.2, 5.0
"""How many times likelier it is where the bug is than elsewhere that a change makes some failing tests pass and breaks
none: for very few of them, and how much is added for all of them, growing with the cube of their share.
"""
HARMS_TOO, HELPS_ALL = 0.4, 6.0
"""The same for a change that also breaks other tests, as any change does that keeps tests from the code; and how much
is added if all failing tests pass, the less the more tests break.
"""
SAME_CALLS, NO_CALLS, OTHER_OUTCOME = 0.5, 0.2, 1.5
"""How many times as likely a function is if all its calls in failing tests are as in passing ones; if it is not called
there; if equal arguments lead to a different outcome there.
"""


@dataclass(frozen=True)
class SuspectFunction:
    """A function that failing tests run or name: a hypothesis.

    `lines` are its most suspicious ones, `raised` those that the exception went through.
    """

    path: str
    name: str
    start: int
    end: int
    weight: float
    lines: frozenset[int] = frozenset()
    raised: frozenset[int] = frozenset()

    @property
    def place(self) -> str:
        """`PATH:LINE` of its first line."""
        return f"{self.path}:{self.start}"

    def holds(self, path: str, line: int) -> bool:
        """Whether a line is in it."""
        return path == self.path and self.start <= line <= self.end


class TriedChange(ChangeResult):
    """What came of a change that `whatif` tried, the step in which it did, and the fact of that."""

    step: int
    fact: Fact | None = None


@dataclass
class Belief:
    """Probabilities that add up to 1 with `elsewhere`. `statements` holds those of the functions that were viewed."""

    functions: dict[SuspectFunction, float] = field(default_factory=dict)
    statements: dict[Statement, float] = field(default_factory=dict)
    elsewhere: float = 1.0
    trials: list[TriedChange] = field(default_factory=list)

    def ranked(self) -> list[SuspectFunction]:
        """The functions, likeliest first."""
        return sorted(self.functions, key=lambda function: -self.functions[function])

    def ranked_statements(self) -> list[Statement]:
        """The statements, likeliest first."""
        return sorted(self.statements, key=lambda statement: -self.statements[statement])

    def is_viewed(self, function: SuspectFunction) -> bool:
        """Whether its statements are known."""
        return any(function.holds(statement.path, statement.line) for statement in self.statements)

    def statements_of(self, function: SuspectFunction) -> list[Statement]:
        """The statements of a function that was viewed, likeliest first."""
        return [each for each in self.ranked_statements() if self.function_of(each.path, each.line) == function]

    def function_of(self, path: str, line: int) -> SuspectFunction | None:
        """The innermost function that holds a line."""
        around = [function for function in self.functions if function.holds(path, line)]
        return min(around, key=lambda function: function.end - function.start, default=None)


def form_belief(outputs: Sequence[ToolOutput]) -> Belief:
    """What the observations so far say about where the bug is."""
    functions = _functions(outputs)
    tried = trials(outputs)
    if not functions:
        return Belief(trials=tried)
    code = seen_code(outputs)
    weights: dict[tuple[SuspectFunction, Statement | None], float] = {}
    elsewhere = max(0.0, 1 - sum(function.weight for function in functions))
    belief = Belief(dict.fromkeys(functions, 0.0), trials=tried)
    called = _calls(outputs)
    unreached = _unreached(outputs, tried)
    for function in functions:
        prior = function.weight * called.get((function.path, function.start), 1.0)
        known = statements_in(function.path, code.get(function.path, {}), function.start, function.end)
        own = [one for one in known if belief.function_of(one.path, one.line) == function]
        shares = [_share(statement, function, unreached) for statement in own]
        for statement, share in zip(own, shares, strict=True):
            weights[function, statement] = prior * (share / sum(shares) + IDLE * statement.does_nothing)
        if not own:
            weights[function, None] = prior
    _weigh(weights, tried)
    everything = elsewhere + sum(weights.values())
    belief.elsewhere = elsewhere / everything
    for (function, statement), weight in weights.items():
        belief.functions[function] += weight / everything
        if statement is not None:
            belief.statements[statement] = weight / everything
    return belief


def _functions(outputs: Iterable[ToolOutput]) -> list[SuspectFunction]:
    """The suspects that were shown."""
    seen = list(outputs)
    raised = failing_frames(seen)
    found: dict[tuple[str, int], SuspectFunction] = {}
    for output in seen:
        ranked = shown_suspects(output.data) if output.tool == "suspects" else ()
        for suspect in ranked:
            path, start, end = suspect["path"], suspect["start"], suspect["end"]
            through = frozenset(line for raising, line in raised if raising == path and start <= line <= end)
            lines = frozenset(suspect["lines"])
            found[path, start] = SuspectFunction(
                path, suspect["function"], start, end, suspect["score"], lines, through
            )
    return list(found.values())


def _share(statement: Statement, function: SuspectFunction, unreached: Collection[tuple[str, int]]) -> float:
    """How likely the bug is in a statement, compared to others of its function."""
    if statement.line == function.start:
        return HEADER
    own = range(statement.line, statement.end + 1)
    share = 1.0 if function.lines.intersection(own) else UNREMARKABLE
    if function.raised.intersection(own):
        share *= RAISED_THERE
    return share * UNREACHED if all((statement.path, line) in unreached for line in own) else share


def _unreached(outputs: Iterable[ToolOutput], tried: Iterable[TriedChange]) -> set[tuple[str, int]]:
    """Lines that no failing test runs: where a change was never reached, or that no traced call of its function ran."""
    found = {(one.path, one.line) for one in tried if one.effect == "unreached"}
    for output in outputs:
        # With fewer calls than `trace` may keep, these are all.
        calls = output.data.get("failing", ()) if output.tool == "trace" else ()
        if calls and len(calls) < MOST_CALLS and not any(call["skipped"] for call in calls):
            function = output.data["function"]
            run = {step[0] for call in calls for step in call["steps"]}
            lines = range(function["start"] + 1, function["end"] + 1)
            found |= {(function["path"], line) for line in lines if line not in run}
    return found


def _weigh(weights: dict[tuple[SuspectFunction, Statement | None], float], tried: Sequence[TriedChange]) -> None:
    """Applies Bayes' rule: multiplies each statement's weight by how much likelier a bug there makes what was seen.

    Of the changes at one statement that made failing tests pass, only the most telling counts: they alter the same
    code, so they are not independent evidence, which could be multiplied. Changes without effect count together, as a
    sign that the statement needs no repair, and only where no change made a test pass: where one did, the statement
    matters, and that others did nothing only says that they were the wrong ones.
    """
    for function, statement in list(weights):
        if statement is None:
            continue
        here = [one for one in tried if one.path == statement.path and statement.line <= one.line <= statement.end]
        power = {change.do: change.power for change in changes_at(statement)} if here else {}
        useless = sum(power.get(one.do, RARE) for one in here if one.effect == "none")
        without = 1 - REPAIRABLE * min(1.0, useless)
        matters = [_likelier(one, power.get(one.do, RARE)) for one in here if one.passes or one.effect == "fixes_all"]
        weights[function, statement] *= max(matters, default=without)


def _likelier(trial: TriedChange, power: float) -> float:
    """How many times likelier the effect of a change is where the bug is than elsewhere."""
    if trial.effect == "fixes_all":
        return max(1.0, power / FALSE_REPAIR)
    if trial.effect == "fixes_some":
        return HELPS_SOME + HELPS_MOST * trial.share**3
    harm = len(trial.fails) / len(trial.passes)
    return HARMS_TOO + (HELPS_ALL * max(0.0, 1 - harm) if trial.share >= 1 else 0)


def _calls(outputs: Iterable[ToolOutput]) -> dict[tuple[str, int], float]:
    """What `trace` has shown about functions: how many times as likely each one is, by path and first line."""
    return {
        (output.data["function"]["path"], output.data["function"]["start"]): _of_calls(output.data)
        for output in outputs
        if output.tool == "trace" and "failing" in output.data
    }


def _of_calls(data: Mapping[str, Any]) -> float:
    calls = data["failing"]
    if not data["failing_calls"]:
        return NO_CALLS
    if calls and all(call["like_passing"] for call in calls):
        return SAME_CALLS
    compared = [call["comparison"] for call in calls if call["comparison"]]
    return OTHER_OUTCOME if any(not one["arguments"] and one["result"] for one in compared) else 1.0


def trials(outputs: Iterable[ToolOutput]) -> list[TriedChange]:
    """Every change that `whatif` has tried so far."""
    return [
        TriedChange(**result.model_dump(), step=output.step, fact=fact_of_change(output, result))
        for output in outputs
        if output.tool == "whatif"
        for result in read_changes(output.data)
    ]


def failing_frames(outputs: Iterable[ToolOutput]) -> set[tuple[str, int]]:
    """Places in the project, tests left out, that an exception of a failing test went through."""
    failing = [outcome for output in outputs if output.tool == "eval" for outcome in failing_outcomes(output.data)]
    return {(frame.path, frame.line) for outcome in failing for frame in own_frames(outcome.frames)}
