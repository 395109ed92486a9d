"""An episode in the list: a row of plain values, and the words to search in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gumshoe.records import Location, Step, StopReason, Trajectory

LONGEST = 300
"""Characters of a value in the list; longer ones are cut."""
MOST_WORDS = 4_000_000
"""Characters of an episode that can be searched; text beyond that is not found."""
MOST_STEPS = 2_000
"""Turns that the strip shows."""
REPORTED = "reported"
Value = str | float | int | None


@dataclass(frozen=True)
class ListRow:
    """What the list shows of an episode.

    `strip` has one letter per turn; `facts` holds whatever else can be filtered by; `locations` are those of the
    report that ended the episode, None if no report did.
    """

    id: str
    task: str
    project: str
    policy: str
    outcome: str
    stop: str
    steps: int
    tokens: int | None
    cost: float | None
    seconds: float | None
    created: str
    strip: str
    locations: tuple[Location, ...] | None = None
    facts: Mapping[str, Value] = field(default_factory=dict)


def make_row(episode: Trajectory) -> ListRow:
    """The row of an episode of a run."""
    usage, steps, pack = episode.usage, episode.steps, episode.context_pack
    confidences = [step.confidence for step in steps if step.confidence is not None]
    calls = [call for step in steps for call in step.observations]
    facts: dict[str, Value] = {
        **{f"tag.{name}": value for name, value in episode.task.tags.items()},
        **{f"score.{score.name}": score.value for score in episode.scores},
        "kind": episode.policy.kind,
        "model": episode.policy.model,
        "agent": episode.policy.agent,
        "task source": episode.task.source,
        "regime": episode.task.regime,
        "sandbox": episode.provenance.sandbox,
        "seed": episode.provenance.seed,
        "tools": " ".join(sorted({one.tool for one in calls})),
        "failed calls": sum(one.failure is not None for one in calls),
        "errors": len(episode.errors),
        "confidence": round(sum(confidences) / len(confidences), 3) if confidences else None,
        "findings": len(pack.findings) if pack else 0,
        "locations": len(pack.locations) if pack else 0,
        "patched": "yes" if episode.patch else "no",
        "tampered": "yes" if episode.tampering else "no",
    }
    if episode.branch is not None:
        facts |= {"branch of": episode.branch.parent, "branch step": episode.branch.step + 1}
    return ListRow(
        id=episode.id,
        task=_cut(episode.task.id),
        project=_cut(episode.task.tags.get("project", "")),
        policy=_policy_name(episode),
        outcome=_outcome(episode),
        stop=episode.stop.value,
        steps=len(steps),
        tokens=usage.tokens or None,
        cost=usage.cost_usd,
        seconds=round(max((step.started_at + step.duration_s for step in steps), default=0.0), 3) or None,
        created=episode.provenance.created_at,
        strip="".join(map(_letter, steps[:MOST_STEPS])),
        locations=pack.locations if pack is not None and episode.stop is StopReason.REPORTED else None,
        facts={name: _cut(value) if isinstance(value, str) else value for name, value in facts.items()},
    )


def make_dataset_row(data: Mapping[str, Any], episode: Trajectory, view: str, split: str) -> ListRow:
    """The row of a dataset's row and of the episode in it.

    A seeker's row ends with a report: whether the episode that it was made from fixed the bug, why that one stopped
    and what it cost are facts of that episode, not of the row.
    """
    row = make_row(episode)
    facts = {
        **{name: value for name, value in row.facts.items() if name.startswith("tag.") or name in _KEPT},
        "episode": str(data.get("episode") or row.id),
        "episode outcome": row.outcome,
        "view": view,
        "split": split,
        "messages": len(episode.messages),
        "characters": sum(len(text) for text in _message_texts(episode)),
    }
    decision = data.get("decision")
    if isinstance(decision, str):
        facts["decision"] = decision
    row = replace(row, facts=facts, steps=row.steps or 1, strip=row.strip or "-")
    if not view.startswith("seeker"):
        return row
    paid = row if episode.policy.agent == "seeker" else replace(row, tokens=None, cost=None)
    pack = episode.context_pack
    return replace(
        paid,
        outcome=REPORTED if pack is not None else "",
        stop=REPORTED if data.get("stop") else row.stop,
        locations=None if pack is None else pack.locations,
    )


_KEPT = {"model", "agent", "task source", "tools", "failed calls", "findings", "locations"}


def searchable_text(episode: Trajectory) -> str:
    """What was said and seen in an episode, as one text to search in."""
    return "\n".join(filter(None, _spoken(episode)))[:MOST_WORDS]


def _spoken(episode: Trajectory) -> Iterator[str]:
    yield from (episode.id, episode.task.id, *_message_texts(episode))
    if episode.context_pack is not None:
        pack = episode.context_pack
        yield pack.hypothesis
        yield from (text for finding in pack.findings for text in (finding.claim, finding.quote))
        yield from (text for place in pack.locations for text in (place.path, place.symbol or "", place.why))
    yield episode.patch


def _message_texts(episode: Trajectory) -> Iterator[str]:
    for message in episode.messages:
        yield from (message.content, message.reasoning or "")
        for call in message.tool_calls:
            yield from (call.name, *map(str, call.arguments.values()))


def _letter(step: Step) -> str:
    decision = step.decision or step.stated
    return "-" if decision is None else "u" if decision.value == "submit" else decision.value[0]


def _policy_name(episode: Trajectory) -> str:
    kind, model = episode.policy.kind, episode.policy.model.strip()
    short = model.split()[0].rstrip("/").rpartition("/")[2] if model else ""
    return _cut(f"{kind} {short}".strip())


def _outcome(episode: Trajectory) -> str:
    """Whether the bug was fixed, if that was tried and is known; else why the episode stopped."""
    if episode.resolved is None or episode.stop is StopReason.REPORTED:
        return episode.stop.value.replace("_", " ")
    return "resolved" if episode.resolved else "not resolved"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
