"""What is written as ATIF is read back as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gumshoe.cli import main
from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.formats import FORMATS, write_atif
from gumshoe.collect.data.store import read_trajectories
from gumshoe.records import Trajectory
from support.collect.trajectory_strategies import foreign, own
from support.sandboxes.sandbox_backends import LOCAL_SETTINGS

Make = Callable[..., CollectConfig]
Convert = Callable[..., tuple[int, str]]


@pytest.fixture
def convert(capfd: pytest.CaptureFixture[str]) -> Convert:
    """Runs the command; gives its exit code and what it complains of."""

    def convert(*words: object) -> tuple[int, str]:
        code = main(["convert", *map(str, words)])
        return code, capfd.readouterr().err

    return convert


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(one=st.one_of(own(), foreign()))
def test_every_trajectory_comes_back(one: Trajectory, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("atif")
    assert write_atif([one], folder) == 1
    assert list(FORMATS["atif"].read_all(folder)) == [one]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two real episodes."""
    from gumshoe.config import validate
    from support.shop_tasks import make_taskset

    folder = tmp_path_factory.mktemp("run")
    made = {
        "out": str(folder / "run"),
        "tasks": {"source": str(make_taskset(folder / "tasks", 2))},
        "policy": {"kind": "teacher", "explore": 0.0},
        "sandbox": LOCAL_SETTINGS,
    }
    collect(validate(CollectConfig, made, origin="test"))
    return folder / "run"


def by_id(folder: Path) -> dict[str, Trajectory]:
    return {one.id: one for one in read_trajectories(folder)}


@pytest.mark.parametrize("written", ["a", "a.jsonl"])
def test_files_and_folders_go_there_and_back(written: str, run: Path, tmp_path: Path, convert: Convert) -> None:
    there = convert(run / "trajectories.jsonl", "--to", "atif", "--out", tmp_path / written)
    assert there == (0, "")
    assert (tmp_path / written).is_file() == ("." in written)
    back = convert(tmp_path / written, "--from", "atif", "--out", tmp_path / "back")
    assert back == (0, "")
    assert by_id(tmp_path / "back") == by_id(run)


def test_a_json_file_holds_one_trajectory(run: Path, tmp_path: Path, convert: Convert) -> None:
    (first, *_) = (run / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "one.jsonl").write_text(first + "\n", encoding="utf-8")
    out = tmp_path / "out.json"
    assert convert(tmp_path / "one.jsonl", "--to", "atif", "--out", out) == (0, "")
    assert len(list(FORMATS["atif"].read_all(out))) == 1
    code, said = convert(run, "--to", "atif", "--out", tmp_path / "two.json")
    assert (code, said.count("\n")) == (2, 1)
    assert "give a folder" in said
    assert not (tmp_path / "two.json").exists()


def test_other_files_of_a_folder_are_passed_over_and_none_at_all_is_told(
    run: Path, tmp_path: Path, convert: Convert
) -> None:
    assert convert(run, "--to", "atif", "--out", tmp_path / "job" / "trial" / "agent") == (0, "")
    (tmp_path / "job" / "result.json").write_text('{"reward": 1}', encoding="utf-8")
    assert {one.id: one for one in FORMATS["atif"].read_all(tmp_path / "job")} == by_id(run)
    (tmp_path / "empty").mkdir()
    code, said = convert(tmp_path / "empty", "--from", "messages", "--out", tmp_path / "out")
    assert (code, "holds no .jsonl files" in said) == (2, True)
