"""Where the bug may be, and how likely: a belief over functions and, where they were viewed, their statements.

The prior comes from the spectrum that `suspects` measured and from the frames of the traceback. Each change that
`whatif` tried is evidence about the statement it was tried at, by Bayes' rule: that it lets failing tests pass is far
more likely where the bug is than elsewhere, and that nothing changes a little less likely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gumshoe.collect.evidence import seen_code
from gumshoe.collect.policies.investigator.changes import changes_at
from gumshoe.collect.policies.investigator.statements import Statement, statements_in
from gumshoe.collect.tool_output import ToolOutput
from gumshoe.tools.inside.gumshoe_project import holds_tests
from gumshoe.tools.suspects import shown_suspects

__all__ = ["Belief", "Effect", "SuspectFunction", "TriedChange", "failing_frames", "form_belief", "trials"]

ELSEWHERE = 0.08
"""Prior probability that the bug is in none of the functions that were seen."""
SHARPNESS = 4.0
"""Power to which a suspect's score is taken."""
NEARER = 0.6
"""Each call between a function and the failure makes it so much as likely."""
RAISED_THERE = 2.0
"""How much more likely a function is that the exception went through."""
UNREMARKABLE, HEADER = 0.2, 0.1
"""How likely a statement is compared to one of the most suspicious of its function; and the line with its `def`."""
FALSE_REPAIR = 0.01
"""How often a change at an innocent statement lets all tests pass."""
REPAIRABLE = 0.6
"""How many bugs all changes at their statement together would repair."""
SAME_CALLS, NO_CALLS, OTHER_OUTCOME = 0.5, 0.2, 3.0
"""How many times as likely a function is whose calls in failing tests are all as in passing ones; that is not called
there; that comes to something else from equal arguments.
"""

Effect = Literal["repairs", "cures", "mixed", "nothing", "unreached", "invalid"]
LIKELIER: Mapping[str, float] = {"repairs": 1 / FALSE_REPAIR, "cures": 8.0, "mixed": 2.5, "unreached": 0.05}
"""How many times likelier an effect is where the bug is than elsewhere; `repairs` by the power of the change."""


