"""The files of each format that `gumshoe convert` reads and writes; among them ATIF, the Agent Trajectory Interchange
Format: version 1.8 out, 1.0 to 1.8 in.

A Gumshoe trajectory is written as ATIF twice: in the common fields, for other readers, and whole, as `gumshoe` in
`extra`, because ATIF has no place for decisions, rewards, structured observations and provenance. So it comes back
unchanged. One from elsewhere is read from the common fields.
"""

from __future__ import annotations

import json
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe import __version__
from gumshoe.collect.data.messages import (
    AnsweredTurn,
    assemble,
    content_text,
    foreign_task,
    from_mini_swe_agent,
    from_row,
    from_swe_agent,
    reading,
    tool_answer,
    tool_schema,
)
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Completion, Message, Observation, PolicyInfo, Step, ToolCall, Trajectory, Usage
from gumshoe.storage import read_json, read_jsonl, write_atomic, write_lines

VERSION = "ATIF-v1.8"
VERSIONS = tuple(f"ATIF-v1.{minor}" for minor in range(9))
OURS = "gumshoe"


def to_atif(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as an ATIF object, ready for JSON."""
    if not trajectory.messages:
        raise DatasetError(f"trajectory {trajectory.id} has no messages, and an ATIF trajectory needs a step")
    usage = trajectory.usage
    return {
        "schema_version": VERSION,
        "session_id": trajectory.id,
        "trajectory_id": trajectory.id,
        "agent": _known(
            name=f"gumshoe-{trajectory.policy.agent}",
            version=trajectory.provenance.gumshoe or __version__,
            model_name=trajectory.policy.model or None,
            tool_definitions=[tool.as_openai() for tool in trajectory.tools],
        ),
        "steps": _steps(trajectory),
        "final_metrics": _known(
            total_prompt_tokens=usage.prompt_tokens,
            total_completion_tokens=usage.completion_tokens,
            total_cached_tokens=usage.cached_tokens,
            total_cost_usd=usage.cost_usd,
            total_steps=sum(message.role != "tool" for message in trajectory.messages),
        ),
        "extra": {OURS: trajectory.model_dump(mode="json")},
    }


def _steps(trajectory: Trajectory) -> list[dict[str, Any]]:
    by_message = {step.message_index: step for step in trajectory.steps}
    steps: list[dict[str, Any]] = []
    for index, message in enumerate(trajectory.messages):
        if message.role == "tool":
            continue
        entry: dict[str, Any] = {"step_id": len(steps) + 1}
        step = by_message.get(index)
        if step is not None:
            entry |= _agent_step(step)
        else:
            entry |= {"source": "agent" if message.role == "assistant" else message.role, "message": message.content}
        steps.append(entry)
    return steps


def _agent_step(step: Step) -> dict[str, Any]:
    completion = step.completion
    usage = completion.usage
    calls = completion.tool_calls
    entry = _known(
        source="agent",
        model_name=completion.model or None,
        message=completion.text,
        reasoning_content=completion.reasoning,
        metrics=_known(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            cost_usd=usage.cost_usd,
            completion_token_ids=completion.token_ids,
            logprobs=completion.logprobs,
        ),
    )
    if calls:
        entry["tool_calls"] = [
            {"tool_call_id": call.id, "function_name": call.name, "arguments": call.arguments} for call in calls
        ]
        answers = zip(calls, step.observations, strict=False)
        entry["observation"] = {
            "results": [{"source_call_id": call.id, "content": answer.text} for call, answer in answers]
        }
    return entry


def _known(**values: Any) -> dict[str, Any]:
    """The values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def from_atif(data: Mapping[str, Any]) -> Trajectory:
    """The trajectory in an ATIF object. Raises DatasetError for anything else."""
    version = data.get("schema_version")
    if version not in VERSIONS:
        raise DatasetError(
            f"this is not an ATIF trajectory: schema_version is {version!r}, not ATIF-v1.0 to {VERSION[5:]}"
        )
    with reading("this ATIF trajectory"):
        ours = (data.get("extra") or {}).get(OURS)
        return _foreign(data) if ours is None else Trajectory.model_validate(ours)


def all_from_atif(data: Mapping[str, Any]) -> Iterator[Trajectory]:
    """The trajectory in an ATIF object, then those of the subagents that are embedded in it. Raises DatasetError."""
    yield from_atif(data)
    embedded = data.get("subagent_trajectories") or []
    if not isinstance(embedded, list) or not all(isinstance(one, Mapping) for one in embedded):
        raise DatasetError("this ATIF trajectory cannot be read: subagent_trajectories is not a list of objects")
    for one in embedded:
        yield from all_from_atif(one)


def _foreign(data: Mapping[str, Any]) -> Trajectory:
    agent = data["agent"]
    name = str(data.get("trajectory_id") or data.get("session_id") or "")
    turns: list[Message | AnsweredTurn] = []
    for number, entry in enumerate(data["steps"], 1):
        with reading(f"step {number} of this ATIF trajectory"):
            turns += _turns(entry)
    return assemble(
        turns,
        task=foreign_task(name, source="atif"),
        policy=PolicyInfo(kind="atif", model=agent.get("model_name") or "", agent=agent["name"]),
        tools=tuple(tool_schema(definition) for definition in agent.get("tool_definitions") or ()),
    )


def _turns(entry: Mapping[str, Any]) -> Iterator[Message | AnsweredTurn]:
    """A step as a turn. A step that the agent's model did not write at this point, because it was copied from an
    earlier trajectory or no model was asked for it, becomes messages without a `Step`: exports give it `weight: 0`, so
    it is shown but not trained on.
    """
    results = (entry.get("observation") or {}).get("results") or ()
    if entry["source"] != "agent":
        yield Message(role=entry["source"], content=content_text(entry["message"]))
        yield from (Message(role="user", content=content_text(result.get("content"))) for result in results)
        return
    completion = _completion(entry)
    answers, others = _answers(completion.tool_calls, results)
    if entry.get("is_copied_context") or entry.get("llm_call_count") == 0:
        yield completion.as_message()
        yield from (tool_answer(seen, call) for seen, call in zip(answers, completion.tool_calls, strict=True))
    else:
        yield AnsweredTurn(completion, answers)
    yield from (Message(role="user", content=text) for text in others)


def _completion(entry: Mapping[str, Any]) -> Completion:
    metrics = entry.get("metrics") or {}
    calls = tuple(
        ToolCall(id=call["tool_call_id"], name=call["function_name"], arguments=call["arguments"])
        for call in entry.get("tool_calls") or ()
    )
    return Completion(
        text=content_text(entry["message"]),
        reasoning=entry.get("reasoning_content"),
        tool_calls=calls,
        finish_reason="tool_calls" if calls else "stop",
        usage=Usage(
            prompt_tokens=metrics.get("prompt_tokens") or 0,
            completion_tokens=metrics.get("completion_tokens") or 0,
            cached_tokens=metrics.get("cached_tokens") or 0,
            cost_usd=metrics.get("cost_usd"),
        ),
        model=entry.get("model_name") or "",
        token_ids=metrics.get("completion_token_ids"),
        logprobs=metrics.get("logprobs"),
    )


def _answers(
    calls: Sequence[ToolCall], results: Sequence[Mapping[str, Any]]
) -> tuple[tuple[Observation, ...], list[str]]:
    """Each call's answer, and the results that belong to no call; those that name none go to the calls in order."""
    named = {result["source_call_id"]: result for result in results if result.get("source_call_id")}
    rest = iter([result for result in results if not result.get("source_call_id")])
    found = [named.get(call.id) or next(rest, {}) for call in calls]
    answers = tuple(
        Observation(tool=call.name, text=content_text(result.get("content")))
        for call, result in zip(calls, found, strict=True)
    )
    return answers, [content_text(result.get("content")) for result in rest]


# - files


HEAD_BYTES = 4096
LINES = (".jsonl", ".ndjson")
"""Names of files end so that hold an object in each line."""


@dataclass(frozen=True)
class Format:
    """How trajectories are stored in files: the object in a JSON file, or one in each line (see `LINES`).

    Attributes:
        endings: how the names of its files end, by which they are found in a folder.
        parse: the trajectories in an object, given its name: that of the file, with the number of the line if there
            are several. Raises DatasetError.
        mark: what the beginning of a file holds if it is one of them; others in a folder are skipped.
    """

    endings: tuple[str, ...]
    parse: Callable[[Mapping[str, Any], str], Iterable[Trajectory]]
    mark: bytes = b""

    def read(self, file: Path) -> Iterator[Trajectory]:
        """The trajectories in one file. Raises a DatasetError that names it."""
        for place, name, value in _objects(file):
            try:
                yield from self.parse(value, name)
            except DatasetError as error:
                raise DatasetError(f"{place}: {error}") from None

    def read_all(self, source: Path) -> Iterator[Trajectory]:
        """The trajectories in a file, or in all files in and below a folder. Raises DatasetError."""
        files = [source]
        if source.is_dir():
            files = [file for file in sorted(source.rglob("*")) if self._is_among(file)]
        if not files:
            raise DatasetError(f"{source} holds no {' or '.join(self.endings)} files of this format")
        for file in files:
            yield from self.read(file)

    def _is_among(self, file: Path) -> bool:
        if not file.name.endswith(self.endings) or not file.is_file():
            return False
        if not self.mark:
            return True
        with file.open("rb") as opened:
            return self.mark in opened.read(HEAD_BYTES)


def _objects(file: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The objects in a file, each with its place and its name. Raises DatasetError."""
    if file.suffix in LINES:
        for number, row in read_jsonl(file):
            yield f"{file} line {number}", f"{file.stem}-{number}", row
        return
    value = read_json(file)
    if not isinstance(value, dict):
        raise DatasetError(f"{file} must hold a JSON object")
    yield str(file), file.name.removesuffix(".json").removesuffix(".traj"), value


FORMATS: dict[str, Format] = {
    # Harbor's job folders hold other JSON, too.
    "atif": Format((".json", ".jsonl"), lambda value, name: all_from_atif(value), mark=b'"ATIF-v'),
    "messages": Format((".jsonl",), lambda value, name: [from_row(value, name=name)]),
    "mini-swe-agent": Format((".traj.json",), lambda value, name: [from_mini_swe_agent(value, name=name)]),
    "swe-agent": Format((".traj",), lambda value, name: [from_swe_agent(value, name=name)]),
}


def write_atif(trajectories: Iterable[Trajectory], out: Path) -> int:
    """Writes trajectories as ATIF, and returns how many.

    `out` is a .jsonl file for all of them, a .json file for a single one, or a folder that gets one file for each.
    Raises ConfigError if there are several for a .json file.
    """
    if out.suffix == ".jsonl":
        return write_lines(out, (json.dumps(to_atif(one), ensure_ascii=False) for one in trajectories))
    names: Counter[str] = Counter()
    for trajectory in trajectories:
        if out.suffix == ".json" and names:
            raise ConfigError(
                f"{out.name} can hold only one trajectory, but there are several: give a folder for --out"
            )
        name = urllib.parse.quote(trajectory.id, safe="#")[:200]
        names[name] += 1
        # Episodes of two arms may have one id. No quoted id holds a space.
        numbered = name if names[name] == 1 else f"{name} {names[name]}"
        text = json.dumps(to_atif(trajectory), ensure_ascii=False, indent=1)
        write_atomic(out if out.suffix == ".json" else out / f"{numbered}.json", f"{text}\n")
    return names.total()
