"""SWE-agent's `.traj` files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gumshoe.collect.interchange.messages import from_messages
from gumshoe.errors import DatasetError
from gumshoe.records import PolicyInfo, Trajectory, Usage

__all__ = ["from_swe_agent"]


def from_swe_agent(data: Mapping[str, Any], *, name: str) -> Trajectory:
    """The trajectory in a `.traj` file: its history, its submission as patch, its usage. Raises DatasetError.

    Where the agent wrote its actions as text, they stay text: the file does not hold them as calls.
    """
    history, info = data.get("history"), data.get("info") or {}
    if not isinstance(history, list):
        raise DatasetError(f"{name} is no .traj file of SWE-agent: it has no history")
    messages = [_with_call_id(message) for message in history if isinstance(message, dict)]
    found = from_messages(messages, name=str(data.get("environment") or name), source="swe-agent")
    statistics = info.get("model_stats") or {}
    usage = Usage(
        prompt_tokens=int(statistics.get("tokens_sent") or 0),
        completion_tokens=int(statistics.get("tokens_received") or 0),
        cost_usd=statistics.get("instance_cost"),
    )
    policy = PolicyInfo(kind="swe-agent", agent=str(history[0].get("agent") or "main") if history else "main")
    return found.model_copy(update={"patch": info.get("submission") or "", "usage": usage, "policy": policy})


def _with_call_id(message: Mapping[str, Any]) -> dict[str, Any]:
    """SWE-agent names the call that a tool message answers in a list of one."""
    ids = message.get("tool_call_ids")
    return {**message, "tool_call_id": ids[0]} if ids and "tool_call_id" not in message else dict(message)
