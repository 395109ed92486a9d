"""What the evaluation says about one episode: what the solver did with its pack and with the task's other packs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.eval.records import Result
from gumshoe.eval.scorers.localization import changed_lines, clean_path
from gumshoe.eval.view.evaluations import arm_labels, read_results, read_summary
from gumshoe.eval.view.sources import Source

__all__ = ["evaluated"]

SHOWN = 40
"""Changed lines outside the pack's locations that are listed."""


def evaluated(
    source: Source, arm: str, episode: Mapping[str, Any], keys: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    """What an evaluation says about an episode of one of its arms, or of its solver.

    Args:
        source: the evaluation.
        arm: name of the run folder that the episode is from.
        episode: as the player gets it.
        keys: by (arm, id of the trajectory), the address of the episode.

    Returns:
        `scores` are the episode's own; `given` is the address of the episode whose pack a solver's episode began
        with; `answers` are the attempts to fix the bug, that of this episode first (`mine`), each with its
        outcome, patch, costs and the address of its steps. Of `mine`, `edited` says for each location of the pack
        whether the patch changes a line of it, and `elsewhere` holds the changed lines that no location holds.

    Raises:
        DatasetError: the evaluation's files cannot be read.
    """
    summary = read_summary(source) or {"solver": ""}
    titles = arm_labels(source)
    found = [one for one in read_results(source) if one.task_id == episode["task"]["id"]]
    own = next((one for one in found if one.arm == arm and episode["id"] in (one.trajectory, one.solver)), None)
    answers = [_answer(one, titles, keys, episode["gold"]) for one in found if one is not own and _was_tried(one)]
    if own is not None and _was_tried(own):
        pack = episode["pack"]
        places = _places(own.patch, pack["locations"]) if pack is not None else {}
        answers.insert(0, {**_answer(own, titles, keys, episode["gold"]), "mine": True, **places})
    return {
        "evaluation": source.slug,
        "arm": arm,
        "title": titles.get(arm, arm),
        "solver": summary["solver"],
        "scores": own.scores if own is not None else {},
        "given": keys.get((arm, own.trajectory)) if own is not None and own.solver == episode["id"] else None,
        "answers": answers,
    }


def _was_tried(one: Result) -> bool:
    return "solved" in one.scores


def _answer(
    one: Result, titles: Mapping[str, str], keys: Mapping[tuple[str, str], str], gold: str | None
) -> dict[str, Any]:
    """An attempt to fix the bug. For an agent that made its patch itself, the costs are those of its own episode."""
    itself = "solver_steps" not in one.scores
    prefix = "" if itself else "solver_"
    return {
        "arm": one.arm,
        "title": titles.get(one.arm, one.arm),
        "sample": one.sample,
        "mine": False,
        "itself": itself,
        "solved": one.scores["solved"],
        "official": one.scores.get("official"),
        "tests": one.tests,
        "patch": one.patch,
        "like_gold": _changed(one.patch) == _changed(gold) if one.patch and gold else None,
        **{name: one.scores.get(f"{prefix}{name}") for name in ("steps", "tokens", "cost", "seconds")},
        "key": keys.get((one.arm, one.trajectory if itself else one.solver)),
        "edited": None,
        "elsewhere": [],
    }


def _places(patch: str, locations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Which locations of a pack a patch changes, and where it changes something else."""
    changed = changed_lines(patch) or {}
    held = [
        {line for line in changed.get(clean_path(place["path"]), ()) if place["start"] <= line <= place["end"]}
        for place in locations
    ]
    inside = {(clean_path(place["path"]), line) for place, lines in zip(locations, held, strict=True) for line in lines}
    outside = [
        {"path": path, "line": line}
        for path, lines in sorted(changed.items())
        for line in sorted(lines)
        if (path, line) not in inside
    ]
    return {"edited": [bool(lines) for lines in held], "elsewhere": outside[:SHOWN]}


def _changed(patch: str) -> list[str]:
    """The lines that a patch removes and adds, file by file, without their context."""
    return [line for line in patch.splitlines() if line.startswith(("+", "-")) and not line.startswith("---")]
