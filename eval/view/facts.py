"""An episode in the list: a row of plain values, and the words to search in.

Read from the raw JSON with care rather than as records: rows are also shown for what other versions and other programs
have written. A value of the wrong type counts as missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "LONGEST",
    "REPORTED",
    "Lines",
    "ListRow",
    "row_of_dataset",
    "row_of_journal",
    "row_of_trajectory",
    "words_of",
]

LONGEST = 300
"""Characters of a value in the list; longer ones are cut."""
MOST_WORDS = 4_000_000
"""Characters of an episode that can be searched; text beyond that is not found."""
LARGEST = 1 << 63
"""Integers in the index are smaller than this."""
MOST_STEPS = 2_000
"""Turns that the strip shows."""

MOST_LOCATIONS = 50
"""Locations of a report that are compared with the gold patch."""

LETTERS = {"seek": "s", "edit": "e", "verify": "v", "report": "r", "submit": "u"}
ROW_MESSAGES = ("prompt", "completion", "chosen", "rejected")
"""Columns with the messages of a dataset's row that is not a whole conversation."""
Value = str | float | int | None
Lines = tuple[str, int, int]
"""A location of a report: path, first and last line."""
REPORTED = "reported"


@dataclass(frozen=True)
class ListRow:
    """An episode in the list.

    `strip` has one letter per turn; `facts` holds whatever else can be filtered by; `locations` are those of the
    report that ended the episode, None where no report did.
    """

    id: str
    task: str
    project: str = ""
    policy: str = ""
    outcome: str = ""
    stop: str = ""
    steps: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    created: str = ""
    strip: str = ""
    locations: Sequence[Lines] | None = None
    facts: Mapping[str, Value] = field(default_factory=dict)


def row_of_trajectory(data: Mapping[str, Any]) -> ListRow:
    """The row of a finished trajectory."""
    task, policy = _map(data, "task"), _map(data, "policy")
    usage, provenance = _map(data, "usage"), _map(data, "provenance")
    steps = [step for step in _list(data, "steps") if isinstance(step, dict)]
    scores = {
        _text(score, "name"): _number(score, "value") for score in _list(data, "scores") if isinstance(score, dict)
    }
    tags = {name: value for name, value in _map(task, "tags").items() if isinstance(value, str)}
    observations = [one for step in steps for one in _list(step, "observations") if isinstance(one, dict)]
    return ListRow(
        id=_text(data, "id"),
        task=_text(task, "id"),
        project=_cut(tags.get("project", "")),
        policy=_policy_name(_text(policy, "kind"), _text(policy, "model")),
        outcome=_outcome(scores.get("resolved"), _text(data, "stop")),
        locations=_locations(data) if _text(data, "stop") == REPORTED else None,
        stop=_text(data, "stop"),
        steps=len(steps),
        tokens=_tokens(usage),
        cost=_number(usage, "cost_usd"),
        seconds=_seconds(steps),
        created=_text(provenance, "created_at"),
        strip="".join(_letter(step) for step in steps[:MOST_STEPS]),
        facts={
            **{f"tag.{name}": _cut(value) for name, value in tags.items()},
            **{f"score.{name}": value for name, value in scores.items()},
            "kind": _text(policy, "kind"),
            "model": _text(policy, "model"),
            "agent": _text(policy, "agent"),
            "task source": _text(task, "source"),
            "regime": _text(task, "regime"),
            "sandbox": _text(provenance, "sandbox"),
            "seed": _number(provenance, "seed"),
            "tools": " ".join(sorted({_text(one, "tool") for one in observations})),
            "failed calls": sum(isinstance(one.get("failure"), dict) for one in observations),
            "errors": len(_list(data, "errors")),
            "confidence": _mean([_number(step, "confidence") for step in steps]),
            "findings": len(_list(_map(data, "context_pack"), "findings")),
            "locations": len(_list(_map(data, "context_pack"), "locations")),
            "patched": "yes" if data.get("patch") else "no",
            "tampered": "yes" if _list(data, "tampering") else "no",
            **_branch(data),
        },
    )


