"""Policies as solvers: episodes with an arm's packs form a run folder of their own, or the arm's own agent made the
patch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.packs import with_pack
from gumshoe.collect.prompts import read_template
from gumshoe.eval.arms.arm import Attempt, AttemptKey, Checks, EvalRun, Hooks, Pair, Solution, Solver
from gumshoe.eval.arms.episodes import Episodes
from gumshoe.eval.arms.one_shot import OneShotPolicy, confirmed_changes, limit_turns, view_calls
from gumshoe.eval.grader import Grader, PatchGrade, Submission
from gumshoe.eval.score.metrics import seconds_of, tokens_of
from gumshoe.protocols import Policy
from gumshoe.records import ContextPack, Trajectory


class PolicySolver(Solver):
    """A policy that works with tools on the packs of one arm, whose title is given.

    All arms have the same policy, so that a model is served once. `pack` is the path of a template for packs.
    """

    def __init__(self, title: str, name: str, episodes: Episodes, pack: str | None = None) -> None:
        self.title = f"solver, {title}"
        self.name = name
        self._episodes = episodes
        self._pack = pack

    @cached_property
    def _template(self) -> str | None:
        return None if self._pack is None else read_template(Path(self._pack).expanduser())

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Checks who is asked and the template; the episodes that the run folder lacks are left."""
        left = self._episodes.check(attempts, checks)
        with checks.collect():
            _ = self._template
        return left

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """Runs an episode for each attempt and grades its patch. Raises GumshoeError as `Episodes.play`."""
        if run.control.finishing and not self._episodes.folder.is_dir():
            return {}
        wanted = {(one.task.id, one.sample): one for one in attempts}

        def prepare(episode: EpisodeSpec) -> EpisodeSpec | None:
            attempt = wanted.get((episode.task.id, episode.sample))
            return None if attempt is None else self._prepare(episode, attempt.pack)

        def wrap(policy: Policy, episode: EpisodeSpec) -> Policy:
            return self._wrap(policy, wanted[episode.task.id, episode.sample].pack)

        _, found = self._episodes.play(run, hooks, prepare=prepare, wrap=wrap)
        return grade_episodes({wanted[key].key: one for key, one in found.items()}, run)

    def close(self) -> None:
        """Stops the server, if there is one."""
        self._episodes.policies.close()

    def _prepare(self, episode: EpisodeSpec, pack: ContextPack | None) -> EpisodeSpec:
        """The episode with the pack written below its problem statement."""
        return dataclasses.replace(episode, task=with_pack(episode.task, pack, self._template))

    def _wrap(self, policy: Policy, pack: ContextPack | None) -> Policy:
        return policy


class OneShotSolver(PolicySolver):
    """A policy that answers once: it sees the places of its pack, and edits. Its agent is `one_shot.AGENT`."""

    def _prepare(self, episode: EpisodeSpec, pack: ContextPack | None) -> EpisodeSpec:
        prepared = super()._prepare(episode, pack)
        return dataclasses.replace(prepared, task=limit_turns(prepared.task, pack))

    def _wrap(self, policy: Policy, pack: ContextPack | None) -> Policy:
        return OneShotPolicy(policy, view_calls(pack), confirmed_changes(pack))


class OwnPatches(Solver):
    """No further solver: the arm's own agent changes the code."""

    title = "grading"
    name = ""

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """The patches of the arm's episodes, graded. Raises SandboxError."""
        return grade_episodes({one.key: one.episode for one in attempts if one.episode is not None}, run)


def grade_episodes(episodes: Mapping[AttemptKey, Trajectory], run: EvalRun) -> dict[AttemptKey, Solution]:
    """The outcomes of episodes that end with a patch; patches that the episode itself could not judge are graded."""
    pairs = run.pairs
    submissions = {
        key: Submission(*pairs[one.task.id], one.patch) for key, one in episodes.items() if one.resolved is None
    }
    grader = Grader(run.out / "grades.jsonl", run.config.sandbox)
    grades = grader.grade(submissions, run.control, run.config.workers)
    return {key: _solution(one, grades.get(key) or _own_grade(one)) for key, one in episodes.items()}


def _solution(trajectory: Trajectory, grade: PatchGrade) -> Solution:
    return Solution(
        grade.resolved,
        patch=trajectory.patch,
        trajectory=trajectory.id,
        steps=len(trajectory.steps),
        tokens=tokens_of(trajectory),
        cost_usd=trajectory.usage.cost_usd,
        seconds=seconds_of(trajectory),
        tests=grade.tests,
    )


def _own_grade(trajectory: Trajectory) -> PatchGrade:
    """What the episode's own tests, which its score is based on, say of its patch."""
    passed = "every test passes" if trajectory.resolved else "not every test passes" if trajectory.patch else "no patch"
    explanation = next((score.explanation for score in trajectory.scores if score.name == "resolved"), "")
    return PatchGrade(float(bool(trajectory.resolved)), f"{passed} ({explanation})" if explanation else passed)
