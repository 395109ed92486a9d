"""One episode for the player: from a trajectory, a dataset's row or the journal of an episode in progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from gumshoe.collect.decisions import parse_decision
from gumshoe.collect.elision import shown
from gumshoe.collect.unseen import unseen
from gumshoe.errors import DatasetError
from gumshoe.eval.view.code import code_of
from gumshoe.eval.view.packs import pack_of
from gumshoe.records import Completion, ContextPack, Message, Observation, Step, ToolCall, Trajectory
from gumshoe.storage import describe

__all__ = ["cap", "of_dataset", "of_journal", "of_trajectory"]

MOST_CHARACTERS = 8_000_000
"""Characters in all the texts of an episode together, as they are sent to a browser."""
LONGEST_TEXT = 200_000
SHORTEST_TEXT = 2_000

Episode = dict[str, Any]


def of_trajectory(line: bytes, gold: str | None) -> Episode:
    """A finished trajectory; `gold` is the gold patch of its task, where it is known. Raises DatasetError."""
    try:
        trajectory = Trajectory.model_validate_json(line)
    except ValidationError as error:
        raise DatasetError(f"this is not a trajectory: {describe(error)}") from None
    everything = shown(trajectory.messages, len(trajectory.messages))
    return {
        "id": trajectory.id,
        "task": trajectory.task.model_dump(mode="json"),
        "policy": trajectory.policy.model_dump(mode="json"),
        "provenance": trajectory.provenance.model_dump(mode="json"),
        "stop": trajectory.stop.value,
        "resolved": trajectory.resolved,
        "scores": [score.model_dump(mode="json") for score in trajectory.scores],
        "errors": list(trajectory.errors),
        "tampering": list(trajectory.tampering),
        "usage": trajectory.usage.model_dump(mode="json"),
        "tools": [tool.model_dump(mode="json") for tool in trajectory.tools],
        "messages": [
            _message(message) | ({"left_out": short.content} if short.content != message.content else {})
            for message, short in zip(trajectory.messages, everything, strict=True)
        ],
        "steps": _steps_with_unseen(trajectory),
        "patch": trajectory.patch,
        "pack": pack_of(trajectory.context_pack, trajectory.steps, gold),
        "gold": gold,
        "exact": True,
    }


def of_dataset(row: Mapping[str, Any], gold: str | None) -> Episode:
    """A row of a dataset. What the columns do not hold is missing: the debugger's frames, the time of each step."""
    messages = [one for name in ("messages", "prompt", "completion", "chosen") for one in _objects(row.get(name))]
    steps = _steps_of_row(row, messages)
    try:
        pack = ContextPack.model_validate(row["context_pack"]) if row.get("context_pack") else None
    except ValidationError:
        pack = None
    text = {name: str(row.get(name) or "") for name in ("id", "task_id", "source", "policy", "model", "agent")}
    tags = row.get("task_tags")
    return {
        "id": text["id"],
        "task": {"id": text["task_id"], "source": text["source"], "tags": tags if isinstance(tags, dict) else {}},
        "policy": {"kind": text["policy"], "model": text["model"], "agent": text["agent"]},
        "provenance": row.get("provenance") or {},
        "stop": str(row.get("stop") or ""),
        "resolved": row.get("resolved"),
        "scores": [],
        "errors": [],
        "tampering": [],
        "usage": row.get("usage") or {},
        "tools": [one.get("function", one) for one in _objects(row.get("tools"))],
        "messages": [_message_of_row(message) for message in messages],
        "steps": [_step(step, timed=False) for step in steps],
        "patch": str(row.get("patch") or ""),
        "pack": pack_of(pack, steps, gold),
        "gold": gold,
        "exact": True,
    }


def of_journal(entries: Sequence[Mapping[str, Any]]) -> Episode:
    """An episode in progress. Its journal contains decisions and observations, not the prompts."""
    identity = entries[0].get("episode") if entries else None
    name = str(identity.get("id", "")) if isinstance(identity, dict) else ""
    turns: list[tuple[Completion, list[str]]] = []
    for entry in entries[1:]:
        if "completion" in entry:
            try:
                turns.append((Completion.model_validate(entry["completion"]), []))
            except ValidationError:
                break
        elif turns and isinstance(entry.get("observations"), list):
            turns[-1] = (turns[-1][0], [str(text) for text in entry["observations"]])
    steps: list[Step] = []
    messages: list[Message] = []
    for index, (completion, texts) in enumerate(turns):
        steps.append(_step_in_flight(index, len(messages), completion, texts))
        messages += [
            completion.as_message(),
            *(Message(role="tool", content=f"[step {index}] {text}") for text in texts),
        ]
    usage = sum((completion.usage for completion, _ in turns), Completion(text="").usage)
    return {
        "id": name,
        "task": {"id": name.rpartition("#")[0], "source": "", "tags": {}},
        "policy": {"kind": "", "model": turns[0][0].model if turns else "", "agent": ""},
        "provenance": {},
        "stop": "running",
        "resolved": None,
        "scores": [],
        "errors": [],
        "tampering": [],
        "usage": usage.model_dump(mode="json"),
        "tools": [],
        "messages": [_message(message) for message in messages],
        "steps": [_step(step, timed=False) for step in steps],
        "patch": "",
        "pack": None,
        "gold": None,
        "exact": False,
    }