def row_of_dataset(data: Mapping[str, Any], view: str, split: str) -> ListRow:
    """The row of a dataset's row, its JSON columns decoded.

    A seeker's row ends with a report: whether the episode that it was made from fixed the bug, why that one stopped
    and what it cost are facts of that episode, not of the row.
    """
    entries = [entry for entry in _list(data, "steps") if isinstance(entry, dict)]
    turns = {entry.get("step"): entry for entry in reversed(entries)}
    steps = [turns[index] for index in sorted(key for key in turns if isinstance(key, int))]
    tags = {name: value for name, value in _map(data, "task_tags").items() if isinstance(value, str)}
    decision = _text(data, "decision")
    stop = _text(data, "stop")
    outcome = _outcome(_truth(data.get("resolved")), stop)
    seeks = view.startswith("seeker")
    usage = {} if seeks and _text(data, "agent") != "seeker" else _map(data, "usage")
    return ListRow(
        id=_text(data, "id"),
        task=_text(data, "task_id"),
        project=_text(data, "project"),
        policy=_policy_name(_text(data, "policy"), _text(data, "model")),
        outcome=outcome if not seeks else REPORTED if data.get("context_pack") else "",
        stop=REPORTED if seeks and stop else stop,
        steps=len(steps) or 1,
        tokens=_tokens(usage),
        cost=_number(usage, "cost_usd"),
        locations=_locations(data) if seeks or stop == REPORTED else None,
        created=_text(_map(data, "provenance"), "created_at"),
        strip="".join(_letter(step) for step in steps[:MOST_STEPS]) or LETTERS.get(decision, "-"),
        facts={
            **{f"tag.{name}": _cut(value) for name, value in tags.items()},
            "episode": _text(data, "episode") or _text(data, "id"),
            "episode outcome": outcome,
            "view": view,
            "split": split,
            "agent": _text(data, "agent"),
            "model": _text(data, "model"),
            **({"decision": decision} if decision else {}),
            "task source": _text(data, "source"),
            "messages": len(_list(data, "messages")) or sum(len(_list(data, name)) for name in ROW_MESSAGES),
            "characters": sum(len(text) for text in _message_texts(data)),
            "tools": " ".join(sorted({_text(entry, "tool") for entry in entries} - {""})),
            "failed calls": sum(entry.get("failure") is not None for entry in entries),
            "findings": len(_list(_map(data, "context_pack"), "findings")),
            "locations": len(_list(_map(data, "context_pack"), "locations")),
        },
    )


def row_of_journal(entries: Sequence[Mapping[str, Any]]) -> ListRow:
    """The row of an episode in progress, from the lines of its journal."""
    identity = _map(entries[0], "episode") if entries else {}
    completions = [_map(entry, "completion") for entry in entries if "completion" in entry]
    usage = Counter[str]()
    for completion in completions:
        for name in ("prompt_tokens", "completion_tokens"):
            usage[name] += int(_number(_map(completion, "usage"), name) or 0)
    name = _text(identity, "id")
    return ListRow(
        id=name,
        task=name.rpartition("#")[0] or name,
        outcome="running",
        stop="running",
        steps=len(completions),
        tokens=(usage.total() or None) if abs(usage.total()) < LARGEST else None,
        strip="".join(_stated_letter(_text(completion, "text")) for completion in completions[:MOST_STEPS]),
    )


def words_of(data: Mapping[str, Any]) -> str:
    """What was said and seen in an episode, as one text to search in."""
    parts: list[str] = []
    room = MOST_WORDS
    for text in _spoken(data):
        parts.append(text[:room])
        room -= len(parts[-1])
        if room <= 0:
            break
    return "\n".join(part for part in parts if part)


