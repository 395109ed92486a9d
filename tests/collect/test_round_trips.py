"""What is written in another format is read back as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sandbox_backends import LOCAL_SETTINGS  # pyright: ignore[reportMissingImports]
from trajectory_strategies import foreign, own

from gumshoe.cli import main
from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import CollectConfig
from gumshoe.collect.interchange.files import FORMATS
from gumshoe.collect.store import read_trajectories
from gumshoe.records import Trajectory

Make = Callable[..., CollectConfig]
WRITTEN = sorted(name for name, kind in FORMATS.items() if kind.write is not None)


Convert = Callable[..., tuple[int, str]]


@pytest.fixture
def convert(capfd: pytest.CaptureFixture[str]) -> Convert:
    """Runs the command; gives its exit code and what it complains of."""

    def convert(*words: object) -> tuple[int, str]:
        code = main(["convert", *map(str, words)])
        return code, capfd.readouterr().err

    return convert


@pytest.mark.parametrize("name", WRITTEN)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(one=st.one_of(own(), foreign()))
def test_every_trajectory_comes_back_from_every_format_that_is_written(
    name: str, one: Trajectory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(name)
    kind = FORMATS[name]
    assert kind.write is not None
    assert kind.write([one], folder) == 1
    assert list(kind.read_all(folder)) == [one]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two real episodes."""
    from small_tasks import make_taskset

    from gumshoe.config import validate

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


@pytest.mark.parametrize(
    ("name", "written"), [("atif", "a"), ("atif", "a.jsonl"), ("session", "s"), ("otel", "o"), ("otel", "o.jsonl")]
)
def test_files_and_folders_go_there_and_back(
    name: str, written: str, run: Path, tmp_path: Path, convert: Convert
) -> None:
    there = convert(run / "trajectories.jsonl", "--to", name, "--out", tmp_path / written)
    assert there == (0, "")
    assert (tmp_path / written).is_file() == ("." in written)
    back = convert(tmp_path / written, "--from", name, "--out", tmp_path / "back")
    assert back == (0, "")
    assert by_id(tmp_path / "back") == by_id(run)


def test_one_file_holds_one_trajectory_where_the_format_says_so(run: Path, tmp_path: Path, convert: Convert) -> None:
    (first, *_) = (run / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    (tmp_path / "one.jsonl").write_text(first + "\n", encoding="utf-8")
    for name, ending in (("atif", ".json"), ("session", ".jsonl")):
        out = tmp_path / f"{name}{ending}"
        assert convert(tmp_path / "one.jsonl", "--to", name, "--out", out) == (0, "")
        assert len(list(FORMATS[name].read_all(out))) == 1
        code, said = convert(run, "--to", name, "--out", tmp_path / f"two{ending}")
        assert (code, said.count("\n")) == (2, 1)
        assert "give a folder" in said
    code, said = convert(run, "--to", "session", "--out", tmp_path / "x.json")
    assert (code, "cannot be written to a .json file" in said) == (2, True)
    assert not (tmp_path / "x.json").exists()


def test_other_files_of_a_folder_are_passed_over_and_none_at_all_is_told(
    run: Path, tmp_path: Path, convert: Convert
) -> None:
    assert convert(run, "--to", "atif", "--out", tmp_path / "job" / "trial" / "agent") == (0, "")
    (tmp_path / "job" / "result.json").write_text('{"reward": 1}', encoding="utf-8")
    assert {one.id: one for one in FORMATS["atif"].read_all(tmp_path / "job")} == by_id(run)
    (tmp_path / "empty").mkdir()
    code, said = convert(tmp_path / "empty", "--from", "session", "--out", tmp_path / "out")
    assert (code, "holds no .jsonl files" in said) == (2, True)


SESSION: list[dict[str, Any]] = [
    {"type": "session", "harness": "llama.app", "id": "b1", "name": "Sums"},
    {"type": "message", "message": {"role": "user", "content": "Add."}},
    {
        "type": "message",
        "message": {
            "role": "assistant",
            "content": "",
            "reasoningContent": "hm",
            "toolCalls": [{"id": "1", "function": {"name": "add", "arguments": '{"a": 1}'}}],
        },
    },
    {"type": "message", "message": {"role": "tool", "content": "2", "toolCallId": "1"}},
]


def test_a_session_of_another_harness_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in SESSION), encoding="utf-8")
    (one,) = FORMATS["session"].read_all(tmp_path)
    assert (one.task.id, one.task.source) == ("b1", "session")
    assert [message.content for message in one.messages] == ["Add.", "", "2"]
    assert (one.steps[0].tool_calls[0].arguments, one.steps[0].completion.reasoning) == ({"a": 1}, "hm")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        SESSION[1:],
        [SESSION[0], {"type": "message", "message": {"role": "nobody", "content": ""}}],
        [SESSION[0], {"type": "message", "message": {"role": "user"}}],
        [{**SESSION[0], "gumshoe": {}}],
        [SESSION[0], {"type": "message", "message": {**SESSION[2]["message"], "toolCalls": [{"id": "1"}]}}],
    ],
)
def test_what_is_no_session_is_one_line(lines: list[Any], tmp_path: Path, convert: Convert) -> None:
    (tmp_path / "s.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    code, said = convert(tmp_path / "s.jsonl", "--from", "session", "--out", tmp_path / "out")
    assert (code, said.count("\n"), "session" in said) == (2, 1, True)
