"""A policy that is a program: it asks its strategy for each turn. Most strategies only look; `Teacher` also repairs.

    conversation ──> Situation (what was seen) ──> Strategy.choose ──> Turn ──> Completion

| strategy       | in                       | policies               | the next look                              |
|----------------|--------------------------|------------------------|--------------------------------------------|
| `OneLook`      | `heuristics.py`          | `traceback`, `suspect` | one tool, then the place that it shows     |
| `VarySuspects` | `heuristics.py`          | `vary`                 | in a fixed order                           |
| `Investigator` | `investigator/policy.py` | `investigator`         | the one that is expected to tell the most  |
| `Teacher`      | `teacher.py`             | `teacher`              | the one that leads to the answer           |

A strategy works out everything anew from what was observed, so that a replayed episode comes to the same turns.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from gumshoe.collect.episode.conversation import count_turns, format_decision
from gumshoe.collect.episode.tool_output import ToolOutput, shown_text, tool_outputs
from gumshoe.collect.packs import pack_arguments
from gumshoe.errors import PolicyError
from gumshoe.records import Completion, ContextPack, Decision, Message, ToolCall, ToolSchema

NEEDS_A_TEST = "The tests of this issue are hidden: someone has to reproduce it first, which I cannot."


@dataclass(frozen=True)
class Turn:
    """What a program says and calls in one turn; without a tool, it calls nothing, which ends the episode."""

    decision: Decision
    confidence: float | None
    rationale: str
    tool: str = ""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    def as_completion(self, number: int) -> Completion:
        """The turn as a policy gives it; `number` counts turns from 0 and names the call."""
        text = format_decision(self.decision, self.confidence, self.rationale)
        if not self.tool:
            return Completion(text=text)
        call = ToolCall(id=f"call-{number}", name=self.tool, arguments=dict(self.arguments))
        return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")


class Situation:
    """What was seen so far, and which tools may be called.

    Args:
        messages: the conversation.
        tools: those that are offered.
        seed: that of the episode.

    Attributes:
        turn: the number of the coming turn, from 0.
        offered: the names of the tools.
        outputs: what the tools have answered.
        shown: everything that was shown, as text.
        rng: makes the choices that are left to chance.
    """

    def __init__(self, messages: Sequence[Message], tools: Sequence[ToolSchema], seed: int) -> None:
        self.turn = count_turns(messages)
        self.offered = frozenset(tool.name for tool in tools)
        self.outputs = tool_outputs(messages)
        self.shown = shown_text(messages)
        self.rng = random.Random(f"{seed} {self.turn}")

    def last(self, tool: str) -> ToolOutput | None:
        """The last answer of a tool; None if it has not been called."""
        return next((output for output in reversed(self.outputs) if output.tool == tool), None)

    def report(self, pack: ContextPack, confidence: float | None, rationale: str) -> Turn:
        """The turn that hands over a pack, which was made from what was seen."""
        return Turn(Decision.REPORT, confidence, rationale, "report", pack_arguments(pack, self.outputs))


class Strategy(Protocol):
    """How a program chooses its turns. `kind` is the policy's name."""

    kind: str

    @property
    def tools(self) -> frozenset[str]:
        """The tools that it cannot do without."""
        ...

    def choose(self, situation: Situation) -> Turn:
        """The next turn. Raises PolicyError, and ScriptExhausted if the episode goes on after its last turn."""
        ...


class StrategyPolicy:
    """The policy of one episode that follows a strategy.

    Args:
        strategy: chooses the turns.
        seed: decides the choices that the strategy leaves open.
        needs_test: it goes by failing tests, and those that fail are not about the issue. It gives up at once, unless
            a test has reproduced the issue, as an agent that began the episode may have written.
    """

    model = ""
    trusted = True

    def __init__(self, strategy: Strategy, *, seed: int = 0, needs_test: bool = False) -> None:
        self.kind = strategy.kind
        self._strategy = strategy
        self._seed = seed
        self._needs_test = needs_test

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The next turn. Raises PolicyError if the agent lacks a tool, and what the strategy raises."""
        situation = Situation(messages, tools, self._seed)
        written = situation.last("reproduce")
        if self._needs_test and (written is None or written.data.get("status") != "reproduced"):
            return Turn(Decision.REPORT, 0.0, NEEDS_A_TEST).as_completion(situation.turn)
        missing = self._strategy.tools - situation.offered
        if missing:
            names = ", ".join(sorted(missing))
            seeker = "use agent.kind=seeker, or " if "report" in missing else ""
            raise PolicyError(f"the policy {self.kind} needs the tool {names}: {seeker}list it in agent.tools")
        return self._strategy.choose(situation).as_completion(situation.turn)