def _spoken(data: Mapping[str, Any]) -> Iterator[str]:
    yield _text(data, "id")
    yield _text(data, "task_id") or _text(_map(data, "task"), "id")
    yield from _message_texts(data)
    for entry in _list(data, "journal"):
        yield _text(_map(entry, "completion"), "text", longest=None)
        yield from (text for text in _list(entry, "observations") if isinstance(text, str))
    pack = _map(data, "context_pack")
    yield _text(pack, "hypothesis")
    for part in (*_list(pack, "findings"), *_list(pack, "locations")):
        if isinstance(part, dict):
            yield from (value for value in part.values() if isinstance(value, str))
    patch = data.get("patch")
    yield patch if isinstance(patch, str) else ""


def _message_texts(data: Mapping[str, Any]) -> Iterator[str]:
    for message in (one for name in ("messages", *ROW_MESSAGES) for one in _list(data, name)):
        if not isinstance(message, dict):
            continue
        for name in ("content", "reasoning", "reasoning_content"):
            yield _text(message, name, longest=None)
        for call in _list(message, "tool_calls"):
            if isinstance(call, dict):
                function = _map(call, "function") or call
                yield _text(function, "name")
                yield from (str(value) for value in _map(function, "arguments").values())


def _branch(data: Mapping[str, Any]) -> dict[str, Value]:
    """For an episode that began in the middle of another one: which one, and at which step, counted from 1."""
    point = _map(data, "branch")
    step = _number(point, "step")
    return {} if step is None else {"branch of": _text(point, "parent"), "branch step": step + 1}


def _letter(step: Mapping[str, Any]) -> str:
    decision = step.get("decision") or step.get("stated")
    return LETTERS.get(decision, "-") if isinstance(decision, str) else "-"


def _stated_letter(text: str) -> str:
    return next((letter for name, letter in LETTERS.items() if text.startswith(f"[{name}")), "-")


def _policy_name(kind: str, model: str) -> str:
    short = model.split()[0].rstrip("/").rpartition("/")[2] if model.strip() else ""
    return f"{kind} {short}" if short else kind


def _outcome(resolved: float | None, stop: str) -> str:
    """Whether the bug was fixed, if that was tried and is known; else why the episode stopped."""
    if resolved is None or stop == REPORTED:
        return stop.replace("_", " ")
    return "resolved" if resolved == 1.0 else "not resolved"


def _truth(value: object) -> float | None:
    return float(value) if isinstance(value, bool) else None


def _locations(data: Mapping[str, Any]) -> list[Lines] | None:
    """The locations of the report; None where there is none."""
    if not isinstance(data.get("context_pack"), dict):
        return None
    found = [one for one in _list(_map(data, "context_pack"), "locations")[:MOST_LOCATIONS] if isinstance(one, dict)]
    lines = [(_text(one, "path"), one.get("start"), one.get("end")) for one in found]
    return [(path, start, end) for path, start, end in lines if isinstance(start, int) and isinstance(end, int)]


def _tokens(usage: Mapping[str, Any]) -> int | None:
    found = [_number(usage, name) for name in ("prompt_tokens", "completion_tokens")]
    known = [int(value) for value in found if value is not None]
    return sum(known) if known and abs(sum(known)) < LARGEST else None


def _seconds(steps: Sequence[Mapping[str, Any]]) -> float | None:
    ends = [(_number(step, "started_at") or 0.0) + (_number(step, "duration_s") or 0.0) for step in steps]
    return round(max(ends), 3) if ends else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None


def _map(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def _list(data: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = data.get(name)
    return value if isinstance(value, list) else []


def _text(data: Mapping[str, Any], name: str, *, longest: int | None = LONGEST) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        return ""
    return value if longest is None else _cut(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _number(data: Mapping[str, Any], name: str) -> float | None:
    """A number that JSON and the index can hold, a large one as a float; True is not a number."""
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) < 1e300:
        return None
    return value if abs(value) < LARGEST else float(value)
