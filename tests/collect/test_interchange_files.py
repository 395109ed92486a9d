"""Files of other formats: damaged ones, and ATIF as Harbor reads it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from gumshoe.cli import main
from gumshoe.collect.data.atif import to_atif
from gumshoe.collect.data.formats import FORMATS
from gumshoe.errors import DatasetError
from gumshoe.records import Trajectory
from gumshoe.storage import read_jsonl
from support.collect.trajectory_strategies import foreign, own

CALL = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
TOOL = {"function": {"name": "bash", "description": "d", "parameters": {"type": "object"}}}
CHAT = [
    {"role": "user", "content": [{"type": "text", "text": "Mend it."}]},
    {"role": "assistant", "content": "I look.", "reasoning": "r", "tool_calls": [CALL], "extra": {"response": {}}},
    {"role": "tool", "content": "x.py", "tool_call_id": "c1", "tool_call_ids": ["c1"]},
]
SPENT = {"tokens_sent": 1, "tokens_received": 1, "instance_cost": 0.5}
INFO = {"submission": "diff ", "model_stats": SPENT, "config": {"model": {"model_name": "m"}}}
STEPS = [
    {"source": "user", "message": "Mend it.", "observation": {"results": [{"content": "y"}]}},
    {
        "source": "agent",
        "message": "I look.",
        "tool_calls": [{"tool_call_id": "1", "function_name": "bash", "arguments": {}}],
        "observation": {"results": [{"source_call_id": "1", "content": "z"}]},
        "metrics": {"prompt_tokens": 1, "cost_usd": 0.1, "completion_token_ids": [1]},
    },
]
ATIF = {"schema_version": "ATIF-v1.5", "agent": {"name": "a", "tool_definitions": [TOOL]}, "steps": STEPS}
SOUND: dict[str, tuple[str, Any]] = {
    "atif": ("x.json", {**ATIF, "subagent_trajectories": [ATIF]}),
    "messages": ("x.jsonl", {"id": "m", "messages": json.dumps(CHAT), "tools": [TOOL]}),
    "mini-swe-agent": ("x.traj.json", {"messages": CHAT, "info": INFO}),
    "swe-agent": ("x.traj", {"history": CHAT, "info": INFO}),
}
WRONG = (None, -1, 1.5, "text", [3], {"a": 3}, ["x"], [[]])


def damages(value: Any) -> Iterator[Any]:
    """The value with one part of it, at any depth, removed or replaced by something of another type."""
    yield from WRONG
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        without = copy.copy(value)
        del without[key]
        yield without
        for other in damages(value[key]):
            changed = copy.copy(value)
            changed[key] = other
            yield changed


@pytest.mark.parametrize("kind", SOUND)
def test_damage_is_one_line_that_names_the_file_or_does_no_harm(kind: str, tmp_path: Path) -> None:
    name, sound = SOUND[kind]
    file = tmp_path / name
    refusals: list[str] = []
    for damaged in damages(sound):
        file.write_text(json.dumps(damaged))
        try:
            for trajectory in FORMATS[kind].read(file):
                type(trajectory).model_validate_json(trajectory.model_dump_json(warnings="error"))
        except DatasetError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert [said for said in refusals if str(file) not in said or "\n" in said] == []


@pytest.mark.parametrize(
    ("kind", "name", "data", "said"),
    [
        ("swe-agent", "x.traj", {"history": [CHAT[0], {"role": "assistant", "content": 7}]}, "x: message 1 cannot be"),
        ("swe-agent", "x.traj", {"history": [], "info": {"submission": ["x"]}}, "x: its info cannot be read: patch: "),
        ("mini-swe-agent", "x.traj.json", {"messages": [3], "info": INFO}, "x: message 0 cannot be read"),
        ("mini-swe-agent", "x.traj.json", {"messages": [], "info": {}}, "its info cannot be read: it lacks 'config'"),
        ("atif", "x.json", {**ATIF, "steps": [STEPS[0], {"source": "agent"}]}, "step 2 of this ATIF trajectory"),
        ("messages", "x.jsonl", {"messages": [{"content": "a"}]}, "line 1: x-1: message 0 cannot be read: it lacks"),
    ],
)
def test_convert_says_where_it_is(
    kind: str, name: str, data: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(json.dumps(data))
    assert main(["convert", str(tmp_path / name), "--from", kind, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert f"{tmp_path / name}" in told
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", SOUND)
def test_half_a_character_is_replaced(kind: str, tmp_path: Path) -> None:
    """JSON can spell half of a character, but nothing can store it."""
    name, sound = SOUND[kind]
    text = json.dumps(sound).replace("Mend it.", r"a\ud800b").replace(r"\"ls\"", r"\"\\ud800\"")
    (tmp_path / name).write_text(text)
    assert main(["convert", str(tmp_path / name), "--from", kind, "--out", str(tmp_path / "out")]) == 0
    _, row = next(read_jsonl(tmp_path / "out" / "trajectories.jsonl"))
    assert row["messages"][0]["content"] == "a\ufffdb"


READ = """\
import json, sys
from harbor.models.trajectories import Trajectory
for line in sys.stdin:
    read = Trajectory.model_validate(json.loads(line))
    print(read.schema_version, len(read.steps))
try:
    Trajectory.model_validate({**json.loads(line), "surprise": 1})
except ValueError:
    print("refused")
"""


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Harbor's code alone: its dependencies do not fit ours."""
    folder = tmp_path_factory.mktemp("harbor")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    options = ["--no-deps", "--ignore-requires-python", "--target", str(folder), "harbor==0.25.0"]
    subprocess.run([*pip, *options], check=True, capture_output=True, text=True)
    return folder


def drawn(count: int) -> list[Trajectory]:
    found: list[Trajectory] = []

    @hypothesis.settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @hypothesis.given(one=own() | foreign())
    def draw(one: Trajectory) -> None:
        found.append(one)

    draw()
    return found


def test_harbor_reads_every_trajectory_that_we_write(harbor: Path) -> None:
    written = drawn(60)
    lines = "".join(json.dumps(to_atif(one)) + "\n" for one in written)
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env={"PYTHONPATH": str(harbor)},
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *read, last = done.stdout.splitlines()
    assert read == [f"ATIF-v1.8 {sum(m.role != 'tool' for m in one.messages)}" for one in written]
    assert last == "refused"


def test_lines_of_messages_are_read_whatever_the_file_is_called(tmp_path: Path) -> None:
    file = tmp_path / "chats.ndjson"
    file.write_text("".join(json.dumps({"id": name, "messages": CHAT}) + "\n" for name in "ab"))
    assert [found.task.id for found in FORMATS["messages"].read_all(file)] == ["a", "b"]
