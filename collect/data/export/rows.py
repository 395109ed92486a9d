"""From a trajectory to rows: of the agent's view, which is the whole episode, and of the seeker's.

The seeker's view is information seeking up to the first edit, closed by a report. What is trained is what is served:
system prompt, user message, tools and their order are those of the seeker agent.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.conversation import elide, format_decision
from gumshoe.collect.episode.spec import Regime, make_agent
from gumshoe.collect.episode.tool_output import ToolOutput, outputs_of_steps, reproduction_of
from gumshoe.collect.packs import build_pack, pack_arguments
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

SPLITS = TRAIN, TEST = "train", "test"
COLUMNS: dict[str, str] = {
    "id": "string",
    "task_id": "string",
    "project": "string",
    "source": "string",
    "agent": "string",
    "policy": "string",
    "model": "string",
    "resolved": "bool",
    "stop": "string",
    "messages": "list of json",
    "tools": "list of json",
    "steps": "list of json",
    "sampled": "list of json",
    "patch": "string",
    "context_pack": "json",
    "task_tags": "json",
    "usage": "json",
    "provenance": "json",
}
"""The columns of the views with a row for each episode, and their types. `json` columns hold any JSON, as it is."""

SHARED = ("id", "task_id", "project", "source", "agent", "policy", "model", "resolved", "task_tags", "provenance")
"""Columns that the rows of all views have: who did what on which task, and how."""
DECISION_COLUMNS: dict[str, str] = {
    **{name: COLUMNS[name] for name in SHARED},
    "episode": "string",
    "step": "int",
    "decision": "string",
    "prompt": "list of json",
    "completion": "list of json",
    "tools": "list of json",
    "sampled": "list of json",
}
"""Columns of the views with a row for each turn, in TRL's prompt and completion form."""


def decision_rows(row: dict[str, Any], seen: Mapping[int, Sequence[Message]] | None = None) -> Iterator[dict[str, Any]]:
    """One row for each step of an episode's row: all that was seen before it, and the turn itself.

    `seen` is the conversation as it was shown, by step, if that was not all of it.
    """
    kinds = {entry["step"]: entry["decision"] for entry in row["steps"]}
    sampled = {entry["message"]: entry for entry in row["sampled"]}
    turns = [index for index, message in enumerate(row["messages"]) if message["role"] == "assistant"]
    own = [index for index in turns if row["messages"][index].get("weight") != 0]
    for number, index in enumerate(own):
        prompt = _plain(seen[number]) if seen and number in seen else row["messages"][:index]
        yield {
            **{name: row[name] for name in SHARED},
            "id": f"{row['id']}/{number}",
            "episode": row["id"],
            "step": number,
            "decision": kinds.get(number),
            "prompt": prompt,
            "completion": row["messages"][index : index + 1],
            "tools": row["tools"],
            "sampled": [{**sampled[index], "message": len(prompt)}] if index in sampled else [],
        }


def agent_decision_rows(trajectory: Trajectory) -> Iterator[dict[str, Any]]:
    """One row for each turn of an episode, its prompt exactly what the agent was shown."""
    seen = {
        step.index: elide(trajectory.messages[: step.message_index], step.elided)
        for step in trajectory.steps
        if step.elided
    }
    return decision_rows(agent_row(trajectory), seen)


def agent_row(trajectory: Trajectory) -> dict[str, Any]:
    """The whole episode as a row."""
    return _row(
        trajectory,
        messages=trajectory.messages,
        tools=trajectory.tools,
        steps=trajectory.steps,
        pack=trajectory.context_pack,
        patch=trajectory.patch,
    )


def _row(
    trajectory: Trajectory,
    *,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema],
    steps: Sequence[Step],
    pack: ContextPack | None,
    patch: str,
) -> dict[str, Any]:
    """A row with the given conversation; who, what and how come from the trajectory."""
    return {
        **shared_values(trajectory),
        "stop": trajectory.stop.value,
        "messages": _weighted(messages, {step.message_index for step in steps}),
        "tools": [tool.as_openai() for tool in tools],
        "steps": [entry for step in steps for entry in _step_entries(step)],
        "sampled": [entry for step in steps for entry in _sampled(step)],
        "patch": patch,
        "context_pack": None if pack is None else pack.model_dump(mode="json"),
        "usage": trajectory.usage.model_dump(mode="json"),
    }


