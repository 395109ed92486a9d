"""mini-swe-agent's `.traj.json` files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gumshoe.collect.interchange.messages import from_messages
from gumshoe.collect.interchange.reading import reading
from gumshoe.errors import DatasetError
from gumshoe.records import PolicyInfo, StopReason, Trajectory, Usage

__all__ = ["from_mini_swe_agent"]

STOPS = {
    "Submitted": StopReason.SUBMITTED,
    "LimitsExceeded": StopReason.COST_LIMIT,
    "TimeExceeded": StopReason.WALL_LIMIT,
    "ContextWindowExceededError": StopReason.CONTEXT_OVERFLOW,
    "RepeatedFormatError": StopReason.NO_TOOL_CALL,
}
BASH = {
    "name": "bash",
    "description": "Execute a bash command",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


def from_mini_swe_agent(data: Mapping[str, Any], *, name: str) -> Trajectory:
    """The trajectory in a file of mini-swe-agent 2: its messages, its usage, and its submission where that is a patch.

    Raises:
        DatasetError: it is not such a file.
    """
    messages, info = data.get("messages"), data.get("info")
    if not isinstance(messages, list) or not isinstance(info, dict):
        raise DatasetError(f"{name} is not a file of mini-swe-agent: it has no messages and info")
    said = [message for message in messages if not (isinstance(message, dict) and message.get("role") == "exit")]
    found = from_messages(said, [BASH], name=name, source="mini-swe-agent")
    submission = str(info.get("submission") or "")
    with reading(f"{name}: its info"):
        usage, model = _usage(said, info), str(info["config"]["model"]["model_name"])
    return found.model_copy(
        update={
            "patch": submission if submission.startswith("diff ") else "",
            "stop": STOPS.get(str(info.get("exit_status")), StopReason.UNKNOWN),
            "usage": usage,
            "policy": PolicyInfo(kind="mini-swe-agent", model=model, agent="default"),
        }
    )


def _usage(messages: list[dict[str, Any]], info: Mapping[str, Any]) -> Usage:
    """Tokens as the servers' answers state them; a cost of 0 is one that mini-swe-agent did not know."""
    answers = [(message.get("extra") or {}).get("response") for message in messages]
    stated = [answer.get("usage") or {} for answer in answers if isinstance(answer, dict)]
    cost = float((info.get("model_stats") or {}).get("instance_cost") or 0.0)
    return Usage(
        prompt_tokens=sum(int(one.get("prompt_tokens") or 0) for one in stated),
        completion_tokens=sum(int(one.get("completion_tokens") or 0) for one in stated),
        cost_usd=cost or None,
    )
