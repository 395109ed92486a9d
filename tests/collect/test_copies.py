"""Runs that are given twice, and runs whose episodes have the same ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.collect.data.export import export_runs
from gumshoe.collect.data.store import read_trajectories
from gumshoe.errors import DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import write_jsonl
from support.collect.export_episodes import episode


def run_folder(path: Path, *episodes: Trajectory) -> Path:
    path.mkdir()
    write_jsonl(path / "trajectories.jsonl", episodes)
    return path


@pytest.fixture
def arms(tmp_path: Path) -> list[Path]:
    """Two runs and a copy of the first. The ids in both are the same."""
    first = [episode("a/b#0", "p"), episode("c", "p")]
    second = [one.model_copy(update={"patch": "another\n"}) for one in first]
    return [run_folder(tmp_path / name, *kept) for name, kept in (("x", first), ("y", second), ("z", first))]


def test_converting_keeps_every_episode_and_no_copy(
    tmp_path: Path, arms: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["convert", *map(str, arms), "--to", "atif", "--out", str(out)]) == 0
    assert "4 trajectories; left out: 2 given more than once" in capsys.readouterr().out
    assert main(["convert", str(out), "--from", "atif", "--out", str(tmp_path / "back")]) == 0
    found = sorted((one.id, one.patch) for one in read_trajectories(tmp_path / "back"))
    assert found == sorted((one.id, one.patch) for arm in arms[:2] for one in read_trajectories(arm))


def test_an_export_holds_no_copies(tmp_path: Path, arms: list[Path]) -> None:
    for runs, rows in (([arms[0], arms[0]], 2), (arms, 4)):
        result = export_runs(runs, tmp_path / "out", views=["agent"], test_share=0)
        assert result.rows == {"agent": {"train": rows, "test": 0}}
        assert result.dropped == {"agent": {"given more than once": 2}}


def test_trees_whose_episodes_have_the_same_ids_are_not_mixed(tmp_path: Path, arms: list[Path]) -> None:
    result = export_runs([arms[0], arms[2]], tmp_path / "out", views=["steps_scored"], test_share=0)
    assert result.rows == {"steps_scored": {"train": 2, "test": 0}}
    with pytest.raises(DatasetError, match=f"{arms[0]} and {arms[1]} have the id a/b#0"):
        export_runs(arms, tmp_path / "mixed", views=["steps_scored"])
    assert not (tmp_path / "mixed").exists()
