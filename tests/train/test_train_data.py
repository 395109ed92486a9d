"""Reading datasets, and the errors for invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.errors import DatasetError
from gumshoe.train.data import load_rows
from support.train.training_rows import conversation, row, write_dataset


def test_rows_come_back_as_they_were_written(dataset: Path) -> None:
    rows = load_rows(dataset, "seeker", "train")
    assert len(rows) == 6
    assert rows[5]["messages"] == conversation(5)
    assert "path" not in rows[5]["tools"][0]["function"]["parameters"]["properties"]


def test_limit_takes_the_first_rows(dataset: Path) -> None:
    assert load_rows(dataset, "seeker", "train", limit=2)["id"][:] == ["episode-0", "episode-1"]
    assert len(load_rows(dataset, "seeker", "train", limit=99)) == 6


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"there is no dataset folder .*gumshoe export"):
        load_rows(tmp_path / "none", "seeker", "train")


def test_a_run_folder_is_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "trajectories.jsonl").touch()
    with pytest.raises(DatasetError, match=r"is a run folder: make a dataset from it with `gumshoe export .* --out"):
        load_rows(tmp_path, "seeker", "train")


def test_an_unknown_view(dataset: Path) -> None:
    with pytest.raises(DatasetError, match="has no view 'agent': it has seeker"):
        load_rows(dataset, "agent", "train")


def test_an_unknown_split(dataset: Path) -> None:
    with pytest.raises(DatasetError, match="has no split 'dev': it has train, test"):
        load_rows(dataset, "seeker", "dev")


def test_no_column_messages(tmp_path: Path) -> None:
    write_dataset(tmp_path, {"train": [{"id": "a"}]})
    with pytest.raises(DatasetError, match=r"has no column messages \(nor prompt and completion\): it has id"):
        load_rows(tmp_path, "seeker", "train")


def test_no_rows(tmp_path: Path) -> None:
    write_dataset(tmp_path, {"train": [row(0)], "test": []})
    with pytest.raises(DatasetError, match=r"cannot be read: .*no data"):
        load_rows(tmp_path, "seeker", "test")


def test_a_folder_that_holds_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing here")
    with pytest.raises(DatasetError, match="has no view 'seeker'"):
        load_rows(tmp_path, "seeker", "train")
    with pytest.raises(DatasetError, match="cannot be read"):
        load_rows(tmp_path, "default", "train")


def test_two_folders_of_one_name_are_two_datasets(tmp_path: Path) -> None:
    for number in (1, 2):
        write_dataset(tmp_path / str(number) / "data", {"train": [row(number)]})
    for number in (1, 2):
        assert load_rows(tmp_path / str(number) / "data", "seeker", "train")["id"][:] == [f"episode-{number}"]


def test_a_dataset_written_again_is_read_again(tmp_path: Path) -> None:
    for number in (1, 2):
        write_dataset(tmp_path / "data", {"train": [row(number)]})
        assert load_rows(tmp_path / "data", "seeker", "train")["id"][:] == [f"episode-{number}"]


def test_a_broken_shard(tmp_path: Path) -> None:
    write_dataset(tmp_path, {"train": [row(0)]})
    next((tmp_path / "seeker").iterdir()).write_bytes(b"not parquet")
    with pytest.raises(DatasetError, match="cannot be read"):
        load_rows(tmp_path, "seeker", "train")
