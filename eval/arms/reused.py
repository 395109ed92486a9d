"""Packs that exist already: the episodes of an earlier run, and another arm's packs without their probes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from gumshoe.collect.data.store import read_trajectories
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import AnyTasks, EvalRun, Hooks, Packs, PackSource, Pair
from gumshoe.records import ContextPack, PolicyInfo, Trajectory

__all__ = ["EarlierEpisodes", "PacksWithoutProbes", "SharedPacks", "read_earlier"]


def read_earlier(folder: Path) -> EarlierEpisodes:
    """The episodes of a run folder. Raises DatasetError if it has none."""
    episodes = [one for one in read_trajectories(folder) if one.branch is None]
    if not episodes:
        raise DatasetError(f"{folder} has no finished episode")
    return EarlierEpisodes(folder, episodes)


class EarlierEpisodes:
    """The episodes of an earlier run, such as an arm of another evaluation.

    Args:
        folder: where they are from, for messages.
        episodes: at least one; of those on the same task, the first is its first sample.
    """

    def __init__(self, folder: Path, episodes: Sequence[Trajectory]) -> None:
        self._folder = folder
        self._by_task: dict[str, list[Trajectory]] = defaultdict(list)
        for episode in episodes:
            self._by_task[episode.task.id].append(episode)
        self._tools = tuple(dict.fromkeys(tool.name for episode in episodes for tool in episode.tools))
        self.policy: PolicyInfo | None = episodes[0].policy

    def check(self, tasks: Sequence[Pair]) -> None:
        """Raises DatasetError if it has none of the tasks, or one of them as it was before a change."""
        found = [(task, episode) for task, _ in tasks for episode in self._by_task.get(task.id, ())]
        if not found:
            raise DatasetError(f"{self._folder} has no episode on any of the tasks: evaluate on the tasks that it has")
        for task, episode in found:
            if episode.task.hash != task.hash:
                raise DatasetError(f"{self._folder}: task {task.id} has changed since that run: run it again")

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """Its packs; what the earlier run lacks counts as given up."""
        samples = run.config.tasks.samples
        found = {
            (task.id, sample): episode
            for task, _ in run.tasks
            for sample, episode in enumerate(self._by_task.get(task.id, [])[:samples])
        }
        packs = {key: episode.context_pack or ContextPack() for key, episode in found.items()}
        return Packs(packs, found, tools=self._tools, failed=len(run.tasks) * samples - len(found))


class SharedPacks:
    """Packs that several arms take: collected once."""

    def __init__(self, source: PackSource) -> None:
        self._source = source
        self._packs: Packs | None = None

    @property
    def policy(self) -> PolicyInfo | None:
        """Who decided in the episodes."""
        return self._source.policy

    def check(self, tasks: Sequence[Pair]) -> None:
        """Raises as the source does."""
        self._source.check(tasks)

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """The packs of the source. Raises as it does."""
        if self._packs is None:
            self._packs = self._source.collect(run, hooks)
        return self._packs


class PacksWithoutProbes(AnyTasks):
    """The packs of another arm without their probes. The episodes remain that arm's: this one has none to score."""

    policy = None

    def __init__(self, source: PackSource) -> None:
        self._source = source

    def collect(self, run: EvalRun, hooks: Hooks) -> Packs:
        """The same claims, quotes and places, as if nothing had ever checked them. Raises as the other arm does."""
        given = self._source.collect(run, hooks).packs
        return Packs({key: None if pack is None else _without_probes(pack) for key, pack in given.items()})


def _without_probes(pack: ContextPack) -> ContextPack:
    bare = {"probe": None, "check": None}
    return pack.model_copy(update={"findings": tuple(one.model_copy(update=bare) for one in pack.findings)})
