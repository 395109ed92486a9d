"""The seeker view: information seeking up to the first edit, closed by a report.

What is trained is what is served: system prompt, user message, tools and their order are those of the seeker agent.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.data.evidence import build_pack, pack_arguments
from gumshoe.collect.data.export.rows import make_row
from gumshoe.collect.episode.conversation import format_decision
from gumshoe.collect.episode.spec import Regime, make_agent
from gumshoe.collect.episode.tool_output import ToolOutput, outputs_of_steps, reproduction_of
from gumshoe.env.diff import gold_lines
from gumshoe.records import (
    Completion,
    ContextPack,
    Decision,
    Message,
    Step,
    StopReason,
    ToolCall,
    ToolSchema,
    Trajectory,
)
from gumshoe.tools import Toolbox, make_tools
from gumshoe.tools.toolbox import decisions_of

__all__ = ["Dropped", "SeekerView"]


class Dropped(Exception):
    """A trajectory yields no row; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SeekerView:
    """Makes seeker rows.

    Args:
        unresolved: also make rows of episodes that did not solve the task.
    """

    def __init__(self, *, unresolved: bool = False) -> None:
        self._unresolved = unresolved
        self._debug, self._issue = _opening("debug"), _opening("issue")

    def row(self, trajectory: Trajectory) -> dict[str, Any]:
        """The row of one trajectory. Raises Dropped."""
        if trajectory.policy.agent == "seeker":
            return _own_row(trajectory)
        if trajectory.resolved is not True and not self._unresolved:
            raise Dropped("not resolved")
        system, tools = self._issue if trajectory.task.regime == "issue" else self._debug
        steps = _seeking(trajectory, {tool.name for tool in tools})
        outputs = outputs_of_steps(steps)
        pack = self._pack(trajectory, steps, outputs)
        answer_index = steps[-1].message_index + 1 + len(steps[-1].observations)
        seen = (Message(role="system", content=system), *trajectory.messages[1:answer_index])
        closing = _closing(steps, pack, outputs)
        messages = (*seen, closing.completion.as_message())
        return make_row(trajectory, messages=messages, tools=tools, steps=(*steps, closing), pack=pack, patch="")

    def _pack(self, trajectory: Trajectory, steps: Sequence[Step], outputs: Sequence[ToolOutput]) -> ContextPack:
        """The evidence for what was edited later. Raises Dropped."""
        pack = build_pack(outputs, gold_lines(trajectory.patch), _hypothesis(trajectory, steps))
        if pack is None:
            raise Dropped("the edited code was never seen")
        if not pack.findings:
            raise Dropped("no finding with evidence")
        return pack.model_copy(update={"reproduction": reproduction_of(steps)})


def _opening(regime: Regime) -> tuple[str, tuple[ToolSchema, ...]]:
    """The system prompt and the tools of the seeker agent."""
    agent = make_agent(AgentConfig(kind="seeker"))
    toolbox = Toolbox(make_tools(agent.tools_in(regime)))
    return agent.system_prompt(toolbox.schemas, toolbox.instructions, regime), toolbox.schemas


def _seeking(trajectory: Trajectory, known: Set[str]) -> list[Step]:
    """The steps before the first edit. Raises Dropped where a seeker, with the tools `known`, could not take them."""
    steps: list[Step] = []
    roles = decisions_of(trajectory.tools)
    for step in trajectory.steps:
        if any(roles.get(call.name) in (Decision.EDIT, Decision.SUBMIT) for call in step.tool_calls):
            break
        if not step.tool_calls:
            raise Dropped("a turn without a call before the first edit")
        if not all(call.name in known for call in step.tool_calls):
            raise Dropped("a tool that the seeker lacks")
        steps.append(step)
    if not steps:
        raise Dropped("no information-seeking step before the first edit")
    return steps


def _own_row(trajectory: Trajectory) -> dict[str, Any]:
    """The row of an episode of the seeker agent: the episode as it is, if it ended with a report. Raises Dropped."""
    if trajectory.stop is not StopReason.REPORTED or trajectory.context_pack is None:
        raise Dropped("no report")
    return make_row(
        trajectory,
        messages=trajectory.messages[: trajectory.steps[-1].message_index + 1],
        tools=trajectory.tools,
        steps=trajectory.steps,
        pack=trajectory.context_pack,
        patch="",
    )


def _hypothesis(trajectory: Trajectory, steps: Sequence[Step]) -> str:
    """What the agent thought when it began to edit; else what it thought last."""
    following = trajectory.steps[len(steps) : len(steps) + 1]
    thoughts = [step.rationale for step in (*following, *reversed(steps)) if step.rationale]
    return thoughts[0] if thoughts else ""


def _closing(steps: Sequence[Step], pack: ContextPack, outputs: Sequence[ToolOutput]) -> Step:
    """The turn in which a seeker reports the pack. It states no confidence, because the agent stated none."""
    place = pack.locations[0]
    where = f"{place.symbol} in {place.path}" if place.symbol else place.path
    why = f"The cause is in {where}; I report it."
    index = steps[-1].index + 1
    call = ToolCall(id=f"call-{index}", name="report", arguments=pack_arguments(pack, outputs))
    text = format_decision(Decision.REPORT, None, why)
    return Step(
        index=index,
        message_index=steps[-1].message_index + 1 + len(steps[-1].observations),
        decision=Decision.REPORT,
        stated=Decision.REPORT,
        rationale=why,
        completion=Completion(text=text, tool_calls=(call,), finish_reason="tool_calls"),
    )
