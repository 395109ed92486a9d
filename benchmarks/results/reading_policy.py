"""A policy that only reads: it runs nothing, so that what running code is worth can be measured.

    policy: {kind: custom, path: "benchmarks.results.reading_policy:make"}     with agent.tools: [grep, view, report]

It looks the failing test up, views it, looks up what the test calls and the problem names, views the first of these
that is not a test, and reports it.
"""

from __future__ import annotations

import builtins
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.episode.tool_output import ToolOutput
from gumshoe.collect.policies.strategy import Situation, StrategyPolicy, Turn
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.records import Decision, Task

GIVE_UP = Turn(Decision.REPORT, None, "Nothing that the test calls is defined in the project.")
LINES_OF_A_TEST, LINES_OF_A_FUNCTION, NAMES = 24, 60, 6
_FAILING = re.compile(r"(\w+)(?:\[.*\])? fails:")
_CALLED = re.compile(r"\b([A-Za-z_]\w+)\(")
_QUOTED = re.compile(r"'([A-Za-z_]\w+)'")
_NOT_TOLD_BY = re.compile(r"assert|test|raises|parametrize", re.IGNORECASE)


class Reading:
    """Five turns: grep, view, grep, view, report. Where one finds nothing, it is the last, and the episode ends."""

    kind = "reading"
    tools = frozenset({"grep", "view", "report"})

    def __init__(self, task: Task) -> None:
        self._problem = task.problem_statement
        self._test = _FAILING.findall(self._problem)[:1]

    def choose(self, situation: Situation) -> Turn:
        """The next turn."""
        match situation.outputs:
            case []:
                return _look_up(self._test, "I look up the failing test.")
            case [found]:
                return _view(_matches(found), LINES_OF_A_TEST, "I read the test.")
            case [_, test]:
                return _look_up(self._names(test), "I look up what the test calls.")
            case [_, _, found]:
                return _view(self._ranked(_matches(found)), LINES_OF_A_FUNCTION, "I read the likeliest of these.")
            case outputs:
                return _report(outputs[-1])

    def _names(self, test: ToolOutput) -> list[str]:
        code = "\n".join(test.data.get("lines", ())[1:])
        told = [*reversed(_CALLED.findall(code)), *_QUOTED.findall(self._problem)]
        names = [name for name in told if not hasattr(builtins, name) and not _NOT_TOLD_BY.search(name)]
        return list(dict.fromkeys(names))[:NAMES]

    def _ranked(self, matches: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The definitions outside tests: those that the test is named after first, functions before classes, names that
        are defined only once before others.
        """
        own = [match for match in matches if not holds_tests(match["path"])]
        defined = Counter(_name(match["text"]) for match in own)
        words = {word for test in self._test for word in test.lower().split("_")}

        def key(match: Mapping[str, Any]) -> tuple[bool, bool, int]:
            name = _name(match["text"])
            return name.lower() not in words, match["text"].lstrip().startswith("class"), defined[name]

        return sorted(own, key=key)


def make(task: Task, seed: int) -> StrategyPolicy:
    """The policy for an episode of a task; it does nothing at random."""
    return StrategyPolicy(Reading(task), seed=seed)


def _matches(found: ToolOutput) -> list[dict[str, Any]]:
    return list(found.data.get("matches", ()))


def _name(line: str) -> str:
    """What the first line of a definition defines."""
    return re.split(r"\W+", line.strip())[1]


def _look_up(names: Iterable[str], why: str) -> Turn:
    pattern = "|".join(names)
    if not pattern:
        return GIVE_UP
    return Turn(Decision.SEEK, None, why, "grep", {"pattern": rf"^ *(def|class) ({pattern})\b"})


def _view(matches: Sequence[Mapping[str, Any]], lines: int, why: str) -> Turn:
    if not matches:
        return GIVE_UP
    first = matches[0]
    place = {"path": first["path"], "start": first["line"], "end": first["line"] + lines}
    return Turn(Decision.SEEK, None, why, "view", place)


def _report(shown: ToolOutput) -> Turn:
    lines = list(shown.data["lines"])
    start = int(shown.data["start"])
    end = start + _length(lines) - 1
    symbol = _name(lines[0])
    hypothesis = f"The failing test calls {symbol}."
    arguments: dict[str, JsonValue] = {
        "locations": [{"path": shown.data["path"], "start": start, "end": end, "symbol": symbol}],
        "hypothesis": hypothesis,
    }
    return Turn(Decision.REPORT, None, hypothesis, "report", arguments)


def _length(lines: Sequence[str]) -> int:
    """How many of the lines belong to the definition that the first one begins."""
    for count, line in enumerate(lines[1:], 1):
        if line.strip() and not line.lstrip().startswith((")", "#")) and _indent(line) <= _indent(lines[0]):
            return count
    return len(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
