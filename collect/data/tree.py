"""Trees of finished episodes that share a beginning, and what each decision in them was worth.

Values are computed, never stored. Which episodes branch, and where, is up to `gumshoe.collect.run.branching`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean

from gumshoe.collect.episode.spec import REPORT_SCORE
from gumshoe.records import BranchPoint, Decision, Trajectory


@dataclass(frozen=True)
class Node:
    """A trajectory of a tree, without its conversation. `kinds` are the decisions of all its steps."""

    id: str
    branch: BranchPoint | None
    kinds: tuple[Decision | None, ...]
    outcome: float | None

    @property
    def start(self) -> int:
        """Index of the first step of its own."""
        return self.branch.step if self.branch is not None else 0


@dataclass(frozen=True)
class DecisionValue:
    """What a decision was worth.

    `value` is the mean outcome of the `count` episodes that followed it and have one; None if none has. `advantage`
    is how much that is above the mean value of its siblings, the other decisions tried in the same place; None if
    there are none with a value.
    """

    value: float | None
    count: int
    advantage: float | None
    siblings: int


def outcome_of(trajectory: Trajectory) -> float | None:
    """The outcome of an episode, 0 to 1: whether its patch resolves the task, or how well its report names the lines
    that the gold patch touches; None if neither was measured.
    """
    resolved = trajectory.score("resolved")
    return resolved if resolved is not None else trajectory.score(REPORT_SCORE)


def node_of(trajectory: Trajectory) -> Node:
    """The trajectory as a node of its tree."""
    kinds = tuple(step.decision for step in trajectory.steps)
    return Node(trajectory.id, trajectory.branch, kinds, outcome_of(trajectory))


class Trees:
    """Finished episodes of one run by the trees that they belong to.

    One whose parent is not among them is the root of what is left of its tree.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = {node.id: node for node in nodes}
        self._children: dict[str, list[Node]] = {}
        for node in self.nodes.values():
            if node.branch is not None:
                self._children.setdefault(node.branch.parent, []).append(node)

    def branches(self, id: str) -> list[Node]:
        """The episodes that branched from one, ordered by the step at which they did."""
        return sorted(self._children.get(id, ()), key=_place)

    @property
    def roots(self) -> list[Node]:
        """The episodes that are not branches, and those whose parent is not there."""
        return [node for node in self.nodes.values() if node.branch is None or node.branch.parent not in self.nodes]

    def owner(self, id: str, step: int) -> str:
        """The trajectory that a step originally belongs to: `id`, or one that it branched from after the step."""
        node = self.nodes[id]
        while step < node.start and node.branch is not None and node.branch.parent in self.nodes:
            node = self.nodes[node.branch.parent]
        return node.id

    def siblings(self, id: str, step: int) -> list[tuple[str, int]]:
        """The decisions tried at a step of a trajectory, the trajectory's own first, each as (trajectory, step).

        The first step of a branch belongs to the place that it branched from.
        """
        node = self.nodes[id]
        if node.branch is not None and step == node.start and node.branch.parent in self.nodes:
            return self.siblings(node.branch.parent, step)
        return [(id, step), *((child.id, step) for child in self.branches(id) if child.start == step)]

    def value(self, id: str, step: int) -> tuple[float | None, int]:
        """The mean outcome of the episodes that went through a trajectory's decision, and how many have one."""
        outcomes = [outcome for outcome in self._outcomes(id, step) if outcome is not None]
        return (fmean(outcomes) if outcomes else None), len(outcomes)

    def decision(self, id: str, step: int) -> DecisionValue:
        """What a trajectory's decision was worth; `step` is one of its own."""
        value, count = self.value(id, step)
        others = [self.value(*one)[0] for one in self.siblings(id, step) if one != (id, step)]
        known = [other for other in others if other is not None]
        advantage = value - fmean(known) if value is not None and known else None
        return DecisionValue(value, count, advantage, len(others))

    def _outcomes(self, id: str, step: int) -> Iterator[float | None]:
        """The outcomes of the trajectory and of all that branched from it after the step."""
        yield self.nodes[id].outcome
        for child in self.branches(id):
            if child.start > step:
                yield from self._outcomes(child.id, child.start)


def _place(node: Node) -> tuple[int, str]:
    number = node.id.rpartition(".")[2]
    return node.start, number.rjust(4, "0")
