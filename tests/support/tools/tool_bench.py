"""An environment to call tools in, and reports whose findings cite what an episode showed."""

from collections.abc import Callable
from typing import Any

from gumshoe.env import DebugEnv
from gumshoe.records import Fact, Observation, ToolCall
from gumshoe.tools.evidence.facts import all_facts

TOOLS = ("eval", "pdb", "whatif", "view", "report")
PLACE: Any = [{"path": "shop.py", "start": 5, "end": 9}]


class Bench:
    """An environment with tools, and a short way to call them."""

    def __init__(self, env: DebugEnv) -> None:
        self.env = env
        self.workspace = env.workspace

    def call(self, tool: str, **arguments: Any) -> Observation:
        """Calls a tool as an agent does."""
        call = ToolCall(id="call", name=tool, arguments=arguments)
        return self.env.toolbox.dispatch(call, self.workspace)

    def text(self, tool: str, **arguments: Any) -> str:
        """What the agent reads of a call."""
        return self.call(tool, **arguments).text

    def lines(self, tool: str, **arguments: Any) -> list[str]:
        """The lines of that."""
        return self.text(tool, **arguments).splitlines()

    def data(self, tool: str, **arguments: Any) -> Any:
        """What programs read of a call, which succeeds."""
        observation = self.call(tool, **arguments)
        assert observation.failure is None, observation.text
        return observation.data

    def failure(self, tool: str, **arguments: Any) -> str | None:
        """The kind of a call's failure; None where it succeeds."""
        observation = self.call(tool, **arguments)
        return observation.failure and observation.failure.kind


Open = Callable[..., Bench]
"""Opens a bench, as the fixture `open_bench`."""


def fact(bench: Bench, start: str) -> Fact:
    """The last fact of the episode whose text begins with some words."""
    return [each for each in all_facts(bench.env.toolbox.history) if each.quote.startswith(start)][-1]


def report(bench: Bench, *starts: str) -> Observation:
    """Reports the facts that begin with these words."""
    findings = [{"fact": fact(bench, start).number, "claim": "it is so"} for start in starts]
    return bench.call("report", locations=PLACE, hypothesis="h", findings=findings)
