"""Trees: episodes of one task that share a beginning, and what each decision in them was worth.

A tree is stored as trajectories. The first one is a whole episode; every other one names the trajectory that it
branched from and the first step of its own (`Trajectory.branch`). Which decisions branch follows from the
trajectories that are there, so a stopped run knows what its trees still lack. Values are computed, never stored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import fmean

from gumshoe.collect.config import BranchConfig
from gumshoe.collect.episode.spec import REPORT_SCORE, EpisodeSpec
from gumshoe.records import BranchPoint, Decision, Trajectory

__all__ = [
    "DecisionValue",
    "Node",
    "Trees",
    "branch_steps",
    "is_whole",
    "node_of",
    "open_episodes",
    "outcome_of",
]


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


def branch_steps(
    branch: BranchPoint | None, level: int, kinds: Sequence[Decision | None], config: BranchConfig
) -> list[int]:
    """The steps of an episode at which it branches, as far as its decisions are known.

    Args:
        branch: where it itself branched from another one.
        level: how many decisions on the way to it have branched.
        kinds: the decisions of its steps, those before its branch point included.
        config: where episodes branch.
    """
    # The decision with which a branch begins is one of those that were tried in place of its parent's.
    first = 0 if branch is None else branch.step + 1
    wanted = (step for step in range(max(first, config.skip), len(kinds)) if config.at in ("any", kinds[step]))
    return list(islice(wanted, config.depth - level))


def open_episodes(
    root: EpisodeSpec,
    config: BranchConfig | None,
    nodes: Mapping[str, Node | None],
    given_up: Callable[[str], bool] = lambda _: False,
) -> Iterator[EpisodeSpec]:
    """The episodes of a tree that are still to be played, a parent before its branches; `nodes` may grow meanwhile.

    Args:
        root: its first episode.
        config: where it branches; None: nowhere.
        nodes: the finished episodes by id; None for one of a run that does not branch.
        given_up: whether an episode has failed too often.
    """
    pending = [root]
    while pending:
        spec = pending.pop()
        if spec.id not in nodes:
            if given_up(spec.id):
                continue
            yield spec
        node = nodes.get(spec.id)
        if node is not None and config is not None:
            pending += _branches(spec, node, config)


def is_whole(root: EpisodeSpec, config: BranchConfig | None, nodes: Mapping[str, Node | None]) -> bool:
    """Whether an episode is finished, along with all that branches from it. Arguments as for `open_episodes`."""
    return next(open_episodes(root, config, nodes), None) is None


def _branches(parent: EpisodeSpec, node: Node, config: BranchConfig) -> Iterator[EpisodeSpec]:
    for level, step in enumerate(branch_steps(parent.branch, parent.level, node.kinds, config), start=parent.level + 1):
        for number in range(config.width - 1, 0, -1):
            seed = random.Random(f"{parent.seed}/{step}.{number}").getrandbits(48)
            point = BranchPoint(parent=parent.id, step=step)
            yield replace(parent, branch=point, number=number, level=level, seed=seed)


class Trees:
    """Finished episodes by the trees that they belong to.

    Args:
        nodes: of one run, in any order. One whose parent is not among them is the root of what is left of its tree.
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

    def missing(self, node: Node, config: BranchConfig, level: int = 0) -> int:
        """How many branches of an episode, and of its branches, are known to be wanted and are not there.

        Args:
            node: the episode.
            config: where it branches.
            level: how many decisions on the way to it have branched.
        """
        count = 0
        for below, step in enumerate(branch_steps(node.branch, level, node.kinds, config), start=level + 1):
            found = [child for child in self.branches(node.id) if child.start == step]
            count += config.width - 1 - len(found) + sum(self.missing(child, config, below) for child in found)
        return count

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
