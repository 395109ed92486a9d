"""From a trajectory to a dataset row."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from gumshoe.collect.episode.conversation import shown
from gumshoe.records import ContextPack, Message, Step, ToolSchema, Trajectory

__all__ = [
    "COLUMNS",
    "DECISION_COLUMNS",
    "TEST",
    "TRAIN",
    "agent_decision_rows",
    "agent_row",
    "decision_rows",
    "held_out_projects",
    "is_held_out_bug",
    "make_row",
    "project_of",
    "split_of",
]

TRAIN, TEST = "train", "test"
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
"""Every column of both views with its type. `json` columns hold any JSON, kept as it is."""

_SHARED = ("id", "task_id", "project", "source", "agent", "policy", "model", "resolved", "task_tags", "provenance")
DECISION_COLUMNS: dict[str, str] = {
    **{name: COLUMNS[name] for name in _SHARED},
    "episode": "string",
    "step": "int",
    "decision": "string",
    "prompt": "list of json",
    "completion": "list of json",
    "tools": "list of json",
    "sampled": "list of json",
}
"""Columns of the view with one row per decision, in TRL's prompt and completion form."""


def decision_rows(row: dict[str, Any], seen: Mapping[int, Sequence[Message]] | None = None) -> Iterator[dict[str, Any]]:
    """One row for each turn of an episode's row: all that was seen before it, and the turn itself.

    Args:
        row: the episode's row.
        seen: by turn, the conversation as it was shown, if that was not all of it.
    """
    kinds = {entry["step"]: entry["decision"] for entry in row["steps"]}
    sampled = {entry["message"]: entry for entry in row["sampled"]}
    turns = [index for index, message in enumerate(row["messages"]) if message["role"] == "assistant"]
    for number, index in enumerate(turns):
        prompt = _plain(seen[number]) if seen and number in seen else row["messages"][:index]
        yield {
            **{name: row[name] for name in _SHARED},
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
        step.index: shown(trajectory.messages[: step.message_index], step.elided)
        for step in trajectory.steps
        if step.elided
    }
    return decision_rows(agent_row(trajectory), seen)


def agent_row(trajectory: Trajectory) -> dict[str, Any]:
    """The whole episode as a row."""
    return make_row(
        trajectory,
        messages=trajectory.messages,
        tools=trajectory.tools,
        steps=trajectory.steps,
        pack=trajectory.context_pack,
        patch=trajectory.patch,
    )


def make_row(
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
        "id": trajectory.id,
        "task_id": trajectory.task.id,
        "project": project_of(trajectory),
        "source": trajectory.task.source,
        "agent": trajectory.policy.agent,
        "policy": trajectory.policy.kind,
        "model": trajectory.policy.model,
        "resolved": trajectory.resolved,
        "stop": trajectory.stop.value,
        "messages": _plain(messages),
        "tools": [tool.as_openai() for tool in tools],
        "steps": [entry for step in steps for entry in _step_entries(step)],
        "sampled": [entry for step in steps for entry in _sampled(step)],
        "patch": patch,
        "context_pack": None if pack is None else pack.model_dump(mode="json"),
        "task_tags": trajectory.task.tags,
        "usage": trajectory.usage.model_dump(mode="json"),
        "provenance": trajectory.provenance.model_dump(mode="json"),
    }


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message.as_openai(arguments_as_text=False) for message in messages]


def project_of(trajectory: Trajectory) -> str:
    """The repository that the task is about; a task without one is a project of its own."""
    return trajectory.task.tags.get("project") or trajectory.task.id


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

    At least one where there are several, and never all. The choice depends on the names alone.
    """
    if share <= 0 or len(projects) < 2:
        return frozenset()
    count = min(len(projects) - 1, max(1, math.floor(len(projects) * share + 0.5)))
    return frozenset(sorted(projects, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:count])


def split_of(trajectory: Trajectory, held_out: Collection[str]) -> str:
    """The split: a task source's own held-out projects are test rows in any case."""
    own = trajectory.task.tags.get("split") == "heldout_projects"
    return TEST if own or project_of(trajectory) in held_out else TRAIN


def is_held_out_bug(trajectory: Trajectory) -> bool:
    """Whether its source holds the bug out for evaluation although its project is trained on."""
    return trajectory.task.tags.get("split") == "heldout_bugs"