def shared_values(trajectory: Trajectory) -> dict[str, Any]:
    """The values of `SHARED`."""
    return {
        "id": trajectory.id,
        "task_id": trajectory.task.id,
        "project": trajectory.task.project,
        "source": trajectory.task.source,
        "agent": trajectory.policy.agent,
        "policy": trajectory.policy.kind,
        "model": trajectory.policy.model,
        "resolved": trajectory.resolved,
        "task_tags": trajectory.task.tags,
        "provenance": trajectory.provenance.model_dump(mode="json"),
    }


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.as_openai(arguments_as_text=False) for message in messages]


def _weighted(messages: Sequence[Message], own: Set[int]) -> list[dict[str, Any]]:
    """The messages, where turns whose position is not in `own` have `weight: 0`: they are not the agent's, so no steps.

    Such turns come from elsewhere: an ATIF trajectory may begin with a copy of another one. They are shown, but must
    not be trained on.
    """
    return [
        {**message, "weight": 0} if message["role"] == "assistant" and index not in own else message
        for index, message in enumerate(_plain(messages))
    ]


def _sampled(step: Step) -> Iterator[dict[str, Any]]:
    """The tokens of a turn as the server sampled them, with the position of the turn's message."""
    completion = step.completion
    if completion.token_ids is not None:
        logprobs = None if completion.logprobs is None else list(completion.logprobs)
        yield {"message": step.message_index, "token_ids": list(completion.token_ids), "logprobs": logprobs}


def _step_entries(step: Step) -> list[dict[str, JsonValue]]:
    """One entry per call, with what came back from it; one entry without a tool if the turn called none."""
    turn: dict[str, JsonValue] = {
        "step": step.index,
        "decision": step.decision.value if step.decision else None,
        "stated": step.stated.value if step.stated else None,
        "confidence": step.confidence,
        "rationale": step.rationale,
        "reward": step.reward,
    }
    if not step.tool_calls:
        return [{**turn, "tool": None, "arguments": None, "observation": None, "failure": None}]
    answers = [*step.observations, *[None] * (len(step.tool_calls) - len(step.observations))]
    return [
        {
            **turn,
            "tool": call.name,
            "arguments": call.arguments,
            "observation": answer.text if answer else None,
            "failure": answer.failure.kind if answer and answer.failure else None,
        }
        for call, answer in zip(step.tool_calls, answers, strict=True)
    ]


def held_out_projects(projects: Collection[str], share: float) -> frozenset[str]:
    """The projects of the test split: the `share` of them whose names hash lowest.

    At least one if there are several, and never all. The choice depends on the names alone.
    """
    if share <= 0 or len(projects) < 2:
        return frozenset()
    count = min(len(projects) - 1, max(1, math.floor(len(projects) * share + 0.5)))
    return frozenset(sorted(projects, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:count])


def split_of(trajectory: Trajectory, held_out: Collection[str]) -> str:
    """The split: a task source's own held-out projects are test rows in any case."""
    own = trajectory.task.tags.get("split") == "heldout_projects"
    return TEST if own or trajectory.task.project in held_out else TRAIN


def is_held_out_bug(trajectory: Trajectory) -> bool:
    """Whether its source holds the bug out for evaluation although its project is trained on."""
    return trajectory.task.tags.get("split") == "heldout_bugs"


class Dropped(Exception):
    """A trajectory yields no row; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SeekerView:
    """Makes seeker rows; with `unresolved`, also of episodes that did not solve the task."""

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
        return _row(trajectory, messages=messages, tools=tools, steps=(*steps, closing), pack=pack, patch="")

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
    return agent.system_prompt(toolbox.schemas, regime), toolbox.schemas


def _seeking(trajectory: Trajectory, known: Set[str]) -> list[Step]:
    """The steps before the first edit. Raises Dropped if a seeker, with the tools `known`, could not take them."""
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
    return _row(
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
