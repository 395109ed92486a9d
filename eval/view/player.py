"""One episode as the player shows it."""

from __future__ import annotations

from typing import Any

from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.conversation import shown
from gumshoe.eval.view.code import code_of
from gumshoe.eval.view.packs import pack_of
from gumshoe.records import Message, Observation, Step, ToolCall, Trajectory

__all__ = ["cap", "player_of"]

MOST_CHARACTERS = 8_000_000
"""Characters in all the texts of an episode together, as they are sent to a browser."""
LONGEST_TEXT = 200_000
SHORTEST_TEXT = 2_000


def player_of(episode: Trajectory, gold: str | None, *, kind: str, live: bool) -> dict[str, Any]:
    """Everything that the player shows of an episode.

    Args:
        episode: the episode.
        gold: the gold patch of its task, if it is known.
        kind: what it is from, `run` or `dataset`: a dataset holds no times.
        live: it is still in progress; its journal holds no prompts.
    """
    timed = kind == "run" and not live
    data = episode.model_dump(
        mode="json",
        include={"id", "task", "policy", "provenance", "scores", "errors", "tampering", "usage", "tools", "patch"},
    )
    everything = shown(episode.messages, len(episode.messages))
    found: dict[int, list[dict[str, str]]] = {}
    for one in unseen(episode) if timed else ():
        found.setdefault(one.step, []).append({"where": one.where, "kind": one.kind, "text": one.text})
    return {
        **data,
        "stop": "running" if live else episode.stop.value,
        "resolved": episode.resolved,
        "messages": [
            _message(message) | ({"left_out": short.content} if short.content != message.content else {})
            for message, short in zip(episode.messages, everything, strict=True)
        ],
        "steps": [_step(step, timed=timed) | {"unseen": found.get(step.index, [])} for step in episode.steps],
        "pack": pack_of(episode.context_pack, episode.steps, gold),
        "gold": gold,
        "exact": not live,
    }


def cap(episode: dict[str, Any]) -> dict[str, Any]:
    """The episode with its longest texts cut, so that a browser can show it. Cut texts say so; stored data is whole."""
    limit = LONGEST_TEXT
    while (size := _size(episode, limit)) > MOST_CHARACTERS and limit > SHORTEST_TEXT:
        limit = max(SHORTEST_TEXT, min(limit // 2, int(limit * MOST_CHARACTERS / size)))
    count = [0]
    episode = _cut(episode, limit, count)
    return {**episode, "cut": count[0]}


def _size(value: Any, limit: int) -> int:
    if isinstance(value, str):
        return min(len(value), limit)
    if isinstance(value, dict):
        return sum(_size(item, limit) for item in value.values())
    return sum(_size(item, limit) for item in value) if isinstance(value, list) else 0


def _cut(value: Any, limit: int, count: list[int]) -> Any:
    if isinstance(value, str) and len(value) > limit:
        count[0] += 1
        head, tail = value[: limit * 3 // 4], value[-(limit // 4) :]
        return f"{head}\n[… {len(value) - limit:,} characters are not shown …]\n{tail}"
    if isinstance(value, dict):
        return {_cut(name, limit, count): _cut(item, limit, count) for name, item in value.items()}
    return [_cut(item, limit, count) for item in value] if isinstance(value, list | tuple) else value


def _step(step: Step, *, timed: bool) -> dict[str, Any]:
    usage = step.completion.usage
    return {
        "index": step.index,
        "message_index": step.message_index,
        "decision": step.decision.value if step.decision else None,
        "stated": step.stated.value if step.stated else None,
        "rationale": step.rationale,
        "confidence": step.confidence,
        "text": step.completion.text,
        "reasoning": step.completion.reasoning,
        "calls": [_call(call) for call in step.tool_calls],
        "observations": [_observation(one, timed) for one in step.observations],
        "elided": step.elided,
        "reward": step.reward,
        "started": step.started_at if timed else None,
        "seconds": step.duration_s if timed else None,
        "asking": usage.duration_s if timed else None,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": usage.cost_usd,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "error": call.parse_error, "raw": call.raw}


def _observation(one: Observation, timed: bool) -> dict[str, Any]:
    return {
        "tool": one.tool,
        "text": one.text,
        "failure": one.failure.model_dump() if one.failure else None,
        "truncated": one.truncated,
        "seconds": one.duration_s if timed else None,
        "code": code_of(one.tool, one.data),
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": [_call(call) for call in message.tool_calls],
        "name": message.name,
    }
