"""SWE-agent's `.traj` files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gumshoe.collect.interchange.messages import from_messages
from gumshoe.collect.interchange.reading import reading
from gumshoe.errors import DatasetError
from gumshoe.records import PolicyInfo, StopReason, Trajectory, Usage

__all__ = ["from_swe_agent"]

STOPS = {
    "submitted": StopReason.SUBMITTED,
    "exit_cost": StopReason.COST_LIMIT,
    "exit_context": StopReason.CONTEXT_OVERFLOW,
    "exit_format": StopReason.NO_TOOL_CALL,
    "exit_total_execution_time": StopReason.WALL_LIMIT,
}


def from_swe_agent(data: Mapping[str, Any], *, name: str) -> Trajectory:
    """The trajectory in a `.traj` file: its history, its submission as the patch, its usage. Raises DatasetError.

    SWE-agent names the file after the instance, so `name` is the task. Where the agent wrote its actions as text, they
    stay text: the file does not hold them as calls.
    """
    history, info = data.get("history"), data.get("info") or {}
    if not isinstance(history, list):
        raise DatasetError(f"{name} is not a .traj file of SWE-agent: it has no history")
    messages: list[dict[str, Any]] = []
    for number, message in enumerate(history):
        with reading(f"{name}: message {number}"):
            messages.append(_with_call_id(message))
    found = from_messages(messages, name=name, source="swe-agent")
    policy = PolicyInfo(kind="swe-agent", agent=str(messages[0].get("agent") or "main") if messages else "main")
    with reading(f"{name}: its info"):
        known = {"patch": info.get("submission") or "", "stop": _stop(info.get("exit_status")), "usage": _usage(info)}
        return Trajectory.model_validate({**dict(found), **known, "policy": policy})


def _usage(info: Mapping[str, Any]) -> Usage:
    statistics = info.get("model_stats") or {}
    return Usage(
        prompt_tokens=int(statistics.get("tokens_sent") or 0),
        completion_tokens=int(statistics.get("tokens_received") or 0),
        cost_usd=statistics.get("instance_cost"),
    )


def _stop(status: object) -> StopReason:
    """Why it ended. With `submitted (exit_cost)`, what was there when the money ran out was submitted."""
    words = str(status).replace("(", " ").replace(")", " ").split()
    return STOPS.get(words[-1], StopReason.UNKNOWN) if words else StopReason.UNKNOWN


def _with_call_id(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its call's id: SWE-agent names the call that a tool message answers in a list of one."""
    ids = message.get("tool_call_ids")
    return {**message, "tool_call_id": ids[0]} if ids and "tool_call_id" not in message else dict(message)
