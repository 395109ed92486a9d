"""The index: what it holds, how it keeps up, and what it does with what is broken or changed."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.export.export import export_runs
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.eval.view.code import code_of
from gumshoe.eval.view.episode import LONGEST_TEXT, MOST_CHARACTERS, cap, of_journal
from gumshoe.eval.view.facts import row_of_dataset, row_of_journal, row_of_trajectory, words_of
from gumshoe.eval.view.gold_patches import GoldPatches
from gumshoe.eval.view.index import TABLES, Index, cache_folder
from gumshoe.eval.view.library import Library, NotThere
from gumshoe.eval.view.query import search
from gumshoe.eval.view.reading import as_object, read_line, read_row
from gumshoe.eval.view.sources import find_sources
from gumshoe.eval.view.watch import Watcher
from support.eval.evaluation_samples import write_evaluation
from support.eval.view_samples import SEEK, make_trajectory, write_journal, write_run
from support.eval.viewer import all_rows, open_library

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SEARCHED = sqlite3.connect(":memory:")
SEARCHED.executescript(TABLES)
NAMES = st.sampled_from(
    ["id", "task", "policy", "steps", "scores", "usage", "messages", "context_pack", "patch", "stop", "provenance"]
)


def ids(library: Library) -> list[str]:
    return [row["task"] for row in sorted(all_rows(library), key=lambda row: row["id"])]


@given(st.dictionaries(NAMES, JSON, max_size=6))
def test_any_json_object_makes_a_row_and_words(data: dict[str, object]) -> None:
    """Other versions and other programs write other things: a row is made of what is there."""
    for row in (row_of_trajectory(data), row_of_dataset(data, "v", "s"), row_of_journal([data])):
        assert isinstance(row.strip, str)
        json.dumps(dict(row.facts), allow_nan=False)
    assert isinstance(words_of(data), str)


@given(st.text(), st.text(), st.dictionaries(st.text(), JSON, max_size=4))
def test_any_observation_has_a_code_pane(tool: str, text: str, data: dict[str, object]) -> None:
    for name in (tool, "view", "pdb", "rewrite"):
        json.dumps(code_of(name, text, data))


def test_code_is_read_from_text_where_there_is_no_data() -> None:
    stop = "> a.py:7 in f (breakpoint 1)\n  6 x\n->7 y\n"
    shown = {"state": "stopped", "path": "a.py", "current": 7, "lines": [[6, "x"], [7, "y"]]}
    assert code_of("pdb", stop, {}) == shown
    over = {"state": "exited", "path": "a.py", "lines": [[6, "x"], [7, "y"]]}
    assert code_of("pdb", f"{stop}program ended with exit code 1\n", {}) == over
    assert code_of("pdb", f"program ended with exit code 1\n{stop}", {}) == shown
    assert "current" not in code_of("pdb", stop, {"state": "exited", "stop": {"path": "a.py", "line": 7}})
    assert code_of("rewrite", "rewrote a.py\n@@ -1 +1 @@", {}) == {"path": "a.py", "diff": "@@ -1 +1 @@"}
    assert code_of("rewrite", "no such file", {}) == {}
    assert code_of("view", "no such file", {}) == {}
    assert code_of("view", "a.py 1-2 of 9 lines\n 1 x\n*2 y", {}) == {
        "path": "a.py",
        "lines": [[1, "x"], [2, "y"]],
        "marks": [2],
    }


def test_what_is_new_is_taken_in_and_a_torn_line_waits(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(0)])
    with open_library(run, cache=tmp_path / "cache") as library:
        assert ids(library) == ["shop/tax-0"]
        line = make_trajectory(1).model_dump_json()
        with (run / "trajectories.jsonl").open("a", encoding="utf-8") as file:
            file.write(line[:100])
            file.flush()
            library.watcher.look()
            assert ids(library) == ["shop/tax-0"]
            file.write(f"{line[100:]}\n")
        library.watcher.look()
        assert ids(library) == ["shop/tax-0", "shop/tax-1"]
        assert len(library.search("shop/tax-1")["keys"]) == 1


def test_an_index_is_found_again_and_a_changed_run_is_read_anew(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(number) for number in range(3)])
    with open_library(run, cache=tmp_path / "cache") as library:
        assert len(ids(library)) == 3
        key = sorted(all_rows(library), key=lambda row: row["id"])[2]["key"]
    with Index([run], tmp_path / "cache") as index:
        library = Library(Watcher([run], index), index, GoldPatches(), None)
        assert len(ids(library)) == 3
        write_run(run, [make_trajectory(0)])
        with pytest.raises(DatasetError, match="has changed"):
            library.episode(key)
        library.watcher.look()
        assert ids(library) == ["shop/tax-0"]
        other = write_run(tmp_path / "other", [make_trajectory(5), make_trajectory(6)])
        (other / "trajectories.jsonl").replace(run / "trajectories.jsonl")
        library.watcher.look()
        assert ids(library) == ["shop/tax-5", "shop/tax-6"]
        (run / "trajectories.jsonl").unlink()
        with pytest.raises(NotThere):
            library.episode(all_rows(library)[0]["key"])
    (database,) = (tmp_path / "cache").glob("*.sqlite")
    database.write_bytes(b"no database at all, but long enough to be read as one" * 100)
    write_run(run, [make_trajectory(7)])
    with open_library(run, cache=tmp_path / "cache") as library:
        assert ids(library) == ["shop/tax-7"]


def test_a_second_viewer_keeps_an_index_of_its_own(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(0)])
    with open_library(run, cache=tmp_path / "cache") as one, open_library(run, cache=tmp_path / "cache") as other:
        assert ids(one) == ids(other)
    assert list((tmp_path / "cache").glob("own-*")) == []


def test_a_new_export_replaces_the_rows_of_the_old_one(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(number) for number in (0, 2, 3)])
    views = ("agent", "seeker", "agent_decisions")
    export_runs([run], tmp_path / "data", unresolved=True, test_share=0.4, views=views)
    with open_library(tmp_path / "data", cache=tmp_path / "cache") as library:
        before = all_rows(library)
        decision = next(row for row in before if row["key"].startswith("data~agent_decisions~"))
        assert len(library.episode(decision["key"])["messages"]) > 1
        write_run(run, [make_trajectory(4)])
        export_runs([run], tmp_path / "data", unresolved=True, test_share=0.0)
        library.watcher.look()
        assert {row["task"] for row in all_rows(library)} == {"shop/tax-4"}
        shard = next((tmp_path / "data").glob("agent/*.parquet"))
        shard.write_bytes(b"PAR1 broken")
        library.watcher.look()
        assert "cannot be read" in library.overview()["sources"][0]["problem"]


def test_an_episode_in_flight(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [])
    journal = write_journal(run, "tax-7", SEEK)
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"completion": {"text": 7}}\n{"completion"')
    write_journal(run, "tax-8.diverged-0", SEEK)
    with open_library(run, cache=tmp_path / "cache") as library:
        (row,) = all_rows(library)
        assert (row["task"], row["outcome"], row["steps"], row["strip"]) == ("shop/tax-7", "running", 4, "vss-")
        found = library.episode(row["key"])
        assert [step["message_index"] for step in found["steps"]] == [0, 2, 4]
        assert len(library.search("which tax")["keys"]) == 1
        with pytest.raises(NotThere):
            library.raw(row["key"])
        journal.unlink()
        with pytest.raises(NotThere, match="has ended"):
            library.episode(row["key"])
    assert of_journal([])["steps"] == []


def test_the_figures_of_an_evaluation_that_cannot_be_read(tmp_path: Path) -> None:
    folder = write_evaluation(tmp_path / "eval", 2)
    with open_library(folder, cache=tmp_path / "cache") as library:
        key = next(row["key"] for row in all_rows(library) if row["source"] == "eval.seeker")
        assert library.episode(key)["evaluated"]["scores"]
        (folder / "results.jsonl").write_text('{"arm": 1}\n')
        with pytest.raises(DatasetError, match=r"results\.jsonl line 1: arm"):
            library.evaluation("eval")
        assert library.episode(key)["evaluated"] is None
        (folder / "results.jsonl").unlink()
        (folder / "summary.json").write_text("{}")
        with pytest.raises(DatasetError, match="is not a summary"):
            library.evaluation("eval")
        with pytest.raises(NotThere):
            library.evaluation("eval.seeker")
        with pytest.raises(NotThere):
            library.mask(key)


def test_gold_patches_come_only_from_where_they_may(tmp_path: Path, everything: Path) -> None:
    """A config is data: a task source elsewhere, named in it, is not read."""
    run = write_run(tmp_path / "given" / "run", [make_trajectory(0)])
    (run / "config.yaml").write_text(f"tasks: {{source: {everything / 'tasks'}}}\n")
    (source,) = find_sources([run])
    assert GoldPatches().of("shop/tax-0", source) is None
    assert GoldPatches([str(everything / "tasks")]).of("shop/tax-0", source) is not None
    (tmp_path / "given" / "linked").symlink_to(everything / "tasks")
    (run / "config.yaml").write_text(f"tasks: {{source: {tmp_path / 'given' / 'linked'}}}\n")
    assert GoldPatches().of("shop/tax-0", source) is None
    (run / "config.yaml").write_text("tasks: {source: casebook}\n")
    assert GoldPatches().of("casebook/none", source) is None
    (run / "config.yaml").write_text("a: [")
    assert GoldPatches().of("shop/tax-0", source) is None


def test_long_texts_are_cut_so_that_all_of_them_fit() -> None:
    cut = cap({"one": "a" * (2 * LONGEST_TEXT), "few": ["b"], "none": None})
    assert len(cut["one"]) < LONGEST_TEXT + 100
    assert (cut["cut"], cut["few"], cut["none"]) == (1, ["b"], None)
    many = cap({"all": ["c" * 100_000] * 400})
    assert sum(map(len, many["all"])) < MOST_CHARACTERS * 1.5


def test_rows_are_sent_once_until_the_index_starts_over(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(number) for number in range(3)])
    with open_library(run, cache=tmp_path / "cache") as library:
        first = library.rows("", 0, limit=2)
        assert (first["first"], len(first["rows"]), first["more"]) == (True, 2, True)
        rest = library.rows(first["era"], first["last"], limit=2)
        assert (rest["first"], len(rest["rows"]), rest["more"]) == (False, 1, False)
        assert library.rows(rest["era"], rest["last"])["rows"] == []
        write_run(run, [make_trajectory(7)])
        library.watcher.look()
        again = library.rows(rest["era"], rest["last"])
        assert again["first"]
        assert [row["task"] for row in again["rows"]] == ["shop/tax-7"]
        assert again["rows"][0]["facts"]["agent"] == "debug"


@given(st.text(max_size=40))
def test_any_text_can_be_searched_for(text: str) -> None:
    assert search(SEARCHED, text) == []


def test_folders_without_anything_to_see(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        find_sources([tmp_path / "none"])
    with pytest.raises(ConfigError, match="holds no run, dataset or evaluation"):
        find_sources([tmp_path])
    run = write_run(tmp_path / "a" / "run", [])
    other = write_run(tmp_path / "b" / "run", [])
    found = find_sources([run, other, run])
    assert [(source.slug, source.name) for source in found] == [("a.run", "a/run"), ("b.run", "b/run")]
    assert [source.slug for source in find_sources([run, run])] == ["run"]
    twin = write_run(tmp_path / "c" / "a" / "run", [])
    assert [source.name for source in find_sources([run, twin])] == [f"{tmp_path.name}/a/run", "c/a/run"]


def test_the_cache_is_where_the_system_keeps_such_things(tmp_path: Path) -> None:
    assert cache_folder().parts[-2:] == ("gumshoe", "view")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--cache"):
        Index([tmp_path], tmp_path / "file" / "below")


def test_reading_what_is_not_what_it_was(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(0), make_trajectory(2)])
    export_runs([run], tmp_path / "data", unresolved=True, test_share=0.0)
    shard = next((tmp_path / "data" / "agent").glob("*.parquet"))
    assert read_row(shard, 1)["task_id"] == "shop/tax-2"
    with pytest.raises(DatasetError, match="has changed"):
        read_row(shard, 9)
    shard.write_bytes(b"PAR1 broken")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_row(shard, 0)
    with pytest.raises(DatasetError, match="cannot be read"):
        read_line(tmp_path / "none", 0, 10)
    assert as_object(b"[1]") is None
    assert as_object(b"{") is None


def test_words_of_what_is_gone_are_none(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [make_trajectory(0)])
    with open_library(run, cache=tmp_path / "cache") as library:
        watcher = library.watcher
        assert watcher.words_at("nobody", "x", 0, 1) == ""
        assert watcher.words_at("run", "gone.jsonl", 0, 1) == ""
        assert watcher.words_at("run", "trajectories.jsonl", 10**9, 1) == ""
        (run / "trajectories.jsonl").unlink()
        run.rmdir()
        watcher.look()
        assert "there is no folder" in library.overview()["sources"][0]["problem"]
