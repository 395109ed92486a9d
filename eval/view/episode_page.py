"""One episode as the player shows it: its steps, the code that they showed, its pack beside the gold patch.

For an episode in a tree, also what else was tried at its steps, and how that ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from gumshoe.collect.data.tree import Node, Trees, node_of
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.conversation import elide
from gumshoe.collect.packs import clean_path, is_quoted, observation_texts
from gumshoe.eval.score.metrics import changed_lines
from gumshoe.records import ContextPack, Finding, Location, Message, Observation, Step, ToolCall, Trajectory
from gumshoe.tools.evidence.checks import describe_place

LONGEST_TEXT = 200_000
"""Characters of a text, as it is sent to a browser."""
MOST_LINES = 5_000
"""Lines of code that are shown for an observation."""
SENT = {"id", "task", "policy", "provenance", "scores", "errors", "tampering", "usage", "tools", "patch"}
"""What the player gets of an episode as it is stored."""

Answer = dict[str, Any]


def episode_page(episode: Trajectory, gold: str | None, *, kind: str, live: bool) -> dict[str, Any]:
    """Everything that the player shows of an episode from a `kind` of source, as `types.ts` of the viewer declares it.

    A dataset holds no times, and the journal of an episode in progress (`live`) no prompts. `exact` says whether
    `messages` are the prompts as the model got them.
    """
    timed = kind == "run" and not live
    data = episode.model_dump(mode="json", include=SENT)
    everything = elide(episode.messages, len(episode.messages))
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
        "pack": pack_section(episode.context_pack, episode.steps, gold),
        "gold": gold,
        "exact": not live,
    }


def cap(episode: dict[str, Any]) -> dict[str, Any]:
    """The episode with overlong texts cut, so that a browser can show it; `cut` counts them. Stored data is whole."""
    cut: list[str] = []
    return {**_cut(episode, cut), "cut": len(cut)}


def _cut(value: Any, cut: list[str]) -> Any:
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        cut.append(value)
        head, tail = value[: LONGEST_TEXT * 3 // 4], value[-(LONGEST_TEXT // 4) :]
        return f"{head}\n[… {len(value) - LONGEST_TEXT:,} characters are not shown …]\n{tail}"
    if isinstance(value, dict):
        return {_cut(name, cut): _cut(item, cut) for name, item in value.items()}
    return [_cut(item, cut) for item in value] if isinstance(value, list | tuple) else value


def _step(step: Step, *, timed: bool) -> dict[str, Any]:
    completion, usage = step.completion, step.completion.usage
    names = {"index", "message_index", "decision", "stated", "rationale", "confidence", "elided", "reward"}
    return {
        **step.model_dump(mode="json", include=names),
        "text": completion.text,
        "reasoning": completion.reasoning,
        "calls": [_call(call) for call in step.tool_calls],
        "observations": [_observation(one, timed) for one in step.observations],
        "started": step.started_at if timed else None,
        "seconds": step.duration_s if timed else None,
        "asking": usage.duration_s if timed else None,
        **usage.model_dump(include={"prompt_tokens", "completion_tokens", "cached_tokens"}),
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
        "code": shown_code(one.tool, one.data),
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": [_call(call) for call in message.tool_calls],
        "name": message.name,
    }


def shown_code(tool: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data that the pane shows for an observation; nothing for one without data, as in a dataset.

    `path` and `lines` (number, text) are code that was shown, `current` the line at which the program is stopped,
    `diff` a change that was made; `state`, `breakpoints` and `frames` are the debugger's, where it reported them.
    Empty values are left out.
    """
    if tool == "view":
        found = _viewed(data)
    elif tool == "pdb":
        found = _debugged(data)
    else:
        found = {"path": data.get("path"), "diff": data.get("diff")} if tool == "rewrite" else {}
    return {name: value for name, value in found.items() if value not in (None, [], "")}


def _viewed(data: Mapping[str, Any]) -> dict[str, Any]:
    start, lines = data.get("start"), data.get("lines")
    if not isinstance(start, int) or not isinstance(lines, list):
        return {}
    marks = data.get("breakpoints")
    return {
        "path": data.get("path"),
        "lines": [[start + number, str(line)] for number, line in enumerate(lines[:MOST_LINES])],
        "marks": marks if isinstance(marks, list) else [],
    }


def _debugged(data: Mapping[str, Any]) -> dict[str, Any]:
    stop = data.get("stop")
    found: dict[str, Any] = {
        "breakpoints": [_breakpoint(one) for one in _objects(data.get("breakpoints"))],
        "frames": [_frame(one) for one in _objects(data.get("frames"))],
        "frame": data.get("index"),
        "state": data.get("state"),
    }
    if isinstance(stop, dict):
        source = stop.get("source")
        found |= {
            "path": stop.get("path"),
            "current": stop.get("line") if data.get("state") in (None, "stopped") else None,
            "lines": [list(line) for line in source if isinstance(line, list | tuple) and len(line) == 2]
            if isinstance(source, list)
            else [],
            "reason": stop.get("reason"),
        }
    return found


