"""Rows that say what decisions were worth: pairs of decisions tried at one point, and episodes with one label per step.

Both are made from episodes that failed as well as from those that did not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from gumshoe.collect.data.export.rows import COLUMNS, SHARED, Dropped, shared_values
from gumshoe.collect.data.tree import DecisionValue, Trees, node_of
from gumshoe.collect.episode.conversation import as_text_chat, elide
from gumshoe.records import ContextPack, Step, Trajectory

TREE_VIEWS = frozenset(("preferences", "steps_scored"))
SUCCEEDS = 0.5
"""A step is labeled as good if the mean outcome of what followed it was at least this much."""

_COMMON = {name: COLUMNS[name] for name in SHARED} | {"episode": "string"}
PREFERENCE_COLUMNS: dict[str, str] = {
    **{name: kind for name, kind in _COMMON.items() if name != "resolved"},
    "step": "int",
    "decision": "string",
    "prompt": "list of json",
    "chosen": "list of json",
    "rejected": "list of json",
    "tools": "list of json",
    "chosen_value": "float",
    "rejected_value": "float",
    "chosen_count": "int",
    "rejected_count": "int",
}
"""Columns of the pairs: those that TRL's DPO trainer reads, and what the choice was based on."""
SCORED_COLUMNS: dict[str, str] = {
    **_COMMON,
    "prompt": "string",
    "completions": "list of string",
    "labels": "list of bool",
    "values": "list of float",
    "counts": "list of int",
    "advantages": "list of float",
    "contradicted": "list of bool",
}
"""Columns of the labeled episodes: TRL's format for stepwise supervision, and what the labels are made from."""


@dataclass(frozen=True)
class _Tried:
    """A decision that was tried along with others, as it was written, and what it was worth."""

    message: dict[str, Any]
    calls: tuple[str, ...]
    kind: str | None
    contradicted: bool
    value: float | None
    count: int

    @property
    def rank(self) -> tuple[float, bool]:
        """Sorts the better of two decisions to the end."""
        return self.value or 0.0, not self.contradicted

    def differs(self, other: _Tried) -> bool:
        """Whether one of the two is better; decisions that make the same calls do not differ."""
        is_known = (self.value is None) == (other.value is None)
        return is_known and self.calls != other.calls and self.rank != other.rank


class TreeRows:
    """Makes the rows of both views. `read` yields all trajectories, one at a time, each time it is called."""

    def __init__(self, read: Callable[[], Iterable[Trajectory]]) -> None:
        self._trees = Trees(node_of(trajectory) for trajectory in read())
        self._tried: dict[tuple[str, int], _Tried] = {}
        """By trajectory and step."""
        for trajectory in read():
            for step in self._compared(trajectory):
                self._tried[trajectory.id, step.index] = _tried(step, *self._trees.value(trajectory.id, step.index))

    def preferences(self, trajectory: Trajectory) -> Iterator[dict[str, Any]]:
        """A row for each two decisions tried at one point of a trajectory if one of them is better.

        The better one is the one that was worth more or, if both were worth the same, the one whose claims hold when
        a probe contradicts the other's. Raises Dropped if no alternative was tried, or none that differs.
        """
        places = sorted({child.start for child in self._trees.branches(trajectory.id)})
        if not places:
            raise Dropped("none of its decisions branches")
        rows = [row for step in places for row in self._pairs(trajectory, step)]
        if not rows:
            raise Dropped("no decision has a higher value than another")
        yield from rows

    def scored(self, trajectory: Trajectory) -> dict[str, Any]:
        """The row of an episode with a label per step. Raises Dropped if none of its steps has a value."""
        if any(step.elided for step in trajectory.steps):
            raise Dropped("old observations were left out")
        values = [self._value(trajectory, step.index) for step in trajectory.steps]
        if not values or any(value.value is None for value in values):
            raise Dropped("no outcome")
        prompt, completions = _as_steps(trajectory)
        known = [value.value or 0.0 for value in values]
        contradicted = [_is_contradicted(step) for step in trajectory.steps]
        return {
            **shared_values(trajectory),
            "episode": trajectory.id,
            "prompt": prompt,
            "completions": completions,
            "labels": [value >= SUCCEEDS and not wrong for value, wrong in zip(known, contradicted, strict=True)],
            "values": known,
            "counts": [value.count for value in values],
            "advantages": [value.advantage for value in values],
            "contradicted": contradicted,
        }

    def _compared(self, trajectory: Trajectory) -> list[Step]:
        """The steps of a trajectory for which alternatives were tried."""
        places = {child.start for child in self._trees.branches(trajectory.id)}
        own = {trajectory.branch.step} if trajectory.branch is not None else set[int]()
        return [step for step in trajectory.steps if step.index in places | own]

    def _pairs(self, trajectory: Trajectory, step: int) -> Iterator[dict[str, Any]]:
        tried = [self._tried[one] for one in self._trees.siblings(trajectory.id, step) if one in self._tried]
        at = trajectory.steps[step]
        prompt = elide(trajectory.messages[: at.message_index], at.elided)
        shared = {name: value for name, value in shared_values(trajectory).items() if name in PREFERENCE_COLUMNS}
        for pair in combinations(enumerate(tried), 2):
            (bad, rejected), (good, chosen) = sorted(pair, key=lambda numbered: numbered[1].rank)
            if not chosen.differs(rejected):
                continue
            yield {
                **shared,
                "id": f"{trajectory.id}/{step}/{good}>{bad}",
                "episode": trajectory.id,
                "step": step,
                "decision": chosen.kind,
                "prompt": [message.as_openai(arguments_as_text=False) for message in prompt],
                "chosen": [chosen.message],
                "rejected": [rejected.message],
                "tools": [tool.as_openai() for tool in trajectory.tools],
                "chosen_value": chosen.value,
                "rejected_value": rejected.value,
                "chosen_count": chosen.count,
                "rejected_count": rejected.count,
            }

    def _value(self, trajectory: Trajectory, step: int) -> DecisionValue:
        """The value of any step of a trajectory, including those of its parents."""
        return self._trees.decision(self._trees.owner(trajectory.id, step), step)


def _tried(step: Step, value: float | None, count: int) -> _Tried:
    message = step.completion.as_message().as_openai(arguments_as_text=False)
    calls = tuple(call.asks for call in step.tool_calls)
    kind = step.decision.value if step.decision else None
    return _Tried(message, calls, kind, _is_contradicted(step), value, count)


def _is_contradicted(step: Step) -> bool:
    """Whether a turn reported something that its own probe contradicts."""
    for observation in step.observations:
        if observation.failure is not None and observation.failure.kind == "contradicted":
            return True
        pack = observation.data.get("context_pack")
        if pack is not None and any(
            finding.check is not None and finding.check.status == "contradicted"
            for finding in ContextPack.model_validate(pack).findings
        ):
            return True
    return False


def _as_steps(trajectory: Trajectory) -> tuple[str, list[str]]:
    """The prompt, and a text for each turn: what came back from the turn before it, then the turn."""
    parts: list[str] = []
    texts: list[str] = []
    for message in as_text_chat(trajectory.messages, trajectory.tools):
        parts.append(message["content"])
        if message["role"] == "assistant":
            texts.append("\n".join(parts))
            parts = []
    first = next(index for index, message in enumerate(trajectory.messages) if message.role == "assistant")
    prompt = "\n".join(message["content"] for message in as_text_chat(trajectory.messages[:first], trajectory.tools))
    return prompt, [texts[0].removeprefix(prompt).lstrip("\n"), *texts[1:]]
