"""What may be looked at next, and which look is expected to tell the most for what it costs.

What a look tells is the mutual information, in bits, between its answer and the question of where the bug is: with
probability p that the bug is at a place, an answer that comes with probability d if it is there and e if it is not
tells H(p d + (1 - p) e) - p H(d) - (1 - p) H(e).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from gumshoe.collect.episode.tool_output import ToolOutput, seen_code
from gumshoe.collect.policies.investigator.belief import FALSE_REPAIR, Belief, SuspectFunction
from gumshoe.tools.code.small_changes import WhatifChange, changes_at
from gumshoe.tools.code.statements import Statement
from gumshoe.tools.whatif import MOST_VARIANTS

LookKind = Literal["eval", "suspects", "view", "whatif", "pdb", "trace", "grep", "listdir"]
"""Only the teacher makes the last two. It chooses by the answer, not by cost, so they have none."""

COST = {"eval": 1.0, "suspects": 1.5, "view": 0.2, "pdb": 1.2, "trace": 1.5, "whatif": 1.0}
"""What a call costs, in runs of the tests; a view costs its reader some attention."""
COST_OF_CHANGE = 0.05
LONGEST_VIEW = 200
USEFUL_CODE = 0.15
"""How often the code of the function with the bug leads to it."""
MOST_REFUSALS = 2
"""A tool that failed to answer this often is left alone."""
OPENING = 5.0
"""Bits that the first run of the tests and the first suspects are worth: nothing can be told without them."""
DIFFERS_IF_THERE, DIFFERS_ELSEWHERE = 0.6, 0.35
"""How often calls with equal arguments end differently in failing tests: where the bug is, and elsewhere."""
SHOWS_IF_THERE, SHOWS_ELSEWHERE = 0.45, 0.3
"""How often the values at a place look wrong where the bug is, and where it is not."""


@dataclass(frozen=True)
class Look:
    """A call that may be made next, what it is about, and the bits that it is expected to tell.

    `text` is what `grep` looks for; `path`, `start` and `end` what `view` shows.
    """

    kind: LookKind
    bits: float
    function: SuspectFunction | None = None
    statement: Statement | None = None
    changes: tuple[WhatifChange, ...] = ()
    text: str = ""
    path: str = ""
    start: int = 0
    end: int = 0

    @property
    def cost(self) -> float:
        """What the look costs, in runs of the tests."""
        return COST[self.kind] + COST_OF_CHANGE * len(self.changes)

    @property
    def worth(self) -> float:
        """Bits for each unit of cost."""
        return self.bits / self.cost

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments of the call."""
        if self.kind == "view":
            return {"start": self.start, "end": self.end, "path": self.path}
        if self.kind == "whatif":
            return {
                "variants": [{"path": one.path, "line": one.line, "do": one.do} for one in self.changes],
                "quick": True,
            }
        if self.kind == "pdb":
            assert self.statement is not None
            return {"command": f"b {self.statement.place}\nc\nlocals\nw"}
        if self.kind == "trace":
            assert self.function is not None
            return {"function": self.function.place}
        return {"pattern": self.text} if self.kind == "grep" else {}


def looks(belief: Belief, outputs: Sequence[ToolOutput], tools: Collection[str]) -> list[Look]:
    """What may be done next, most worthwhile first."""
    called = [output.tool for output in outputs]
    refusals = Counter(output.tool for output in outputs if output.observation.failure is not None)
    tools = {tool for tool in tools if refusals[tool] < MOST_REFUSALS}
    found = [Look(kind, OPENING) for kind in ("eval", "suspects") if kind in tools and kind not in called]
    if "view" in tools:
        found += _views(belief, outputs)
    if "whatif" in tools and "eval" in called:
        found += _experiments(belief)
    if "trace" in tools:
        found += _traces(belief, outputs)
    if "pdb" in tools and "eval" in called:
        found += _stops(belief, outputs)
    return sorted(found, key=lambda look: -look.worth)


def information(p: float, there: float, elsewhere: float) -> float:
    """Bits that a yes or no tells, `there` and `elsewhere` being the probabilities of a yes."""
    return _entropy(p * there + (1 - p) * elsewhere) - p * _entropy(there) - (1 - p) * _entropy(elsewhere)


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)


