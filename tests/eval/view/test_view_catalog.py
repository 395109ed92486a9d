"""The catalog: what it holds, how it keeps up, and what it does with what is broken or changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.cli import main
from gumshoe.collect.data.export.export import export_runs
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.eval.view.episode_page import shown_code
from gumshoe.eval.view.library import Library, NotThere
from gumshoe.eval.view.sources import GoldPatches, find_sources
from gumshoe.records import ContextPack
from support.eval.view_samples import (
    PACK,
    SEEK,
    make_task,
    make_trajectory,
    write_evaluation,
    write_everything,
    write_journal,
    write_run,
)
from support.eval.viewer import all_rows, open_library

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def ids(library: Library) -> list[str]:
    return [row["task"] for row in sorted(all_rows(library), key=lambda row: row["id"])]


@given(st.sampled_from(["view", "pdb", "rewrite", "grep"]), st.dictionaries(st.text(), JSON, max_size=4))
def test_any_observation_has_a_code_pane(tool: str, data: dict[str, object]) -> None:
    json.dumps(shown_code(tool, data))


def test_what_is_new_is_taken_in_and_a_torn_line_waits(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(0)])
    with open_library(run) as library:
        assert ids(library) == ["shop/tax-0"]
        line = make_trajectory(1).model_dump_json()
        with (run / "trajectories.jsonl").open("a", encoding="utf-8") as file:
            file.write(line[:100])
            file.flush()
            library.catalog.refresh()
            assert ids(library) == ["shop/tax-0"]
            file.write(f"{line[100:]}\n")
        library.catalog.refresh()
        assert ids(library) == ["shop/tax-0", "shop/tax-1"]
        assert len(library.search("shop/tax-1")["keys"]) == 1


def test_a_changed_run_is_read_anew(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(number) for number in range(3)])
    with open_library(run) as library:
        key = sorted(all_rows(library), key=lambda row: row["id"])[2]["key"]
        write_run(run, [make_trajectory(0)])
        with pytest.raises(DatasetError, match="has changed"):
            library.episode(key)
        library.catalog.refresh()
        assert ids(library) == ["shop/tax-0"]
        other = write_run(tmp_path / "other", [make_trajectory(5), make_trajectory(6)])
        (other / "trajectories.jsonl").replace(run / "trajectories.jsonl")
        library.catalog.refresh()
        assert ids(library) == ["shop/tax-5", "shop/tax-6"]
        (run / "trajectories.jsonl").unlink()
        with pytest.raises(DatasetError, match="no longer exists"):
            library.episode(all_rows(library)[0]["key"])


def test_a_dataset_of_another_program_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "add"}, {"role": "assistant", "content": "[seek] I look at needle."}]
    answered = {"prompt": asked[:1], "completion": asked[1:], "resolved": None}
    rows = [{"messages": asked}, {"messages": [{"role": 7}]}, {"messages": None}]
    for name, table in (("chats", rows), ("pairs", [answered])):
        (tmp_path / name).mkdir()
        text = [{key: value and json.dumps(value) for key, value in row.items()} for row in table]
        pq.write_table(pa.Table.from_pylist(text), tmp_path / name / "train.parquet")
    with open_library(tmp_path) as library:
        found = {row["source"]: row for row in all_rows(library) if row["strip"] == "s"}
        assert sorted(found) == ["chats", "pairs"]
        assert library.search("needle")["keys"] == [found["chats"]["key"], found["pairs"]["key"]]
        assert [step["rationale"] for step in library.episode(found["pairs"]["key"])["steps"]] == ["I look at needle."]
        assert library.overview()["sources"][0]["problem"] == "a broken line is left out"


def test_a_new_export_replaces_the_rows_of_the_old_one(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(number) for number in (0, 2, 3)])
    views = ("agent", "seeker", "agent_decisions")
    export_runs([run], tmp_path / "data", unresolved=True, test_share=0.4, views=views)
    with open_library(tmp_path / "data") as library:
        before = all_rows(library)
        decision = next(row for row in before if row["key"].startswith("data~agent_decisions~"))
        assert len(library.episode(decision["key"])["messages"]) > 1
        write_run(run, [make_trajectory(4)])
        export_runs([run], tmp_path / "data", unresolved=True, test_share=0.0)
        library.catalog.refresh()
        assert {row["task"] for row in all_rows(library)} == {"shop/tax-4"}
        shard = next((tmp_path / "data").glob("agent/*.parquet"))
        shard.write_bytes(b"PAR1 broken")
        library.catalog.refresh()
        assert "cannot be read" in library.overview()["sources"][0]["problem"]


def test_an_episode_in_flight(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [])
    journal = write_journal(run, "tax-7", SEEK)
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"completion"')
    write_journal(run, "tax-8.diverged-0", SEEK)
    with open_library(run) as library:
        (row,) = all_rows(library)
        assert (row["task"], row["outcome"], row["steps"], row["strip"]) == ("shop/tax-7", "running", 3, "vss")
        found = library.episode(row["key"])
        assert [step["message_index"] for step in found["steps"]] == [0, 2, 4]
        assert len(library.search("which tax")["keys"]) == 1
        with pytest.raises(NotThere):
            library.raw(row["key"])
        journal.unlink()
        with pytest.raises(DatasetError, match="has ended"):
            library.episode(row["key"])


def test_gold_patches_come_only_from_where_they_may(tmp_path: Path, everything: Path) -> None:
    """A config is data: a task source elsewhere, named in it, is not read."""
    run, elsewhere = write_run(tmp_path / "given" / "run", [make_trajectory(0)]), everything / "tasks"
    linked = tmp_path / "given" / "linked"
    linked.symlink_to(elsewhere)
    (source,) = find_sources([run])
    for config in (*(f"tasks: {{source: {wanted}}}\n" for wanted in (elsewhere, linked, "casebook")), "a: ["):
        (run / "config.yaml").write_text(config)
        assert GoldPatches().find("shop/tax-0", source) is None
    assert GoldPatches([str(elsewhere)]).find("shop/tax-0", source) is not None


def test_rows_are_sent_once_until_the_index_starts_over(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(number) for number in range(3)])
    with open_library(run) as library:
        first = library.rows("", 0, limit=2)
        assert (first["first"], len(first["rows"]), first["more"]) == (True, 2, True)
        rest = library.rows(first["era"], first["last"], limit=2)
        assert (rest["first"], len(rest["rows"]), rest["more"]) == (False, 1, False)
        assert library.rows(rest["era"], rest["last"])["rows"] == []
        write_run(run, [make_trajectory(7)])
        library.catalog.refresh()
        again = library.rows(rest["era"], rest["last"])
        assert again["first"]
        assert [row["task"] for row in again["rows"]] == ["shop/tax-7"]
        assert again["rows"][0]["facts"]["agent"] == "debug"


@given(st.text(max_size=40))
def test_any_text_can_be_searched_for(library: Library, text: str) -> None:
    assert library.search(f"{text} zzzzzz")["keys"] == []


def test_folders_without_anything_to_see(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        find_sources([tmp_path / "none"])
    for name in ("arms", "journal"):  # such as a package of that name
        (tmp_path / "code" / name).mkdir(parents=True)
    with pytest.raises(ConfigError, match="holds no run, dataset or evaluation"):
        find_sources([tmp_path])
    (tmp_path / "code" / "config.yaml").touch()
    assert [source.kind for source in find_sources([tmp_path])] == ["evaluation"]
    run = write_run(tmp_path / "a" / "run", [])
    assert main(["view", str(run), "--static", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    other = write_run(tmp_path / "b" / "run", [])
    found = find_sources([run, other, run])
    assert [(source.slug, source.name) for source in found] == [("a.run", "a/run"), ("b.run", "b/run")]
    assert [source.slug for source in find_sources([run, run])] == ["run"]
    twin = write_run(tmp_path / "c" / "a" / "run", [])
    assert [source.name for source in find_sources([run, twin])] == [f"{tmp_path.name}/a/run", "c/a/run"]


# --- folders of every kind, outcomes and labels -------------------------------------------------------------------


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
    of_eval = [("evaluation", "eval"), ("run", "idle"), ("run", "seeker")]
    monday = [("dataset", "monday/dataset"), ("run", "monday/traces")]
    assert found == [*monday, ("dataset", "tuesday/dataset"), *of_eval, ("run", "tuesday/traces")]
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
    write_run(tmp_path / "given" / "run", [*reported, make_trajectory(3)])
    with open_library(tmp_path / "given") as library:
        assert set(outcomes(library).values()) == {"reported", "resolved"}
    write_taskset(tmp_path / "given" / "tasks", [make_task(number) for number in range(3)])
    with open_library(tmp_path / "given") as library:
        expected = ("hit", "miss", "miss", "resolved")
        assert outcomes(library) == {f"shop/tax-{number}": one for number, one in enumerate(expected)}
        assert [row["facts"].get("first hit") for row in all_rows(library)] == [1, None, None, None]
        (row,) = (row for row in all_rows(library) if row["task"] == "shop/tax-1")
        assert library.episode(row["key"])["row"]["outcome"] == "miss"


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
        titles = [source["title"] for source in library.overview()["sources"]]
        assert titles == ["eval", "idle model", "the seeker", "the seeker (solver)"]
        (folder / "summary.json").unlink()
        (folder / "config.yaml").write_text("arms: [{name: seeker, label: from the config}, {name: idle}, 7]\n")
        labels = {"from the config", "idle", "from the config (solver)"}
        assert {row["policy"] for row in all_rows(library)} == labels


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
        arms = [source["name"] for source in library.overview()["sources"] if source["parent"]]
        assert arms == ["idle", "seeker", "solver/seeker"]
        shutil.rmtree(folder / "eval" / "arms" / "idle")
        library.catalog.refresh()
        left = all_rows(library)
        assert len(left) == before - 6
        assert {row["source"] for row in left} == {"traces", "dataset", "eval.seeker", "eval.solver.seeker"}
        assert any(row["live"] for row in left)
    shutil.rmtree(folder / "eval")
    with open_library(folder) as library:
        assert {row["source"] for row in all_rows(library)} == {"traces", "dataset"}