@dataclass(frozen=True)
class SuspectFunction:
    """A function that failing tests run: a hypothesis.

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
        return f"{self.path}:{self.start}"

    def holds(self, path: str, line: int) -> bool:
        """Whether a line is in it."""
        return path == self.path and self.start <= line <= self.end


@dataclass(frozen=True)
class TriedChange:
    """One change that `whatif` tried, what it did to the tests, and where that was shown."""

    step: int
    path: str
    line: int
    do: str
    effect: Effect
    quote: str
    passes: tuple[str, ...] = ()
    fails: tuple[str, ...] = ()


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
    total = sum(function.weight for function in functions)
    belief = Belief(dict.fromkeys(functions, 0.0), trials=tried)
    called = _calls(outputs)
    for function in functions:
        prior = (1 - ELSEWHERE) * function.weight / total * called.get((function.path, function.start), 1.0)
        known = statements_in(function.path, code.get(function.path, {}), function.start, function.end)
        own = [one for one in known if belief.function_of(one.path, one.line) == function]
        shares = [_share(statement, function) for statement in own]
        for statement, share in zip(own, shares, strict=True):
            weights[function, statement] = prior * share / sum(shares)
        if not own:
            weights[function, None] = prior
    _weigh(weights, tried)
    everything = ELSEWHERE + sum(weights.values())
    belief.elsewhere = ELSEWHERE / everything
    for (function, statement), weight in weights.items():
        belief.functions[function] += weight / everything
        if statement is not None:
            belief.statements[statement] = weight / everything
    return belief


def _functions(outputs: Iterable[ToolOutput]) -> list[SuspectFunction]:
    """The suspects that were shown; those that the exception went through count more."""
    seen = list(outputs)
    raised = failing_frames(seen)
    found: dict[tuple[str, int], SuspectFunction] = {}
    for output in seen:
        for suspect in shown_suspects(output.data) if output.tool == "suspects" else ():
            distance = 3 if suspect["distance"] is None else suspect["distance"]
            weight = suspect["score"] ** SHARPNESS * NEARER**distance
            start, end = suspect["start"], suspect["end"]
            through = frozenset(line for path, line in raised if path == suspect["path"] and start <= line <= end)
            if through:
                weight *= RAISED_THERE
            if holds_tests(suspect["path"]):
                weight *= 0.05
            found[suspect["path"], start] = SuspectFunction(
                suspect["path"], suspect["function"], start, end, weight, frozenset(suspect["lines"]), through
            )
    return list(found.values())


def failing_frames(outputs: Iterable[ToolOutput]) -> set[tuple[str, int]]:
    """Places in the project, tests left out, that an exception of a failing test went through."""
    return {
        (frame["path"], frame["line"])
        for output in outputs
        if output.tool == "eval"
        for outcome in output.data.get("outcomes", ())
        for frame in outcome.get("frames", ())
        if outcome["outcome"] in ("failed", "error") and not holds_tests(frame["path"])
    }


def _share(statement: Statement, function: SuspectFunction) -> float:
    """How likely the bug is in a statement, compared to others of its function."""
    if statement.line == function.start:
        return HEADER
    own = range(statement.line, statement.end + 1)
    share = 1.0 if function.lines.intersection(own) else UNREMARKABLE
    return share * RAISED_THERE if function.raised.intersection(own) else share


def _weigh(weights: dict[tuple[SuspectFunction, Statement | None], float], tried: Sequence[TriedChange]) -> None:
    """Bayes' rule: each statement's weight times the likelihood of what was seen at it, over that elsewhere."""
    for function, statement in list(weights):
        if statement is None:
            continue
        here = [one for one in tried if one.path == statement.path and statement.line <= one.line <= statement.end]
        power = {change.do: change.power for change in changes_at(statement)} if here else {}
        best, missed, useless = 1.0, 1.0, 0.0
        for one in here:
            if one.effect == "repairs":
                best = max(best, LIKELIER["repairs"] * power.get(one.do, 0.05) ** 0.5)
            elif one.effect in LIKELIER:
                best = max(best, LIKELIER[one.effect])
            if one.effect == "unreached":
                missed = min(missed, LIKELIER["unreached"])
            elif one.effect == "nothing":
                useless += power.get(one.do, 0.05)
        weights[function, statement] *= best if best > 1 else missed * (1 - REPAIRABLE * min(1.0, useless))


def _calls(outputs: Iterable[ToolOutput]) -> dict[tuple[str, int], float]:
    """What `trace` has shown of functions: how many times as likely each is, by path and first line."""
    return {
        (output.data["function"]["path"], output.data["function"]["start"]): _of_calls(output.data)
        for output in outputs
        if output.tool == "trace" and "failing" in output.data
    }


def _of_calls(data: Mapping[str, Any]) -> float:
    calls = data["failing"]
    if not calls:
        return NO_CALLS
    if all(call["like_passing"] for call in calls):
        return SAME_CALLS
    compared = [call["comparison"] for call in calls if call["comparison"]]
    return OTHER_OUTCOME if any(not one["arguments"] and one["result"] for one in compared) else 1.0


def trials(outputs: Iterable[ToolOutput]) -> list[TriedChange]:
    """Every change that `whatif` has tried so far."""
    found: list[TriedChange] = []
    for output in outputs:
        if output.tool != "whatif" or "variants" not in output.data:
            continue
        lines = output.text.splitlines()
        for number, result in enumerate(output.data["variants"], start=1):
            quote = lines[number] if number < len(lines) else ""
            found.append(
                TriedChange(
                    output.step,
                    result["path"],
                    result["line"],
                    result["do"],
                    _effect(result),
                    quote,
                    tuple(result["passes"]),
                    tuple(result["fails"]),
                )
            )
    return found


def _effect(result: Mapping[str, Any]) -> Effect:
    if result["error"]:
        return "invalid"
    if not result["hits"]:
        return "unreached"
    if result["passes"] and not result["fails"]:
        return "cures" if result["still_fails"] else "repairs"
    if result["passes"]:
        return "mixed"
    if result["exit_code"] == 0 and result["unchanged_exit_code"] != 0:
        return "repairs"
    return "nothing"