def _views(belief: Belief, outputs: Sequence[ToolOutput]) -> list[Look]:
    """Reading a function that has not been read: it is worth what can then be tried in it.

    If a function was read in part, as long ones are, the rest is read if it holds the most suspicious lines.
    """
    code = seen_code(outputs)
    found: list[Look] = []
    for function in belief.ranked():
        start, end = window_of(function)
        unread = [line for line in range(start, end + 1) if line not in code.get(function.path, {})]
        if not unread or (len(unread) < end - start + 1 and _remarkable(function).isdisjoint(unread)):
            continue
        start = unread[0]
        bits = information(belief.functions[function], USEFUL_CODE, FALSE_REPAIR)
        found.append(Look("view", bits, function, path=function.path, start=start, end=end))
    return found


def window_of(function: SuspectFunction, *lines: int) -> tuple[int, int]:
    """All of a function; for a long one, what is around some lines, by default its most suspicious ones."""
    if function.end - function.start < LONGEST_VIEW:
        return function.start, function.end
    remarkable = sorted(lines or _remarkable(function))
    middle = remarkable[len(remarkable) // 2]
    start = max(function.start, min(middle - LONGEST_VIEW // 2, function.end - LONGEST_VIEW + 1))
    return start, start + LONGEST_VIEW - 1


def _remarkable(function: SuspectFunction) -> frozenset[int]:
    return frozenset(function.raised or function.lines or {function.start})


def _experiments(belief: Belief) -> list[Look]:
    """The best changes that have not been tried yet: at all places, and at those of the likeliest function alone.

    If one has repaired the statement, another would tell nothing more: only its rivals are left to be tested.
    """
    tried = {(trial.path, trial.line, trial.do) for trial in belief.trials}
    repaired = {(trial.path, trial.line) for trial in belief.trials if trial.effect == "fixes_all"}
    valued: list[tuple[float, WhatifChange, SuspectFunction | None]] = []
    for statement in belief.ranked_statements()[:60]:
        function = belief.function_of(statement.path, statement.line)
        left = belief.statements[statement]
        for change in changes_at(statement) if (statement.path, statement.line) not in repaired else ():
            if (change.path, change.line, change.do) not in tried:
                bits = information(left, change.power, FALSE_REPAIR)
                valued.append((bits, change, function))
    valued.sort(key=lambda one: -one[0])
    found: list[Look] = []
    for size in (MOST_VARIANTS // 2, MOST_VARIANTS):
        batch = valued[:size]
        if batch:
            found.append(_experiment(batch))
    first = next((function for _, _, function in valued), None)
    own = [one for one in valued if one[2] == first][:MOST_VARIANTS]
    if own and len(own) < len(valued):
        found.append(_experiment(own))
    return found


def _experiment(batch: Sequence[tuple[float, WhatifChange, SuspectFunction | None]]) -> Look:
    functions = {function for _, _, function in batch}
    return Look(
        "whatif",
        sum(bits for bits, _, _ in batch),
        functions.pop() if len(functions) == 1 else None,
        changes=tuple(change for _, change, _ in batch),
    )


def _traces(belief: Belief, outputs: Sequence[ToolOutput]) -> list[Look]:
    """The calls of the likeliest functions, beside those in passing tests."""
    known = {
        (output.data["function"]["path"], output.data["function"]["start"])
        for output in outputs
        if output.tool == "trace" and "function" in output.data
    }
    return [
        Look("trace", information(belief.functions[one], DIFFERS_IF_THERE, DIFFERS_ELSEWHERE), one)
        for one in belief.ranked()[:2]
        if (one.path, one.start) not in known
    ]


def _stops(belief: Belief, outputs: Sequence[ToolOutput]) -> list[Look]:
    """A breakpoint at the likeliest statement of a function where the debugger has not stopped yet."""
    stopped = {
        (result["stop"]["path"], result["stop"]["line"])
        for output in outputs
        for result in (output.data.get("results", ()) if output.tool == "pdb" else ())
        if result.get("stop")
    }
    found: list[Look] = []
    for function in belief.ranked()[:2]:
        if any(function.holds(path, line) for path, line in stopped):
            continue
        own = [statement for statement in belief.statements_of(function) if statement.line != function.start]
        if own:
            bits = information(belief.functions[function], SHOWS_IF_THERE, SHOWS_ELSEWHERE)
            found.append(Look("pdb", bits, function, own[0]))
    return found
