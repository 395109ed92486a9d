"""Trees of episodes: which episodes of one are still to be played, and where each begins.

A tree is stored as trajectories. The first one is a whole episode; every other one names the trajectory that it
branched from and the first step of its own (`Trajectory.branch`). Which decisions branch follows from the
trajectories that are there, so a stopped run knows what its trees still lack. An episode that does not branch is a
tree of one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from gumshoe.collect.config import BranchConfig
from gumshoe.collect.data.journal import comparable
from gumshoe.collect.data.tree import Node, Trees
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.errors import SandboxError
from gumshoe.records import BranchPoint, Completion, Decision, Observation, Step, Trajectory

if TYPE_CHECKING:
    from gumshoe.collect.episode.episode import Episode, EpisodeSnapshot


def branch_steps(
    branch: BranchPoint | None, level: int, kinds: Sequence[Decision | None], config: BranchConfig
) -> list[int]:
    """The steps of an episode at which it branches, as far as its decisions, `kinds`, are known.

    `branch` is where it itself branched from another one; `level` is how many decisions on the way to it have branched.
    """
    # The decision with which a branch begins is one of those that were tried in place of its parent's.
    first = 0 if branch is None else branch.step + 1
    wanted = (step for step in range(max(first, config.skip), len(kinds)) if config.at in ("any", kinds[step]))
    return list(islice(wanted, config.depth - level))


def open_episodes(
    root: EpisodeSpec,
    config: BranchConfig | None,
    nodes: Mapping[str, Node],
    given_up: Callable[[str], bool] = lambda _: False,
) -> Iterator[EpisodeSpec]:
    """The episodes of a tree that are still to be played, a parent before its branches; `nodes` may grow meanwhile.

    `root` is its first episode, `nodes` are the finished ones by id; `given_up` says whether one has failed too often.
    """
    pending = [root]
    while pending:
        spec = pending.pop()
        if spec.id not in nodes:
            if given_up(spec.id):
                continue
            yield spec
        if config is not None and spec.id in nodes:
            pending += _branches(spec, nodes[spec.id], config)


def _branches(parent: EpisodeSpec, node: Node, config: BranchConfig) -> Iterator[EpisodeSpec]:
    for level, step in enumerate(branch_steps(parent.branch, parent.level, node.kinds, config), start=parent.level + 1):
        for number in range(config.width - 1, 0, -1):
            seed = random.Random(f"{parent.seed}/{step}.{number}").getrandbits(48)
            point = BranchPoint(parent=parent.id, step=step)
            yield replace(parent, branch=point, number=number, level=level, seed=seed)


def is_whole(root: EpisodeSpec, config: BranchConfig | None, nodes: Mapping[str, Node]) -> bool:
    """Whether an episode is finished, along with all that branches from it. Arguments as for `open_episodes`."""
    return next(open_episodes(root, config, nodes), None) is None


def lacks_branches(trees: Trees, node: Node, config: BranchConfig, level: int = 0) -> bool:
    """Whether a branch of a finished episode, or of its branches, is known to be wanted and is not there.

    `level` is how many decisions on the way to the episode have branched.
    """
    for below, step in enumerate(branch_steps(node.branch, level, node.kinds, config), start=level + 1):
        found = [child for child in trees.branches(node.id) if child.start == step]
        if len(found) < config.width - 1 or any(lacks_branches(trees, child, config, below) for child in found):
            return True
    return False


class OpenTree:
    """Where the episodes of one tree begin: in a fresh sandbox, or in that of the previous episode.

    A branch continues from a snapshot of its parent if there is one. If there is none, because the process that made
    it was killed or because a snapshot could not hold everything, the parent's turns up to the branch are carried out
    again in a fresh sandbox, and must be answered as before.

    Args:
        config: which decisions branch; None: none do, and every episode begins anew.
        read: returns a finished trajectory, given its id.
    """

    def __init__(self, config: BranchConfig | None, read: Callable[[str], Trajectory]) -> None:
        self._config = config
        self._read = read
        self._episode: Episode | None = None
        self._snapshots: dict[tuple[str, int], EpisodeSnapshot] = {}
        self._finished: dict[str, Trajectory] = {}

    def begin(self, spec: EpisodeSpec, make: Callable[[], Episode]) -> Episode:
        """The episode of `spec`, ready for the first turn of its own; `make` makes one with an environment of its own.

        Raises SandboxError, TaskError and ConfigError if no sandbox starts, or the parent's turns get other answers.
        """
        point = spec.branch
        kept = self._snapshots.get((point.parent, point.step)) if point is not None else None
        if kept is not None and self._episode is not None:
            self._episode.restore(kept, spec)
            return self._episode
        self.close()
        self._episode = make()
        if point is not None:
            parent = self._finished.get(point.parent) or self._read(point.parent)
            self._finished[point.parent] = parent
            _replay(self._episode, parent.steps[: point.step])
            self._take_snapshot(self._episode, point.parent, point.step)
        return self._episode

    def keep_branch_point(self, episode: Episode, completion: Completion) -> None:
        """Called with a turn's completion before it is acted on: keeps the place if the episode branches there."""
        if self._config is None:
            return
        kinds = [*(step.decision for step in episode.steps), episode.decision(completion)]
        if len(episode.steps) in branch_steps(episode.spec.branch, episode.spec.level, kinds, self._config):
            self._take_snapshot(episode, episode.spec.id, len(episode.steps))

    def finish(self, trajectory: Trajectory) -> None:
        """Takes note of a finished trajectory."""
        # Programs that were left running must not affect the next branch.
        if self._config is None or trajectory.tampering:
            self.close()
        if self._config is not None:
            self._finished[trajectory.id] = trajectory

    def close(self) -> None:
        """Removes the sandbox and forgets its snapshots. Idempotent."""
        episode, self._episode = self._episode, None
        self._snapshots.clear()
        if episode is not None:
            episode.close()

    def _take_snapshot(self, episode: Episode, trajectory: str, step: int) -> None:
        kept = episode.snapshot()
        if kept is not None:
            self._snapshots[trajectory, step] = kept


def _replay(episode: Episode, steps: Sequence[Step]) -> None:
    """Carries out turns again. Raises SandboxError if they are answered differently."""
    for step in steps:
        # The first request starts the environment.
        episode.next_request()
        again = episode.accept(step.completion)
        if episode.stop is not None or _texts(again.observations) != _texts(step.observations):
            name = episode.spec.id
            raise SandboxError(f"{name} cannot begin: its parent's turn {step.index} was answered differently now")
    episode.next_request()


def _texts(observations: Sequence[Observation]) -> list[str]:
    return [comparable(observation.text) for observation in observations]
