"""Whatever stands in a run folder's files, reading them ends with records or with one clear error."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumshoe.collect.config import CollectConfig, TasksConfig, TeacherConfig
from gumshoe.collect.data.journal import Journal
from gumshoe.collect.data.store import RunFolder, read_failures, read_state, read_trajectories
from gumshoe.errors import GumshoeError
from gumshoe.records import Completion
from support.collect.small_trajectories import trajectory

TRAJECTORY = trajectory("a#0.1").model_dump_json()
FAILURE = json.dumps({"id": "a#0.1", "kind": "SandboxError", "message": "it broke", "at": "2026-01-01T00:00:00Z"})
IDENTITY = {"id": "a#0.1", "seed": 1}
JOURNAL = "\n".join(
    [
        json.dumps({"episode": IDENTITY}),
        json.dumps({"completion": Completion(text="x").model_dump(mode="json")}),
        json.dumps({"observations": ["y"]}),
        "",
    ]
)

DEEP = ["[" * 20_000, '{"a":' * 20_000, '{"id": ' + "[" * 5000 + "]" * 5000 + "}"]
LINES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([text.encode() for text in (*DEEP, "null", "5", "[]", "{}", '"x"', "1" * 5000, "NaN", "\ud7ff")]),
    st.sampled_from([b"\x00" * 50, b"\xff\xfe", b'{"id": 5, "kind": null}', b'{"episode": {}}', b'{"completion": 5}']),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
)


@st.composite
def damaged(draw: st.DrawFn, sound: str) -> bytes:
    """Sound lines with junk lines among them, cut off or with bytes changed."""
    lines = [line.encode() for line in sound.splitlines()]
    for _ in range(draw(st.integers(1, 3))):
        action = draw(st.sampled_from(["insert", "flip", "cut", "field"]))
        place = draw(st.integers(0, len(lines) - 1))
        if action == "insert":
            lines.insert(place, draw(LINES))
        elif action == "cut":
            lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
        elif action == "flip" and lines[place]:
            at = draw(st.integers(0, len(lines[place]) - 1))
            lines[place] = lines[place][:at] + draw(st.binary(min_size=1, max_size=3)) + lines[place][at + 1 :]
        else:
            lines[place] = _with_field(lines[place], draw)
    return b"\n".join(lines) + draw(st.sampled_from([b"\n", b""]))


def _with_field(line: bytes, draw: st.DrawFn) -> bytes:
    """The line with one of its fields replaced by junk."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(value, dict) or not value:
        return line
    value[draw(st.sampled_from(sorted(value)))] = draw(st.none() | st.integers() | st.text(max_size=3) | st.just([]))
    return json.dumps(value).encode()


def config_of(folder: Path) -> CollectConfig:
    return CollectConfig(out=str(folder), tasks=TasksConfig(source="casebook"), policy=TeacherConfig())


def in_folder(files: dict[str, bytes], act: Callable[[Path], Any]) -> None:
    """Does something with a run folder that holds these files. Only our own errors may come out, in one line."""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "journal").mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        try:
            act(folder)
            problem = ""
        except GumshoeError as error:
            problem = str(error)
        assert "\n" not in problem
    finally:
        shutil.rmtree(folder)


def resume(folder: Path) -> None:
    with RunFolder(folder, config_of(folder)) as run:
        run.plan(1)


@pytest.mark.parametrize("name", ["trajectories.jsonl", "failures.jsonl"])
@settings(max_examples=100)
@given(data=st.data())
def test_damaged_lines(name: str, data: st.DataObject) -> None:
    sound = TRAJECTORY if name.startswith("traj") else FAILURE
    content = data.draw(damaged("\n".join([sound] * 3)))
    in_folder({name: content}, resume)
    in_folder({name: content}, lambda folder: [*_or_none(read_trajectories, folder), *read_failures(folder)])


def _or_none(read: Callable[[Path], Any], folder: Path) -> list[Any]:
    return list(read(folder)) if (folder / "trajectories.jsonl").exists() else []


@settings(max_examples=100)
@given(content=damaged(JOURNAL))
def test_a_damaged_journal(content: bytes) -> None:
    def replay(folder: Path) -> None:
        path = folder / "journal" / "one.jsonl"
        path.write_bytes(content)
        with Journal(path, IDENTITY) as journal:
            while (completion := journal.recorded()) is not None:
                assert isinstance(completion, Completion)
                journal.observe([])

    in_folder({}, lambda folder: _replayed(replay, folder))


def _replayed(replay: Callable[[Path], None], folder: Path) -> None:
    from gumshoe.collect.data.journal import Diverged

    try:
        replay(folder)
    except Diverged:
        return


@pytest.mark.parametrize("name", ["config.yaml", "state.json"])
@settings(max_examples=20)
@given(content=LINES | st.binary(max_size=200) | st.sampled_from([b"a: &x [*x]", b"? [a]\n: b", b"{a: b: c}"]))
def test_a_damaged_config_or_state(name: str, content: bytes) -> None:
    in_folder({name: content}, resume)
    in_folder({name: content}, read_state)
