"""The files of SWE-agent (`.traj`) and of mini-swe-agent (`.traj.json`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gumshoe.collect.data.interchange.messages import from_messages, reading
from gumshoe.errors import DatasetError
from gumshoe.records import PolicyInfo, StopReason, Trajectory, Usage

__all__ = ["from_mini_swe_agent", "from_swe_agent"]

STOPS = {
    "submitted": StopReason.SUBMITTED,
    "exit_cost": StopReason.COST_LIMIT,
    "exit_context": StopReason.CONTEXT_OVERFLOW,
    "exit_format": StopReason.NO_TOOL_CALL,
    "exit_total_execution_time": StopReason.WALL_LIMIT,
}
MINI_STOPS = {
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
"""The only tool of mini-swe-agent."""


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
        usage, model = _stated_usage(said, info), str(info["config"]["model"]["model_name"])
    return found.model_copy(
        update={
            "patch": submission if submission.startswith("diff ") else "",
            "stop": MINI_STOPS.get(str(info.get("exit_status")), StopReason.UNKNOWN),
            "usage": usage,
            "policy": PolicyInfo(kind="mini-swe-agent", model=model, agent="default"),
        }
    )


def _stated_usage(messages: list[dict[str, Any]], info: Mapping[str, Any]) -> Usage:
    """Tokens as the servers' answers state them; a cost of 0 is one that mini-swe-agent did not know."""
    answers = [(message.get("extra") or {}).get("response") for message in messages]
    stated = [answer.get("usage") or {} for answer in answers if isinstance(answer, dict)]
    cost = float((info.get("model_stats") or {}).get("instance_cost") or 0.0)
    return Usage(
        prompt_tokens=sum(int(one.get("prompt_tokens") or 0) for one in stated),
        completion_tokens=sum(int(one.get("completion_tokens") or 0) for one in stated),
        cost_usd=cost or None,
    )
