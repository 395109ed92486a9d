"""An evaluation with two arms, and a folder with everything that the viewer shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gumshoe.collect.data.export.export import export_runs
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.eval.records import ArmSummary, CalibrationBin, FlakyTask, LossCurve, Result, Summary
from gumshoe.eval.score.measures import Bootstrap, compare, compare_all, measures, per_resolved
from gumshoe.records import PolicyInfo, Trajectory
from support.eval.view_samples import GOLD, PACK, REPAIR, REPORT, SEEK, WRONG, make_task, make_trajectory, write_run

DRAWS = Bootstrap(0, 100)
CALIBRATED: dict[str, Any] = {
    "tools": {"view": 1.5, "pdb": 0.5},
    "calibration": (
        CalibrationBin(low=0.5, high=0.6, confidence=0.55, right=0.5, count=2),
        CalibrationBin(low=0.8, high=0.9, confidence=0.85, right=1.0, count=4),
    ),
    "calibration_error": 0.15,
}


def write_evaluation(folder: Path, tasks: int = 6, *, solver: bool = False) -> Path:
    """Two arms: one reports packs, the other reports nothing; with a solver's arm.

    With `solver` the solver is an agent whose episodes lie there, too, and everything is written down of them.
    """
    seeker = [make_trajectory(number, (*SEEK, *REPORT), pack=PACK, resolved=None) for number in range(tasks)]
    idle = [make_trajectory(number, SEEK, resolved=False, policy="idle") for number in range(tasks)]
    write_run(folder / "arms" / "seeker", seeker)
    write_run(folder / "arms" / "idle", idle)
    by_arm = {
        "idle": [_result("idle", one, 0.0, 0.0) for one in idle],
        "seeker": [_result("seeker", one, 1.0, float(number < 4)) for number, one in enumerate(seeker)],
    }
    if solver:
        by_arm["seeker"] = _repaired(folder, by_arm["seeker"])
    alone = [
        one.model_copy(update={"arm": "no_pack", "trajectory": "", "stop": None, "scores": {"solved": 0.0}})
        for one in by_arm["idle"]
    ]
    all_arms = (("idle", "idle model", by_arm["idle"]), ("seeker", "the seeker", by_arm["seeker"]))
    uplift = [compare(of_arm, alone, "all", "solved", DRAWS) for of_arm in by_arm.values()]
    summary = Summary(
        title="How much does it see?",
        config_hash="c",
        seed=0,
        tasks={"all": tasks, "heldout": tasks // 2, "train": tasks - tasks // 2},
        arms=tuple(
            ArmSummary(
                name=name,
                title=title,
                policy=PolicyInfo(kind=name),
                episodes=len(results),
                seeks=name != "no_pack",
                groups=measures(results, DRAWS),
                per_resolved=per_resolved(results, DRAWS),
                **(CALIBRATED if name == "seeker" else {}),
            )
            for name, title, results in (*all_arms, ("no_pack", "solver alone", alone))
        ),
        comparisons=(*compare_all(by_arm, "idle", DRAWS), *(one for one in uplift if one is not None)),
        baseline="no_pack",
        flaky=(FlakyTask(task_id="shop/luck", passed=2, runs=3),),
        losses=(LossCurve(label="training", points=((1, 3.0), (2, 1.5), (3, 1.0))),),
        solver="models/big, agent" if solver else "",
    )
    results = [one for of_arm in (*by_arm.values(), alone) for one in of_arm]
    (folder / "results.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in results), encoding="utf-8")
    (folder / "summary.json").write_text(summary.model_dump_json(indent=2), encoding="utf-8")
    return folder


def _repaired(folder: Path, results: Sequence[Result]) -> list[Result]:
    """What a solver made of the packs: the first four tasks are repaired, the fifth wrongly, the last not at all."""
    episodes = [make_trajectory(number, REPAIR, resolved=number < 4, policy="big") for number in range(len(results))]
    write_run(folder / "solver" / "seeker", episodes)
    spent = {"solver_steps": 3.0, "solver_tokens": 1120.0, "solver_cost": 0.02, "solver_seconds": 2.5}
    ends = {4: (WRONG, "1 still fail: test_cart.py::test_total"), 5: ("", "no patch")}
    return [
        result.model_copy(
            update={
                "solver": episode.id,
                "scores": {**result.scores, **spent},
                "patch": ends.get(number, (GOLD, ""))[0],
                "tests": ends.get(number, ("", "4 tests pass"))[1],
            }
        )
        for number, (result, episode) in enumerate(zip(results, episodes, strict=True))
    ]


def _result(arm: str, trajectory: Trajectory, recall: float, solved: float) -> Result:
    return Result(
        arm=arm,
        task_id=trajectory.task.id,
        sample=0,
        split=trajectory.task.tags["split"],
        trajectory=trajectory.id,
        stop=trajectory.stop,
        scores={"line_recall": recall, "solved": solved, "steps": float(len(trajectory.steps))},
        tags=trajectory.task.tags,
    )


def write_everything(folder: Path, episodes: int = 30) -> Path:
    """`traces`, `dataset`, `eval` and `tasks`, as a demo leaves them."""
    run = write_run(
        folder / "traces",
        [make_trajectory(number, resolved=number % 3 != 0) for number in range(episodes)]
        + [make_trajectory(0, SEEK, resolved=False, policy="other", said="A needle in the haystack.")],
    )
    export_runs([run], folder / "dataset", unresolved=True, test_share=0.3)
    write_evaluation(folder / "eval")
    write_taskset(folder / "tasks", [make_task(number) for number in range(episodes)])
    return folder
