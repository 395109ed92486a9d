"""Episodes that end with a patch, and the arms whose own agent makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gumshoe.eval.arms.arm import Attempt, AttemptKey, EvalRun, Hooks, Pair, Solution
from gumshoe.eval.grading.grader import Grader, Submission
from gumshoe.records import Trajectory

__all__ = ["OwnPatches", "grade_episodes", "solution_of"]


class OwnPatches:
    """No further solver: the arm's own agent changes the code."""

    title = "grading"
    name = ""

    def check(self, tasks: Sequence[Pair]) -> None:
        """Works on all tasks."""

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """The patches of the arm's episodes, graded. Raises SandboxError."""
        return grade_episodes({one.key: one.episode for one in attempts if one.episode is not None}, run)

    def close(self) -> None:
        """Nothing was started."""


def grade_episodes(episodes: Mapping[AttemptKey, Trajectory], run: EvalRun) -> dict[AttemptKey, Solution]:
    """The outcomes of episodes that end with a patch; patches that the episode itself could not judge are graded."""
    grader = Grader(run.out / "grades.jsonl", run.config.sandbox)
    pairs = run.pairs
    answers = {key: Submission(*pairs[one.task.id], one.patch) for key, one in episodes.items() if one.resolved is None}
    grader.grade(answers.values(), run.control, run.config.workers)
    return {
        key: solution_of(one, grader.resolved(answers[key]), grader.describe(answers[key]))
        if key in answers
        else solution_of(one, float(bool(one.resolved)), _describe_end(one))
        for key, one in episodes.items()
    }


def solution_of(trajectory: Trajectory, solved: float | None, tests: str = "") -> Solution:
    """The outcome of an episode; the caller says whether the task is solved."""
    usage, last = trajectory.usage, trajectory.steps[-1] if trajectory.steps else None
    return Solution(
        solved,
        patch=trajectory.patch,
        trajectory=trajectory.id,
        steps=len(trajectory.steps),
        tokens=(usage.prompt_tokens + usage.completion_tokens) or None,
        cost_usd=usage.cost_usd,
        seconds=None if last is None else last.started_at + last.duration_s,
        tests=tests,
    )


def _describe_end(trajectory: Trajectory) -> str:
    """How the episode's own tests ended, which its score is based on."""
    passed = "every test passes" if trajectory.resolved else "not every test passes" if trajectory.patch else "no patch"
    explanation = next((score.explanation for score in trajectory.scores if score.name == "resolved"), "")
    return f"{passed} ({explanation})" if explanation else passed
