"""Where packs come from: a policy that plays, an earlier run, another arm, reading alone, the gold patch, or nowhere.

Answers of others are in `answers`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.run.control import run_parallel
from gumshoe.env.diff import gold_lines
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import Checks, CollectedPacks, EvalRun, Hooks, PackSource, Pair
from gumshoe.eval.arms.episodes import Episodes
from gumshoe.records import ContextPack, Location, Oracle, PolicyInfo, Task, Trajectory

WORD = re.compile(r"[A-Za-z_]\w{2,}")
MOST_STATIC = 5


class SeekerPacks(PackSource):
    """Plays episodes on every task; their reports are the packs."""

    def __init__(self, episodes: Episodes) -> None:
        self._episodes = episodes

    @property
    def policy(self) -> PolicyInfo:
        """Who decides."""
        return self._episodes.policies.info(self._episodes.agent)

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Checks who is asked; the episodes that the run folder lacks are left."""
        return self._episodes.check(attempts, checks)

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """Plays what the folder does not hold yet; a model is served only if something is left to play.

        Raises GumshoeError as `Episodes.play`.
        """
        with closing(self._episodes.policies):
            result, found = self._episodes.play(run, hooks)
        return CollectedPacks(
            packs={key: one.context_pack or ContextPack() for key, one in found.items()},
            episodes=found,
            failed=result.gave_up,
            stopped=result.stopped,
        )


class NoPacks(PackSource):
    """The solver gets the problem statement alone."""

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """None instead of a pack, for every task and sample."""
        return _each_sample(run, {})


class OraclePacks(PackSource):
    """The lines that the gold patch touches: the most that any report could say about places."""

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """A pack for each task. Raises TaskError for a gold patch that cannot be read."""
        return _each_sample(run, {task.id: oracle_pack(oracle) for task, oracle in run.tasks})


class StaticPacks(PackSource):
    """The functions that the problem statement names, found by reading alone and kept in a file: it takes a sandbox."""

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """A pack for each task. Raises SandboxError."""
        cache = JsonlCache(run.out / "solver" / "static.jsonl")

        def read(task: Task) -> None:
            sandbox = open_sandbox(task, run.config.sandbox, trusted=True)
            try:
                pack = static_pack(Workspace(task, sandbox))
            finally:
                sandbox.close()
            cache.keep(digest(task.hash), {"task_id": task.id, "pack": pack.model_dump(mode="json")})
            hooks.done()

        todo = [task for task, _ in run.tasks if cache.get(digest(task.hash)) is None]
        hooks.begun(len(run.tasks), len(run.tasks) - len(todo))
        run_parallel(todo, read, workers=run.config.workers, control=run.control, on_tick=hooks.tick)
        known = {task.id: cache.get(digest(task.hash)) for task, _ in run.tasks}
        found = {name: ContextPack.model_validate(facts["pack"]) for name, facts in known.items() if facts is not None}
        samples = range(run.config.tasks.samples)
        return CollectedPacks({(name, sample): pack for name, pack in found.items() for sample in samples})


class EarlierEpisodes(PackSource):
    """The episodes of an earlier run, such as an arm of another evaluation.

    Of the episodes on the same task, the first is its first sample.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def policy(self) -> PolicyInfo:
        """Who decided in its episodes. Raises DatasetError."""
        return self._episodes[0].policy

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Nothing is left to run. It is a fault if it has none of the tasks, or one as it was before a change."""
        with checks.collect():
            by_task = self._by_task
            found = [(task, episode) for task, _ in tasks for episode in by_task.get(task.id, ())]
            if tasks and not found:
                raise DatasetError(
                    f"{self._folder} has no episode on any of the tasks: evaluate on the tasks that it has"
                )
            for task, episode in found:
                if episode.task.hash != task.hash:
                    raise DatasetError(f"{self._folder}: task {task.id} has changed since that run: run it again")
        return 0

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """Its packs; what the earlier run lacks counts as given up."""
        samples = run.config.tasks.samples
        found = {
            (task.id, sample): episode
            for task, _ in run.tasks
            for sample, episode in enumerate(self._by_task.get(task.id, ())[:samples])
        }
        packs = {key: episode.context_pack or ContextPack() for key, episode in found.items()}
        return CollectedPacks(packs, found, failed=len(run.tasks) * samples - len(found))

    @cached_property
    def _episodes(self) -> list[Trajectory]:
        """At least one. Raises DatasetError."""
        episodes = [one for one in read_trajectories(self._folder) if one.branch is None]
        if not episodes:
            raise DatasetError(f"{self._folder} has no finished episode")
        return episodes

    @cached_property
    def _by_task(self) -> Mapping[str, Sequence[Trajectory]]:
        by_task: dict[str, list[Trajectory]] = defaultdict(list)
        for episode in self._episodes:
            by_task[episode.task.id].append(episode)
        return by_task


class PacksWithoutProbes(PackSource):
    """The packs of an arm before it without their probes. It has no episodes to score: they remain that arm's."""

    def __init__(self, arm: str) -> None:
        self._arm = arm

    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """The same claims, quotes and places, as if nothing had ever checked them."""
        given = run.packs[self._arm].packs
        return CollectedPacks({key: None if pack is None else _without_probes(pack) for key, pack in given.items()})


def _without_probes(pack: ContextPack) -> ContextPack:
    bare = {"probe": None, "check": None}
    return pack.model_copy(update={"findings": tuple(one.model_copy(update=bare) for one in pack.findings)})


def _each_sample(run: EvalRun, packs: Mapping[str, ContextPack]) -> CollectedPacks:
    """The pack of each task, for every sample; None where there is none."""
    samples = range(run.config.tasks.samples)
    return CollectedPacks({(task.id, sample): packs.get(task.id) for task, _ in run.tasks for sample in samples})


def oracle_pack(oracle: Oracle) -> ContextPack:
    """The lines that the gold patch touches: the most that any report could say about places."""
    gold = gold_lines(oracle.gold_patch)
    return ContextPack(
        locations=tuple(
            Location(path=path, start=line, end=line) for path, lines in sorted(gold.items()) for line in sorted(lines)
        )
    )


def static_pack(workspace: Workspace) -> ContextPack:
    """The functions and classes that the problem statement names, found with grep alone: nothing is run.

    At most five: those whose name appears in it most often come first.
    """
    words = WORD.findall(workspace.task.problem_statement)
    found: list[tuple[int, Location]] = []
    matches, _ = workspace.grep(r"^\s*(async\s+)?(def|class)\s+\w+", limit=1000)
    for number, match in enumerate(matches):
        name = re.sub(r"^\s*(async\s+)?(def|class)\s+", "", match.text).partition("(")[0].partition(":")[0].strip()
        mentions = words.count(name)
        if mentions and match.path.endswith(".py") and not workspace.is_readonly(match.path):
            following = (other.line for other in matches[number + 1 :] if other.path == match.path)
            end = max(match.line, next(following, match.line + 30) - 1)
            found.append((-mentions, Location(path=match.path, start=match.line, end=end, symbol=name)))
    found.sort(key=lambda pair: (pair[0], pair[1].path, pair[1].start))
    return ContextPack(locations=tuple(location for _, location in found[:MOST_STATIC]))
