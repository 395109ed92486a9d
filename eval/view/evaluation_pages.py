"""An evaluation for its page: its summary, the tasks behind every figure, and what it says about one episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from gumshoe.collect.packs import clean_path
from gumshoe.errors import DatasetError, GumshoeError
from gumshoe.eval.records import ALL, Result, Summary
from gumshoe.eval.score.metrics import METRICS, Metric, changed_lines
from gumshoe.eval.view.sources import ARMS, Source, read_config, read_once
from gumshoe.records import Location, Trajectory
from gumshoe.storage import describe, read_json, read_records

SHOWN = 40
"""Changed lines outside the pack's locations that are listed."""
SENT = {"arm", "split", "sample", "stop", "scores", "tags"}
"""What the page gets of a result."""


class EvaluationPages:
    """The pages of an evaluation, whose files are read again once they have changed. All methods raise DatasetError.

    `keys` holds the address of each episode by arm and id of the trajectory.
    """

    def __init__(self, source: Source, keys: Mapping[tuple[str, str], str]) -> None:
        self._source = source
        self._keys = keys

    def evaluation(self) -> dict[str, Any]:
        """The figures, as `Evaluation` in `types.ts`: `summary` is None until a run has ended, `tasks` are in the order
        of the results, `timing` are seconds for a resolved task.
        """
        results, summary = read_results(self._source), _read_summary(self._source)
        return {
            "slug": self._source.slug,
            "name": self._source.name,
            "summary": summary,
            "timing": _read_timing(self._source),
            "metrics": {
                one.name: {"title": one.title, "help": one.help, "unit": one.unit} for one in _metrics_of(summary)
            },
            "tasks": list(dict.fromkeys(one.task_id for one in results)),
            "results": [
                {**one.model_dump(mode="json", include=SENT), "task": one.task_id, **self._addresses(one)}
                for one in results
            ],
        }

    def task(self, task: str, gold: str | None) -> dict[str, Any]:
        """One task: its gold patch, where it is known, and what each arm made of it."""
        return {
            "task": task,
            "gold": gold,
            "attempts": [
                {**_verdict(one), **self._addresses(one)} for one in read_results(self._source) if one.task_id == task
            ],
        }

    def episode(self, arm: str, episode: Trajectory, gold: str | None) -> dict[str, Any]:
        """What the evaluation says about an episode of one of its arms, or of its solver.

        `given` is the address of the episode whose pack a solver's episode began with; `answers` are the attempts to
        fix the bug, that of this episode first (`mine`). Of `mine`, `edited` says for each location of the pack whether
        the patch changes a line of it, and `elsewhere` holds the changed lines that no location holds.
        """
        summary = _read_summary(self._source) or {"solver": ""}
        titles = _arm_labels(self._source)
        found = [one for one in read_results(self._source) if one.task_id == episode.task.id]
        own = next((one for one in found if one.arm == arm and episode.id in (one.trajectory, one.solver)), None)
        answers = [self._answer(one, titles, gold) for one in found if one is not own and _was_tried(one)]
        if own is not None and _was_tried(own):
            pack = episode.context_pack
            places = _places(own.patch, pack.locations) if pack is not None else {}
            answers.insert(0, {**self._answer(own, titles, gold), "mine": True, **places})
        return {
            "evaluation": self._source.slug,
            "arm": arm,
            "title": titles.get(arm, arm),
            "solver": summary["solver"],
            "scores": own.scores if own is not None else {},
            "given": self._keys.get((arm, own.trajectory)) if own is not None and own.solver == episode.id else None,
            "answers": answers,
        }

    def _addresses(self, one: Result) -> dict[str, str | None]:
        """The addresses of a result's episode and of the solver's."""
        keys = self._keys
        return {"key": keys.get((one.arm, one.trajectory)), "solver_key": keys.get((one.arm, one.solver))}

    def _answer(self, one: Result, titles: Mapping[str, str], gold: str | None) -> dict[str, Any]:
        """An attempt to fix the bug. If the arm's own agent made the patch, the costs are those of its episode."""
        itself = "solver_steps" not in one.scores
        prefix = "" if itself else "solver_"
        return {
            **_verdict(one),
            "title": titles.get(one.arm, one.arm),
            "mine": False,
            "itself": itself,
            "like_gold": _changed(one.patch) == _changed(gold) if one.patch and gold else None,
            **{name: one.scores.get(f"{prefix}{name}") for name in ("steps", "tokens", "cost", "seconds")},
            "key": self._keys.get((one.arm, one.trajectory if itself else one.solver)),
            "edited": None,
            "elsewhere": [],
        }


