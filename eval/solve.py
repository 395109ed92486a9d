"""The solver after the seekers: with every pack, beside them its own arms, and what came of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gumshoe.collect.agent import make_agent
from gumshoe.collect.control import Control
from gumshoe.collect.places import Here, MakePlace
from gumshoe.errors import ConfigError
from gumshoe.eval.arms import Hooks, PlayedArm
from gumshoe.eval.asked import Asked
from gumshoe.eval.config import ArmConfig, EvalConfig, references_of
from gumshoe.eval.grader import Answer, Grader
from gumshoe.eval.results import ALL, Result
from gumshoe.eval.solver.jobs import Job, Solved, reference_jobs
from gumshoe.eval.solver.policy_runs import PolicyRuns, solved_by
from gumshoe.eval.solver.scripted_runs import ScriptedRuns
from gumshoe.records import ContextPack, Oracle, Task, Trajectory

__all__ = ["Outcome", "Repaired", "check_solver", "edits", "repair_all", "with_outcomes"]

Outcome = Mapping[tuple[str, str, int], Solved]
"""By arm, task id and sample."""


@dataclass(frozen=True)
class Repaired:
    """What became of every bug: in the arms of the seekers and in the solver's own; the solver's episodes by arm."""

    outcomes: Outcome = field(default_factory=dict)
    references: tuple[str, ...] = ()
    episodes: Mapping[tuple[str, str, int], Trajectory] = field(default_factory=dict)


def edits(config: EvalConfig, arm: ArmConfig) -> bool:
    """Whether the arm's agent changes the code itself, so that no solver is needed behind it."""
    return arm.answers is None and "rewrite" in make_agent(arm.agent or config.agent).tools


def check_solver(config: EvalConfig, tasks: Sequence[tuple[Task, Oracle]]) -> None:
    """Refuses a solver that cannot work, before anything is played.

    Raises:
        ConfigError: the tests of a task are hidden from the scripted solver, so that it cannot try anything.
        ServeError, ConfigError: as `Asked`.
    """
    solver = config.solver
    if solver is None:
        return
    if solver.kind == "policy":
        Asked(config, "the solver", solver.model, solver.policy, Path(config.out) / "solver")
        return
    hidden = next((task.id for task, _ in tasks if task.regime != "debug"), None)
    if hidden is not None:
        raise ConfigError(
            f"task {hidden} hides its tests, which the scripted solver needs: set solver.kind=policy, or "
            "tasks.options.regime=debug"
        )


def repair_all(
    config: EvalConfig,
    tasks: Sequence[tuple[Task, Oracle]],
    played: Sequence[PlayedArm],
    control: Control,
    *,
    hooks: Callable[[str], Hooks] = lambda arm: Hooks(),
    make_place: MakePlace = Here,
) -> Repaired:
    """Runs the solver on everything that was handed over, and grades all patches.

    A seeker that handed nothing over counts as an empty pack. Raises GumshoeError.
    """
    out = Path(config.out)
    pairs = {task.id: (task, oracle) for task, oracle in tasks}
    own = {
        (one.arm.name, trajectory.task.id, sample): trajectory
        for one in played
        if edits(config, one.arm)
        for sample, trajectory in one.trajectories
    }
    grader = _Grades(Grader(out / "grades.jsonl", config.sandbox), pairs, control, config.workers)
    if config.solver is None:
        return Repaired(outcomes=grader.outcomes(own))
    references = references_of(config.solver)
    jobs = [
        Job(one.arm.name, *pairs[trajectory.task.id], trajectory.context_pack or ContextPack(), sample)
        for one in played
        if not edits(config, one.arm)
        for sample, trajectory in one.trajectories
    ]
    jobs += reference_jobs(tasks, references, config.tasks.samples)
    if config.solver.kind == "scripted":
        scripted = ScriptedRuns(config.solver, out / "solver.jsonl", config.sandbox, config.seed)
        outcomes = scripted.run(jobs, control, config.workers, hooks("solver").tick)
        return Repaired({**outcomes, **grader.outcomes(own)}, references)
    ids = tuple(pairs)
    episodes = PolicyRuns(config, out, ids, make_place).run(jobs, control, hooks)
    return Repaired({**grader.outcomes({**own, **episodes})}, references, episodes)


class _Grades:
    """Turns episodes that end with a patch into outcomes; what the episode could not judge is graded."""

    def __init__(
        self, grader: Grader, pairs: Mapping[str, tuple[Task, Oracle]], control: Control, workers: int
    ) -> None:
        self._grader = grader
        self._pairs = pairs
        self._control = control
        self._workers = workers

    def outcomes(self, episodes: Mapping[tuple[str, str, int], Trajectory]) -> dict[tuple[str, str, int], Solved]:
        open_ones = {place: one for place, one in episodes.items() if one.resolved is None}
        answers = {place: Answer(*self._pairs[one.task.id], one.patch) for place, one in open_ones.items()}
        self._grader.grade(answers.values(), self._control, self._workers)
        return {
            place: solved_by(one, self._grader.resolved(answers[place]), self._grader.said(answers[place]))
            if place in answers
            else solved_by(one, float(bool(one.resolved)), _said_at_the_end(one))
            for place, one in episodes.items()
        }


def _said_at_the_end(trajectory: Trajectory) -> str:
    """What the tests of the episode itself said, which its score was made of."""
    passed = "every test passes" if trajectory.resolved else "not every test passes" if trajectory.patch else "no patch"
    explanation = next((score.explanation for score in trajectory.scores if score.name == "resolved"), "")
    return f"{passed} ({explanation})" if explanation else passed


def with_outcomes(
    by_arm: Mapping[str, Sequence[Result]], tasks: Sequence[tuple[Task, Oracle]], repaired: Repaired, samples: int
) -> dict[str, list[Result]]:
    """The results with what became of the bugs, those of the solver's own arms behind them."""
    known = {
        name: [_with(result, repaired.outcomes.get((name, result.task_id, result.sample))) for result in results]
        for name, results in by_arm.items()
    }
    for name in repaired.references:
        known[name] = [
            _with(_blank(name, task, sample), found)
            for sample in range(samples)
            for task, _ in tasks
            if (found := repaired.outcomes.get((name, task.id, sample))) is not None
        ]
    return known


def _with(result: Result, outcome: Solved | None) -> Result:
    if outcome is None:
        return result
    own = outcome.trajectory == result.trajectory  # The arm's own agent made the patch.
    spent = {
        "solver_steps": outcome.steps,
        "solver_tokens": outcome.tokens,
        "solver_cost": outcome.cost_usd,
        "solver_seconds": outcome.seconds,
    }
    scores = {**result.scores, "solved": outcome.solved, **({} if own and result.trajectory else spent)}
    solver = "" if own else outcome.trajectory
    return result.model_copy(
        update={"scores": scores, "solver": solver, "patch": outcome.patch, "tests": outcome.tests}
    )


def _blank(arm: str, task: Task, sample: int) -> Result:
    split = task.tags.get("split", ALL)
    return Result(
        arm=arm, task_id=task.id, sample=sample, split=split, trajectory="", stop=None, scores={}, tags=task.tags
    )