def cap(episode: Episode) -> Episode:
    """The episode with its longest texts cut, so that a browser can show it. Cut texts say so; stored data is whole."""
    limit = LONGEST_TEXT
    while (size := _size(episode, limit)) > MOST_CHARACTERS and limit > SHORTEST_TEXT:
        limit = max(SHORTEST_TEXT, min(limit // 2, int(limit * MOST_CHARACTERS / size)))
    cut = [0]
    episode = _cut(episode, limit, cut)
    return {**episode, "cut": cut[0]}


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


def _step(step: Step, *, timed: bool = True) -> dict[str, Any]:
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
        "unseen": [],
        "started": step.started_at if timed else None,
        "seconds": step.duration_s if timed else None,
        "asking": usage.duration_s if timed else None,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": usage.cost_usd,
    }


def _steps_with_unseen(trajectory: Trajectory) -> list[dict[str, Any]]:
    """The steps, each with what it says that nothing before it has shown."""
    found: dict[int, list[dict[str, str]]] = {}
    for one in unseen(trajectory):
        found.setdefault(one.step, []).append({"where": one.where, "kind": one.kind, "text": one.text})
    return [_step(step) | {"unseen": found.get(step.index, [])} for step in trajectory.steps]


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "arguments": call.arguments, "error": call.parse_error, "raw": call.raw}


def _observation(one: Observation, timed: bool) -> dict[str, Any]:
    return {
        "tool": one.tool,
        "text": one.text,
        "failure": one.failure.model_dump() if one.failure else None,
        "truncated": one.truncated,
        "seconds": one.duration_s if timed else None,
        "code": code_of(one.tool, one.text, one.data),
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": [_call(call) for call in message.tool_calls],
        "name": message.name,
    }


def _message_of_row(message: Mapping[str, Any]) -> dict[str, Any]:
    functions = [one.get("function", one) for one in _objects(message.get("tool_calls"))]
    content, reasoning = message.get("content"), message.get("reasoning_content")
    return {
        "role": str(message.get("role")),
        "content": content if isinstance(content, str) else "",
        "reasoning": reasoning if isinstance(reasoning, str) else None,
        "calls": [
            {"id": "", "name": str(one.get("name")), "arguments": one.get("arguments"), "error": None, "raw": None}
            for one in functions
        ],
        "name": message.get("name"),
    }


def _steps_of_row(row: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> list[Step]:
    """The steps of a dataset's row, put together again from its step table and its messages."""
    entries: dict[int, list[Mapping[str, Any]]] = {}
    for entry in _objects(row.get("steps")):
        if isinstance(entry.get("step"), int):
            entries.setdefault(entry["step"], []).append(entry)
    places = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    steps: list[Step] = []
    for number, index in enumerate(sorted(entries)):
        place = places[number] if number < len(places) else len(messages)
        content = messages[place].get("content") if place < len(messages) else None
        try:
            steps.append(_step_of_row(index, place, content if isinstance(content, str) else "", entries[index]))
        except ValidationError:
            continue
    return steps


def _step_of_row(index: int, place: int, text: str, entries: Sequence[Mapping[str, Any]]) -> Step:
    first = entries[0]
    called = [entry for entry in entries if entry.get("tool")]
    return Step.model_validate(
        {
            "index": index,
            "message_index": place,
            **{name: first.get(name) for name in ("decision", "stated", "rationale", "confidence")},
            "reward": first.get("reward") or 0.0,
            "completion": {
                "text": text,
                "tool_calls": [
                    {"id": str(number), "name": entry["tool"], "arguments": entry.get("arguments") or {}}
                    for number, entry in enumerate(called)
                ],
            },
            "observations": [
                {
                    "tool": entry["tool"],
                    "text": entry["observation"],
                    "failure": {"kind": entry["failure"], "message": ""} if entry.get("failure") else None,
                }
                for entry in called
                if isinstance(entry.get("observation"), str)
            ],
        }
    )


def _step_in_flight(index: int, place: int, completion: Completion, texts: Sequence[str]) -> Step:
    stated = parse_decision(completion.text)
    tools = [call.name for call in completion.tool_calls]
    return Step(
        index=index,
        message_index=place,
        decision=stated.decision,
        stated=stated.decision,
        rationale=stated.rationale,
        confidence=stated.confidence,
        completion=completion,
        observations=tuple(
            Observation(tool=tools[number] if number < len(tools) else "", text=text)
            for number, text in enumerate(texts)
        ),
    )


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