def _metrics_of(summary: Mapping[str, Any] | None) -> list[Metric]:
    """What each measure of a summary means: Gumshoe's metrics, those of the config's own, and pass@k."""
    if summary is None:
        return list(METRICS)
    named = {name for arm in summary["arms"] for name in arm["groups"].get(ALL, {})}
    passes = [Metric(name, name, "at least one of k samples is right") for name in sorted(named) if "pass@" in name]
    own = [Metric(name, name, "", unit) for name, unit in summary["own_metrics"].items()]
    return [*METRICS, *own, *passes]


def _verdict(one: Result) -> dict[str, Any]:
    known = one.model_dump(include={"arm", "sample", "tests", "patch"})
    return {**known, "solved": one.scores.get("solved"), "official": one.scores.get("official")}


def _was_tried(one: Result) -> bool:
    return "solved" in one.scores


def _places(patch: str, locations: Sequence[Location]) -> dict[str, Any]:
    """Which locations of a pack a patch changes, and where it changes something else."""
    changed = changed_lines(patch) or {}
    held = [{line for line in changed.get(clean_path(place.path), ()) if line in place.lines} for place in locations]
    inside = {(clean_path(place.path), line) for place, lines in zip(locations, held, strict=True) for line in lines}
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


def _read_timing(source: Source) -> dict[str, Any]:
    """What timing.json holds; nothing where there is none. Raises DatasetError."""
    timing = read_once(source.path / "timing.json", source.root, read_json) or {}
    if not isinstance(timing, dict):
        raise DatasetError("timing.json is not a JSON object")
    return timing


def _read_summary(source: Source) -> dict[str, Any] | None:
    """An evaluation's summary, as JSON; None while there is none. Raises DatasetError."""
    return read_once(source.path / "summary.json", source.root, _summary_in)


def read_results(source: Source) -> Sequence[Result]:
    """The results that an evaluation has. Raises DatasetError."""
    return read_once(source.path / "results.jsonl", source.root, _results_in) or ()


def _arm_labels(source: Source) -> Mapping[str, str]:
    """The labels of an evaluation's arms by their names: from its summary, or from its config until there is one."""
    try:
        summary = _read_summary(source)
        if summary is not None:
            return {one["name"]: one["title"] for one in summary["arms"]}
    except GumshoeError:
        return {}
    arms = read_config(source.path, source.root).get("arms")
    named = [one for one in arms if isinstance(one, dict) and one.get("name")] if isinstance(arms, list) else []
    return {str(one["name"]): str(one.get("label") or one["name"]) for one in named}


def arm_label(source: Source, evaluation: Source) -> str:
    """What an arm of an evaluation, or its solver, is called."""
    name = source.path.name
    label = _arm_labels(evaluation).get(name, name)
    return label if ARMS in source.path.relative_to(evaluation.path).parts else f"{label} (solver)"


def _summary_in(file: Path) -> dict[str, Any]:
    try:
        summary = Summary.model_validate(read_json(file))
    except ValidationError as error:
        raise DatasetError(f"{file.name} is not a summary: {describe(error)}") from None
    groups = {ALL: summary.tasks.get(ALL, 0), **summary.tasks}
    return {**summary.model_dump(mode="json"), "tasks": groups}


def _results_in(file: Path) -> Sequence[Result]:
    return tuple(read_records(file, Result))