def _breakpoint(one: Mapping[str, Any]) -> dict[str, Any]:
    names = ("path", "line", "condition", "temporary", "enabled", "hits")
    return {name: one[name] for name in names if one.get(name) not in (None, "")}


def _frame(one: Mapping[str, Any]) -> dict[str, Any]:
    values = one.get("local_values")
    known = {name: one.get(name) for name in ("path", "line", "function", "code")}
    return known | {"locals": [list(value) for value in values.items()] if isinstance(values, dict) else []}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def pack_section(pack: ContextPack | None, steps: Sequence[Step], gold: str | None) -> dict[str, Any] | None:
    """What the player shows of a pack; None where nothing was reported.

    `hit` of a location is None where the gold patch is not known; `missed` are the lines of the gold patch that no
    location holds.
    """
    if pack is None:
        return None
    wanted = changed_lines(gold)
    texts = observation_texts(steps)
    return {
        "hypothesis": pack.hypothesis,
        "locations": [
            {**place.model_dump(mode="json"), "hit": None if wanted is None else _hits(place, wanted)}
            for place in pack.locations
        ],
        "findings": [
            {**finding.model_dump(mode="json"), **_marks(finding, texts), "known": finding.step in texts}
            for finding in pack.findings
        ],
        "ruled_out": [item.model_dump(mode="json") for item in pack.ruled_out],
        "failing_frame": pack.failing_frame.model_dump(mode="json") if pack.failing_frame else None,
        "missed": _missed(pack, wanted),
        "reproduction": _reproduction(pack, steps),
    }


def _marks(finding: Finding, texts: Mapping[int, str]) -> dict[str, Any]:
    """Whether it is quoted and grounded, and where its probe looks; `grounded` is None where nothing was ever run."""
    return {
        "quoted": is_quoted(finding, texts),
        "grounded": None if finding.check is None else finding.grounded,
        "place": None if finding.probe is None else describe_place(finding.probe),
    }


def _reproduction(pack: ContextPack, steps: Sequence[Step]) -> dict[str, Any] | None:
    """The test that was written from the issue, and where it was placed; None if there is none."""
    if not pack.reproduction:
        return None
    written = (seen.data.get("path") for step in steps for seen in step.observations if seen.tool == "reproduce")
    return {"path": next((str(path) for path in written if path), ""), "code": pack.reproduction}


def _hits(place: Location, wanted: Mapping[str, Set[int]]) -> bool:
    return any(line in place.lines for line in wanted.get(clean_path(place.path), ()))


def _missed(pack: ContextPack, wanted: Mapping[str, Set[int]] | None) -> list[dict[str, Any]]:
    return [
        {"path": path, "line": line}
        for path, lines in sorted((wanted or {}).items())
        for line in sorted(lines)
        if not any(line in place.lines for place in pack.locations if clean_path(place.path) == path)
    ]


def root_of(episode: str, parents: Mapping[str, str]) -> str:
    """The episode that the tree of an episode began with; `parents` says what each branch branched from."""
    seen: set[str] = set()
    while episode in parents and episode not in seen:
        seen.add(episode)
        episode = parents[episode]
    return episode


def tried_decisions(id: str, members: Iterable[Trajectory], rows: Mapping[str, Mapping[str, Any]]) -> list[Answer]:
    """All decisions that were tried at each step of an episode, by step: best first, its own included.

    `members` are the trajectories of its tree; `rows` holds what the list knows of them, by id.
    """
    steps: dict[str, tuple[Step, ...]] = {}
    nodes: list[Node] = []
    for trajectory in members:
        steps[trajectory.id] = trajectory.steps
        nodes.append(node_of(trajectory))
    trees = Trees(nodes)
    if id not in trees.nodes:
        return []
    found: list[Answer] = []
    for number in range(len(steps[id])):
        mine = trees.owner(id, number)
        siblings = trees.siblings(mine, number)
        if len(siblings) > 1:
            tried = [
                _tried(trees, owner, steps[owner][index], rows) | {"mine": owner == mine} for owner, index in siblings
            ]
            tried.sort(key=lambda one: -1.0 if one["value"] is None else one["value"], reverse=True)
            found.append({"step": number, "tried": tried})
    return found


def _tried(trees: Trees, owner: str, step: Step, rows: Mapping[str, Mapping[str, Any]]) -> Answer:
    worth, row = trees.decision(owner, step.index), rows.get(owner, {})
    return {
        "key": row.get("key"),
        "outcome": row.get("outcome") or "",
        "decision": step.decision.value if step.decision else None,
        "calls": [{"name": call.name, "arguments": call.arguments} for call in step.tool_calls],
        "value": worth.value,
        "count": worth.count,
        "advantage": worth.advantage,
    }
