"""Turns what the arms did into results: episodes are scored, and patches give the outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gumshoe.errors import ConfigError
from gumshoe.eval.arms.arm import Arm, AttemptKey, CollectedPacks, EvalRun, Solution
from gumshoe.eval.records import ALL, Result
from gumshoe.eval.results.measures import BY_NAME
from gumshoe.eval.scorers import own_scores
from gumshoe.eval.scorers.conduct import tool_counts
from gumshoe.eval.scorers.localization import Sources, adherence, fetch_sources
from gumshoe.eval.scorers.ranking import Rankings
from gumshoe.plugins import METRICS, announced, load_named
from gumshoe.protocols import Scorer
from gumshoe.records import ContextPack, Oracle, Score, Task, Trajectory

__all__ = ["load_scorers", "make_results", "score_trajectory"]

OWN = frozenset({*BY_NAME, "confidence", "seconds", "solver_seconds"})
"""The names that metrics of others cannot have."""


def make_results(
    arms: Sequence[Arm], solutions: Mapping[AttemptKey, Solution], run: EvalRun
) -> dict[str, list[Result]]:
    """The results by arm: one for each episode, and one for each solution that comes without an episode.

    Raises GumshoeError: a sandbox failed, or a gold patch cannot be read.
    """
    packs = run.packs
    scored = _score(packs, run)
    samples = range(run.config.tasks.samples)
    by_arm: dict[str, list[Result]] = {}
    for arm in arms:
        own = scored.get(arm.name, {})
        given = packs[arm.name].packs if arm.name in packs else {}
        keys = [*own, *((task.id, sample) for sample in samples for task, _ in run.tasks)]
        found = [
            _with_solution(own.get(key) or _blank(arm.name, run.pairs[key[0]][0], key[1]), solution, given.get(key))
            for key in dict.fromkeys(keys)
            if (solution := solutions.get((arm.name, *key))) is not None or key in own
        ]
        if found or arm.name in packs:
            by_arm[arm.name] = found
    return by_arm


def _score(packs: Mapping[str, CollectedPacks], run: EvalRun) -> dict[str, dict[tuple[str, int], Result]]:
    """Every episode, scored, by arm and by task and sample."""
    episodes = [one for of_arm in packs.values() for one in of_arm.episodes.values()]
    config, pairs = run.config, run.pairs
    path = run.out / "sources.jsonl"
    fetched = fetch_sources(run.tasks, episodes, config.sandbox, path, run.control, config.workers, run.repositories)
    sources = Sources((task for task, _ in run.tasks), fetched)
    added = load_scorers(config.metrics)
    scored: dict[str, dict[tuple[str, int], Result]] = {}
    for name, of_arm in packs.items():
        rankings = Rankings(sources, of_arm.ranked)
        scored[name] = {
            (task, sample): score_trajectory(name, episode, pairs[task][1], rankings, added, sample=sample)
            for (task, sample), episode in of_arm.episodes.items()
        }
    return scored


def score_trajectory(
    arm: str,
    trajectory: Trajectory,
    oracle: Oracle,
    rankings: Rankings,
    added: Iterable[Scorer] = (),
    *,
    sample: int = 0,
) -> Result:
    """Measures a finished episode, also by `added` metrics. Scores that came with the trajectory are kept beside them.

    Raises:
        ConfigError: a metric returns something other than a Score.
    """
    scores = {score.name: score.value for score in trajectory.scores}
    scores |= own_scores(trajectory, oracle, rankings)
    scores |= {scorer.name: _value(scorer, trajectory, oracle) for scorer in added}
    return Result(
        arm=arm,
        task_id=trajectory.task.id,
        sample=sample,
        split=trajectory.task.tags.get("split", ALL),
        trajectory=trajectory.id,
        stop=trajectory.stop,
        scores=scores,
        tools=tool_counts(trajectory),
        patch=trajectory.patch,
        tags=trajectory.task.tags,
    )


def _value(scorer: Scorer, trajectory: Trajectory, oracle: Oracle) -> float | None:
    """What a scorer says. Whatever else it raises gets a note that names it and the episode."""
    try:
        score: object = scorer.score(trajectory, oracle)
    except Exception as error:
        error.add_note(f"in the metric {scorer.name}, on episode {trajectory.id} of task {trajectory.task.id}")
        raise
    if not isinstance(score, Score):
        raise ConfigError(f"metric {scorer.name!r} must return a Score, not {type(score).__name__}")
    return score.value


def _with_solution(result: Result, solution: Solution | None, pack: ContextPack | None) -> Result:
    if solution is None:
        return result
    own = solution.trajectory == result.trajectory  # The arm's own agent made the patch.
    spent = {
        "solver_steps": solution.steps,
        "solver_tokens": solution.tokens,
        "solver_cost": solution.cost_usd,
        "solver_seconds": solution.seconds,
        "adherence": adherence(pack, solution.patch),
    }
    scores = {**result.scores, "solved": solution.solved, **({} if own and result.trajectory else spent)}
    solver = "" if own else solution.trajectory
    return result.model_copy(
        update={"scores": scores, "solver": solver, "patch": solution.patch, "tests": solution.tests}
    )


def _blank(arm: str, task: Task, sample: int) -> Result:
    split = task.tags.get("split", ALL)
    return Result(
        arm=arm, task_id=task.id, sample=sample, split=split, trajectory="", stop=None, scores={}, tags=task.tags
    )


def load_scorers(names: Iterable[str]) -> list[Scorer]:
    """One scorer for each name.

    Args:
        names: announced in the entry-point group `gumshoe.metrics`, or paths `package.module:attribute`, of a scorer
            or of a class that makes one without arguments.

    Raises:
        ConfigError: a name is unknown or cannot be imported, is not a scorer, or its metric already exists.
    """
    scorers: dict[str, Scorer] = {}
    for name in names:
        scorer = _load(name)
        if scorer.name in OWN:
            raise ConfigError(f"metric {scorer.name!r} is one of Gumshoe's own: give {name!r} another name")
        if scorer.name in scorers:
            raise ConfigError(f"metric {scorer.name!r} is listed twice: list each metric once")
        scorers[scorer.name] = scorer
    return list(scorers.values())


def _load(name: str) -> Scorer:
    scorer = load_named(name, "metric", announced(METRICS))
    if not isinstance(getattr(scorer, "name", None), str) or not hasattr(scorer, "score"):
        raise ConfigError(f"{name!r} is not a metric: it needs a name and score(trajectory, oracle) -> Score")
    return scorer
