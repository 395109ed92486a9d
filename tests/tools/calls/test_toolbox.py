"""The toolbox, the decorator and the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.errors import ConfigError, ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Edit, Observation, TestRun, ToolCall
from gumshoe.tools import BaseTool, Toolbox, make_tools, tool, tool_names
from gumshoe.tools.base import TEXT_LIMIT
from support.tools.tool_bench import Bench


@tool
def shout(text: str, times: int = 1) -> str:
    """Shout.

    Args:
        text: what
        times: how often
    """
    return text.upper() * times


@tool(name="size", decision=Decision.VERIFY)
def file_size(workspace: Workspace, path: str) -> Observation:
    """Measure a file."""
    size = len(workspace.read_text(path))
    return Observation(tool="size", text=str(size), data={"size": size})


class Recorder(BaseTool):
    """Records its events; raises when configured to."""

    name = "recorder"

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def run(self, workspace: Workspace, how: str) -> str:
        """Break."""
        if how == "bug":
            raise ZeroDivisionError
        if how == "write":
            workspace.write_text("new.txt", "x")
        raise ToolFailure("broken", "told to \ud800")

    def on_reset(self, workspace: Workspace) -> None:
        self.seen.append("reset")

    def on_edit(self, edit: Edit, workspace: Workspace) -> None:
        self.seen.append(f"edit {edit.path}")

    def on_eval(self, run: TestRun, workspace: Workspace) -> None:
        self.seen.append(f"eval {run.passed}")

    def close(self) -> None:
        self.seen.append("close")


class Loose:
    """A module attribute that is no tool."""


def call(name: str, parse_error: str | None = None, **arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=dict(arguments), parse_error=parse_error)  # type: ignore[arg-type]


def test_functions_become_tools(bench: Bench) -> None:
    box = Toolbox([shout, file_size])
    assert [schema.name for schema in box.schemas] == ["shout", "size"]
    assert box.dispatch(call("shout", text="a", times=2), bench.workspace).text == "AA"
    observation = box.dispatch(call("size", path="cart.py"), bench.workspace)
    assert observation.data["size"] == int(observation.text)
    assert observation.duration_s > 0
    assert file_size.decision is Decision.VERIFY


def test_failures_are_told_and_bugs_are_not_caught(bench: Bench) -> None:
    box = Toolbox([shout, Recorder()])
    wrong = box.dispatch(call("shuot"), bench.workspace)
    assert wrong.text == "error: no tool 'shuot'. Did you mean 'shout'? Tools: shout, recorder"
    assert wrong.failure is not None
    assert wrong.failure.kind == "unknown_tool"
    unreadable = box.dispatch(call("shout", parse_error="no closing brace"), bench.workspace)
    assert unreadable.text == "error: the call could not be read: no closing brace"
    failed = box.dispatch(call("recorder", how="fail"), bench.workspace)
    assert failed.model_dump_json()
    assert failed.failure is not None
    assert failed.failure.kind == "broken"
    with pytest.raises(ZeroDivisionError):
        box.dispatch(call("recorder", how="bug"), bench.workspace)


def test_every_tool_hears_of_edits_runs_and_resets(bench: Bench) -> None:
    recorder = Recorder()
    box = Toolbox([recorder, *make_tools(["rewrite", "eval"])])
    box.on_reset(bench.workspace)
    box.dispatch(call("rewrite", path="x.txt", code="1\n"), bench.workspace)
    box.dispatch(call("recorder", how="write"), bench.workspace)
    box.dispatch(call("eval"), bench.workspace)
    box.close()
    assert recorder.seen == ["reset", "edit x.txt", "edit new.txt", "eval False", "close"]


def test_long_texts_lose_their_middle(bench: Bench) -> None:
    box = Toolbox([shout])
    observation = box.dispatch(call("shout", text="a" * (TEXT_LIMIT + 200) + "end"), bench.workspace)
    assert observation.truncated
    assert "[... 203 characters cut ...]" in observation.text
    assert observation.text.endswith("END")
    assert not box.dispatch(call("shout", text="a"), bench.workspace).truncated


def test_lone_surrogates_never_reach_a_record(bench: Bench) -> None:
    box = Toolbox([shout, *make_tools(["view"])])
    assert box.dispatch(call("shout", text="\udcff"), bench.workspace).model_dump_json()
    assert box.dispatch(call("view", path="\udcff"), bench.workspace).failure is not None


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="'shout' is listed twice"):
        Toolbox([shout, shout])
    with pytest.raises(ConfigError, match="'view' is listed twice"):
        make_tools(["view", "view"])


def test_tools_by_dotted_path() -> None:
    names = [made.name for made in make_tools([f"{__name__}.shout", f"{__name__}:file_size", f"{__name__}:Recorder"])]
    assert names == ["shout", "size", "recorder"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("veiw", "unknown tool 'veiw'; did you mean 'view'?"),
        ("no_such_module.tool", "cannot be imported: No module named 'no_such_module'"),
        (f"{__name__}:nothing", "cannot be imported"),
        (f"{__name__}:Loose", "is not a tool"),
    ],
)
def test_names_that_are_no_tools(name: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_tools([name])
    assert said in str(caught.value)


def test_tools_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shouting.py").write_text(
        "from gumshoe.tools import tool\n@tool\ndef whisper(text: str) -> str:\n    '''Whisper.'''\n    return text\n"
    )
    info = tmp_path / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[gumshoe.tools]\nwhisper = shouting:whisper\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "whisper" in tool_names()
    assert make_tools(["whisper"])[0].description == "Whisper."
