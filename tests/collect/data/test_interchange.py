"""Trajectories in other formats, read and written: ATIF, plain messages, SWE-agent and mini-swe-agent."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumshoe.cli import main
from gumshoe.collect.data.export.rows import agent_decision_rows, agent_row
from gumshoe.collect.data.formats import FORMATS, all_from_atif, from_atif, to_atif, write_atif
from gumshoe.collect.data.messages import from_messages, from_mini_swe_agent, from_swe_agent
from gumshoe.collect.data.store import read_trajectories
from gumshoe.errors import DatasetError
from gumshoe.records import Decision, StopReason, Trajectory
from gumshoe.storage import read_jsonl
from support.collect.small_trajectories import episode, write_run
from support.collect.trajectory_strategies import foreign, own

CALL = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
TOOL = {"function": {"name": "bash", "description": "d", "parameters": {"type": "object"}}}
USED = {"response": {"usage": {"prompt_tokens": 7, "completion_tokens": 3}}}
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Mend it."}]},
    {"role": "assistant", "content": "I look.", "reasoning": "r", "tool_calls": [CALL], "extra": USED},
    {"role": "tool", "content": "x.py", "tool_call_id": "c1", "tool_call_ids": ["c1"]},
]
INFO = {
    "submission": "diff --git a/x b/x\n",
    "exit_status": "submitted",
    "model_stats": {"tokens_sent": 100, "tokens_received": 7, "instance_cost": 0.5},
    "config": {"model": {"model_name": "openai/m"}},
}
FOREIGN: dict[str, Any] = {
    "schema_version": "ATIF-v1.6",
    "session_id": "s-1",
    "agent": {"name": "other", "version": "2", "model_name": "m", "tool_definitions": [TOOL]},
    "steps": [
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "Mend it."}, {"type": "image"}]},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Looking.",
            "tool_calls": [
                {"tool_call_id": "1", "function_name": "bash", "arguments": {"command": "ls"}},
                {"tool_call_id": "2", "function_name": "bash", "arguments": {}},
            ],
            "observation": {"results": [{"content": "a.py"}, {"source_call_id": "2", "content": "b.py"}]},
            "metrics": {"prompt_tokens": 9, "completion_tokens": None, "cost_usd": 0.1, "completion_token_ids": [1]},
        },
    ],
}


def test_a_foreign_atif_trajectory_is_read() -> None:
    found = from_atif(FOREIGN)
    assert [message.content for message in found.messages] == ["Mend it.", "Looking.", "a.py", "b.py"]
    assert [seen.text for seen in found.steps[0].observations] == ["a.py", "b.py"]
    assert (found.policy.model, found.policy.agent, found.usage.prompt_tokens) == ("m", "other", 9)
    assert (found.stop, found.resolved, found.task.id) == (StopReason.UNKNOWN, None, "s-1")
    assert from_atif(json.loads(json.dumps(to_atif(found)))) == found
    for minor in range(9):
        assert from_atif({**FOREIGN, "schema_version": f"ATIF-v1.{minor}"}) == found


def test_what_another_model_wrote_earlier_is_shown_and_is_no_step() -> None:
    """Steps that were copied from an earlier trajectory, or that no model was asked for (ATIF 1.5 and 1.7)."""
    steps = [
        {"step_id": 1, "source": "system", "message": "S", "observation": {"results": [{"content": "memory"}]}},
        {**FOREIGN["steps"][1], "is_copied_context": True},
        {"step_id": 3, "source": "agent", "message": "dispatch", "llm_call_count": 0},
        {"step_id": 4, "source": "agent", "message": "done", "observation": {"results": [{"content": "event"}]}},
    ]
    found = from_atif({**FOREIGN, "schema_version": "ATIF-v1.8", "steps": steps})
    assert [step.completion.text for step in found.steps] == ["done"]
    assert [(message.role, message.content) for message in found.messages] == [
        *(("system", "S"), ("user", "memory"), ("assistant", "Looking."), ("tool", "a.py"), ("tool", "b.py")),
        *(("assistant", "dispatch"), ("assistant", "done"), ("user", "event")),
    ]
    assert found.messages[found.steps[0].message_index].content == "done"
    weights = [message.get("weight") for message in agent_row(found)["messages"]]
    assert weights == [None, None, 0, None, None, 0, None, None]
    (decision,) = agent_decision_rows(found)
    assert (decision["step"], decision["completion"]) == (0, [{"role": "assistant", "content": "done"}])
    before = ["S", "memory", "Looking.", "a.py", "b.py", "dispatch"]
    assert [message["content"] for message in decision["prompt"]] == before


def test_embedded_subagents_are_trajectories_of_their_own() -> None:
    assert [one.task.id for one in all_from_atif(SOUND["atif"][1])] == ["s-1", "sub"]


def test_plain_messages_are_read() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "view", "arguments": '{"path": "a"}'}}
    found = from_messages(
        [
            {"role": "developer", "content": "S"},
            {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "hm"},
            {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "x"}]},
            {"role": "assistant", "content": '[seek 0.5] y <tool_call>{"name": "eval", "arguments": {}}</tool_call>'},
        ],
        [{"name": "view"}],
        name="chat",
    )
    assert [step.tool_calls[0].name for step in found.steps] == ["view", "eval"]
    assert found.steps[0].tool_calls[0].arguments == {"path": "a"}
    assert found.steps[0].observations[0].text == "x"
    assert (found.steps[1].stated, found.steps[1].confidence) == (Decision.SEEK, 0.5)
    assert found.messages[0].role == "user"
    assert found.tools[0].name == "view"
    for broken in ([{"content": "x"}], [{"role": "assistant", "tool_calls": [{}]}], [3]):
        with pytest.raises(DatasetError):
            from_messages(broken, name="x")  # pyright: ignore[reportArgumentType]


def test_a_swe_agent_file_is_read() -> None:
    *said, answer = CHAT
    named = {name: value for name, value in answer.items() if name != "tool_call_id"}
    data = {"history": [*said, named], "info": INFO}
    found = from_swe_agent(data, name="x")
    assert found.patch.startswith("diff --git")
    assert (found.task.id, found.stop) == ("x", StopReason.SUBMITTED)
    stops = {"submitted (exit_cost)": "cost_limit", "exit_context": "context_overflow", None: "unknown"}
    for status, stop in stops.items():
        assert from_swe_agent({**data, "info": {"exit_status": status}}, name="x").stop == stop
    assert (found.usage.prompt_tokens, found.usage.cost_usd) == (100, 0.5)
    assert found.steps[0].observations[0].text == "x.py"
    assert [message.role for message in found.messages] == ["user", "assistant", "tool"]
    with pytest.raises(DatasetError, match="no history"):
        from_swe_agent({}, name="x")


def test_a_file_of_mini_swe_agent_is_read() -> None:
    end = {"role": "exit", "content": "done", "extra": {}}
    info = {**INFO, "exit_status": "Submitted"}
    found = from_mini_swe_agent({"info": info, "messages": [*CHAT, end]}, name="x")
    assert [message.role for message in found.messages] == ["user", "assistant", "tool"]
    assert found.steps[0].tool_calls[0].arguments == {"command": "ls"}
    assert found.steps[0].observations[0].text == "x.py"
    assert (found.patch, found.stop, found.policy.model) == ("diff --git a/x b/x\n", "submitted", "openai/m")
    assert (found.usage.prompt_tokens, found.usage.completion_tokens, found.usage.cost_usd) == (7, 3, 0.5)
    with pytest.raises(DatasetError, match="not a file of mini-swe-agent"):
        from_mini_swe_agent({"messages": []}, name="x")


def test_answers_go_to_their_calls_however_they_name_them() -> None:
    def said(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"role": "assistant", "content": "", **({"tool_calls": list(calls)} if calls else {}), **more}

    def call(name: str, **more: Any) -> dict[str, Any]:
        return {"function": {"name": name, "arguments": "{}"}, **more}

    found = from_messages(
        [
            said(call("a", id="1"), call("b", id="2")),
            {"role": "tool", "tool_call_id": "2", "content": "B"},
            {"role": "tool", "tool_call_id": "1", "content": "A"},
            said(call("c", id="1"), call("d")),
            *({"role": "tool", "content": text} for text in "CD"),
            said(function_call={"name": "e", "arguments": "{}"}),
            {"role": "function", "name": "e", "content": "E"},
            {"role": "tool", "content": "nobody asked"},
        ],
        name="t",
    )
    assert [[(seen.tool, seen.text) for seen in step.observations] for step in found.steps] == [
        [("a", "A"), ("b", "B")],
        [("c", "C"), ("d", "D")],
        [("e", "E")],
    ]
    assert (found.messages[-1].role, found.messages[-1].content) == ("user", "nobody asked")
    with pytest.raises(DatasetError, match="no call with the id 9"):
        from_messages([said(call("a", id="1")), {"role": "tool", "tool_call_id": "9", "content": "x"}], name="t")


SOUND: dict[str, tuple[str, Any]] = {
    "atif": ("x.json", {**FOREIGN, "subagent_trajectories": [{**FOREIGN, "trajectory_id": "sub"}]}),
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
        ("atif", "x.json", {**FOREIGN, "steps": [{"source": "agent"}]}, "step 1 of this ATIF trajectory"),
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


def test_harbor_reads_every_trajectory_that_we_write(harbor: Path) -> None:
    written: list[Trajectory] = []

    @settings(max_examples=60, database=None)
    @given(one=own() | foreign())
    def draw(one: Trajectory) -> None:
        written.append(one)

    draw()
    lines = "".join(json.dumps(to_atif(one)) + "\n" for one in written)
    argv = [sys.executable, "-c", READ]
    environ = {"PYTHONPATH": str(harbor)}
    done = subprocess.run(argv, env=environ, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *read, last = done.stdout.splitlines()
    assert read == [f"ATIF-v1.8 {sum(m.role != 'tool' for m in one.messages)}" for one in written]
    assert last == "refused"


Run = Callable[..., subprocess.CompletedProcess[str]]


@settings(max_examples=25)
@given(one=st.one_of(own(), foreign()))
def test_every_trajectory_comes_back(one: Trajectory, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("atif")
    assert write_atif([one], folder) == 1
    assert list(FORMATS["atif"].read_all(folder)) == [one]


@pytest.fixture
def arms(tmp_path: Path) -> list[Path]:
    """Two runs and a copy of the first. The ids in both are the same."""
    first = [episode("a/b#0", "p"), episode("c", "p")]
    second = [one.model_copy(update={"patch": "another\n"}) for one in first]
    return [write_run(tmp_path / name, *kept) for name, kept in (("x", first), ("y", second), ("z", first))]


@pytest.mark.parametrize("written", ["a", "a.jsonl"])
def test_files_and_folders_go_there_and_back_without_copies(
    written: str, arms: list[Path], tmp_path: Path, run_here: Run
) -> None:
    there = run_here("convert", *map(str, arms), "--to", "atif", "--out", written)
    assert f"{written}: 4 trajectories; left out: 2 given more than once" in there.stdout
    assert (tmp_path / written).is_file() == ("." in written)
    assert run_here("convert", written, "--from", "atif", "--out", "back").returncode == 0
    stored = [one for arm in arms[:2] for one in read_trajectories(arm)]
    assert sorted(read_trajectories(tmp_path / "back"), key=str) == sorted(stored, key=str)


def test_a_json_file_holds_one_trajectory(arms: list[Path], tmp_path: Path, run_here: Run) -> None:
    one = write_run(tmp_path / "one", episode("a", "p")) / "trajectories.jsonl"
    assert run_here("convert", str(one), "--to", "atif", "--out", "out.json").returncode == 0
    assert len(list(FORMATS["atif"].read_all(tmp_path / "out.json"))) == 1
    refused = run_here("convert", str(arms[0]), "--to", "atif", "--out", "two.json")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "give a folder" in refused.stderr
    assert not (tmp_path / "two.json").exists()


def test_other_files_of_a_folder_are_passed_over_and_none_at_all_is_told(
    arms: list[Path], tmp_path: Path, run_here: Run
) -> None:
    assert run_here("convert", str(arms[0]), "--to", "atif", "--out", "job/trial/agent").returncode == 0
    (tmp_path / "job" / "result.json").write_text('{"reward": 1}', encoding="utf-8")
    found = {one.id: one for one in FORMATS["atif"].read_all(tmp_path / "job")}
    assert found == {one.id: one for one in read_trajectories(arms[0])}
    (tmp_path / "empty").mkdir()
    refused = run_here("convert", "empty", "--from", "messages", "--out", "out")
    assert (refused.returncode, "holds no .jsonl files" in refused.stderr) == (2, True)


def test_lines_of_messages_are_read_whatever_the_file_is_called(tmp_path: Path) -> None:
    file = tmp_path / "chats.ndjson"
    file.write_text("".join(json.dumps({"id": name, "messages": CHAT}) + "\n" for name in "ab"))
    assert [found.task.id for found in FORMATS["messages"].read_all(file)] == ["a", "b"]
