"""What the index says of episodes in folders of every kind: outcomes, labels, and folders that are found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from gumshoe.collect.data.export.export import export_runs
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.eval.view.library import Library
from gumshoe.eval.view.sources import find_sources
from gumshoe.records import ContextPack
from support.eval.evaluation_samples import write_evaluation, write_everything
from support.eval.view_samples import PACK, SEEK, make_task, make_trajectory, write_journal, write_run
from support.eval.viewer import all_rows, open_library


def test_a_folder_of_demos_is_searched(tmp_path: Path) -> None:
    """At any depth up to five; what is hidden, linked or below a set of tasks is left out."""
    for day in ("monday", "tuesday"):
        demo = tmp_path / "runs" / "demo" / day
        run = write_run(demo / "traces", [make_trajectory(0)])
        export_runs([run], demo / "dataset", unresolved=True, test_share=0.0)
        write_taskset(demo / "tasks", [make_task(0)])
        write_run(demo / "tasks" / "run", [])
        write_run(demo / ".hidden" / "run", [])
    write_evaluation(tmp_path / "runs" / "demo" / "tuesday" / "eval", 2)
    (tmp_path / "linked").symlink_to(tmp_path / "runs" / "demo")
    found = [(source.kind, source.name) for source in find_sources([tmp_path])]
    assert found == [
        ("dataset", "monday/dataset"),
        ("run", "monday/traces"),
        ("dataset", "tuesday/dataset"),
        ("evaluation", "eval"),
        ("run", "idle"),
        ("run", "seeker"),
        ("run", "tuesday/traces"),
    ]
    assert find_sources([tmp_path / "runs"])[0].name == "monday/dataset"
    deep = write_run(tmp_path.joinpath(*"abcdef") / "run", [])
    assert deep not in [source.path for source in find_sources([tmp_path])]


def outcomes(library: Library, **wanted: str) -> dict[str, str]:
    """By task, the outcomes of rows with these values."""
    rows = [row for row in all_rows(library) if wanted.items() <= {**row["facts"], **row}.items()]
    return {row["task"]: row["outcome"] for row in rows}


def test_a_report_is_a_hit_or_a_miss(tmp_path: Path) -> None:
    """By the gold patch where it is known; in an evaluation by its scores; a solver's episode is resolved or not."""
    beside = PACK.model_copy(update={"locations": PACK.locations[1:]})
    reported = [make_trajectory(0, pack=PACK), make_trajectory(1, pack=beside), make_trajectory(2, pack=ContextPack())]
    run = write_run(tmp_path / "given" / "run", [*reported, make_trajectory(3)])
    with open_library(tmp_path / "given") as library:
        assert set(outcomes(library).values()) == {"reported", "resolved"}
    write_taskset(tmp_path / "given" / "tasks", [make_task(number) for number in range(3)])
    with open_library(tmp_path / "given") as library:
        assert outcomes(library) == {
            "shop/tax-0": "hit",
            "shop/tax-1": "miss",
            "shop/tax-2": "miss",
            "shop/tax-3": "resolved",
        }
        assert [row["facts"].get("first hit") for row in all_rows(library)] == [1, None, None, None]
        (row,) = (row for row in all_rows(library) if row["task"] == "shop/tax-1")
        assert library.episode(row["key"])["row"]["outcome"] == "miss"
    assert run.is_dir()


def test_the_rows_of_an_evaluation_go_by_its_scores_and_labels(tmp_path: Path) -> None:
    folder = write_evaluation(tmp_path / "eval", 2, solver=True)
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for line in lines:
        line["scores"]["reciprocal_rank"] = 0.5 if line["task_id"] == "shop/tax-0" else 0.0
    (folder / "results.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with open_library(folder) as library:
        assert outcomes(library, policy="the seeker") == {"shop/tax-0": "hit", "shop/tax-1": "miss"}
        assert outcomes(library, policy="idle model") == {"shop/tax-0": "not resolved", "shop/tax-1": "not resolved"}
        assert outcomes(library, policy="the seeker (solver)") == {"shop/tax-0": "resolved", "shop/tax-1": "resolved"}
        assert [source["title"] for source in library.overview()["sources"]] == [
            "eval",
            "idle model",
            "the seeker",
            "the seeker (solver)",
        ]
        (folder / "summary.json").unlink()
        (folder / "config.yaml").write_text("arms: [{name: seeker, label: from the config}, {name: idle}, 7]\n")
        assert {row["policy"] for row in all_rows(library)} == {
            "from the config",
            "idle",
            "from the config (solver)",
        }


def test_a_seekers_row_of_a_dataset_has_an_outcome_of_its_own(tmp_path: Path) -> None:
    """The episode that it was made from fixed the bug; the row only names where it is."""
    run = write_run(tmp_path / "run", [make_trajectory(0)])
    export_runs([run], tmp_path / "data", test_share=0.0)
    with open_library(tmp_path / "data") as library:
        assert outcomes(library, view="agent") == {"shop/tax-0": "resolved"}
        assert outcomes(library, view="seeker") == {"shop/tax-0": "reported"}
        assert outcomes(library, view="seeker", **{"episode outcome": "resolved"}) != {}
        row = next(row for row in all_rows(library) if row["facts"]["view"] == "seeker")
        assert (row["stop"], row["tokens"], row["cost"]) == ("reported", None, None)
        assert library.episode(row["key"])["stop"] == "reported"
    write_taskset(tmp_path / "tasks", [make_task(0)])
    with open_library(tmp_path / "data") as library:
        assert outcomes(library, view="seeker") == {"shop/tax-0": "hit"}


def test_episodes_of_folders_that_are_gone_are_not_listed(tmp_path: Path) -> None:
    """The others stay, datasets and episodes in flight included, which are only read again when they change."""
    folder = write_everything(tmp_path / "demo", episodes=6)
    write_evaluation(folder / "eval", solver=True)
    write_journal(folder / "traces", "tax-7", SEEK)
    with open_library(folder) as library:
        before = len(all_rows(library))
        assert [source["name"] for source in library.overview()["sources"] if source["parent"]] == [
            "idle",
            "seeker",
            "solver/seeker",
        ]
        shutil.rmtree(folder / "eval" / "arms" / "idle")
        library.catalog.refresh()
        left = all_rows(library)
        assert len(left) == before - 6
        assert {row["source"] for row in left} == {"traces", "dataset", "eval.seeker", "eval.solver.seeker"}
        assert any(row["live"] for row in left)
    shutil.rmtree(folder / "eval")
    with open_library(folder) as library:
        assert {row["source"] for row in all_rows(library)} == {"traces", "dataset"}
