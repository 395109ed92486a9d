"""The toolbox, the decorator, the registry; a typed function as a model reads it, and its arguments on the way back."""

from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, JsonValue

from gumshoe.errors import ConfigError, ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Decision, Edit, Observation, TestRun, ToolCall
from gumshoe.tools import BaseTool, Toolbox, make_tools, tool, tool_names
from gumshoe.tools.base import TEXT_LIMIT
from gumshoe.tools.calls.schema import read_signature
from support.folder_tasks import write_files
from support.tools.tool_bench import Bench


@tool
def shout(text: str, times: int = 1) -> str:
    """Shout."""
    return text.upper() * times


@tool(name="size", decision=Decision.VERIFY)
def file_size(workspace: Workspace, path: str) -> Observation:
    """Measure a file."""
    size = len(workspace.read_text(path))
    return Observation(tool="size", text=str(size), data={"size": size})


class Recorder(BaseTool):
    """Records its events; writes or raises when told to."""

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


def call(name: str, parse_error: str | None = None, **arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=dict(arguments), parse_error=parse_error)  # type: ignore[arg-type]


def test_functions_become_tools(bench: Bench) -> None:
    box = Toolbox([shout, file_size])
    assert [(schema.name, schema.decision) for schema in box.schemas] == [("shout", "seek"), ("size", "verify")]
    assert box.dispatch(call("shout", text="a", times=2), bench.workspace).text == "AA"
    observation = box.dispatch(call("size", path="cart.py"), bench.workspace)
    assert (observation.data["size"], observation.duration_s > 0) == (int(observation.text), True)


def test_failures_are_told_and_bugs_are_not_caught(bench: Bench) -> None:
    box = Toolbox([shout, Recorder(), *make_tools(["view"])])
    for wrong, kind, said in (
        (call("shuot"), "unknown_tool", "no tool 'shuot'. Did you mean 'shout'? Tools: shout, recorder, view"),
        (call("shout", parse_error="no brace"), "unreadable_call", "the call could not be read: no brace"),
        (call("recorder", how="fail"), "broken", "told to \ufffd"),
        (call("view", path="\udcff"), "no_such_file", ""),
    ):
        told = box.dispatch(wrong, bench.workspace)
        assert told.text.startswith(f"error: {said}")
        assert (told.failure and told.failure.kind) == kind
        assert told.model_dump_json()
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


def test_long_texts_lose_their_middle_and_lone_surrogates_never_reach_a_record(bench: Bench) -> None:
    box = Toolbox([shout])
    long = box.dispatch(call("shout", text="a" * (TEXT_LIMIT + 200) + "end"), bench.workspace)
    assert "[... 203 characters cut ...]" in long.text
    assert long.text.endswith("END")
    short = box.dispatch(call("shout", text="\udcff"), bench.workspace)
    assert (long.truncated, short.truncated) == (True, False)
    assert short.model_dump_json()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["veiw"], "unknown tool 'veiw'; did you mean 'view'?"),
        (["no_such_module.tool"], "cannot be imported: No module named 'no_such_module'"),
        ([f"{__name__}:nothing"], "cannot be imported"),
        ([f"{__name__}:TEXT_LIMIT"], "is not a tool"),
        (["view", "view"], "'view' is listed twice"),
    ],
)
def test_names_that_are_no_tools(names: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_tools(names)
    assert said in str(caught.value)


def test_tools_of_installed_packages_and_by_dotted_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = "shouting-1.dist-info"
    files = {
        "shouting.py": "from gumshoe.tools import tool\n@tool\ndef whisper(text: str) -> str:\n    'Whisper.'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: shouting\nVersion: 1\n",
        f"{info}/entry_points.txt": "[gumshoe.tools]\nwhisper = shouting:whisper\n",
    }
    monkeypatch.syspath_prepend(str(write_files(tmp_path, files)))
    assert "whisper" in tool_names()
    paths = (f"{__name__}.shout", f"{__name__}:file_size", f"{__name__}:Recorder")
    assert [made.name for made in make_tools(["whisper", *paths])] == ["whisper", "shout", "size", "recorder"]


class Point(BaseModel):
    """A place."""

    x: int
    label: str | None = None


class Tree(BaseModel):
    """A type that contains itself."""

    children: "list[Tree]" = []


def sample(
    path: str,
    count: int = 3,
    mode: Literal["a", "b"] = "a",
    points: list[Point] | None = None,
    either: int | str | None = None,
) -> str:
    """Do a thing.

    With more words.

    Args:
        path: where,
            over two lines
        count: how often
    """
    return f"{path}{count}{mode}{points}{either}"


SIGNATURE = read_signature(sample, "sample")


def test_schema_is_compact_and_described() -> None:
    assert SIGNATURE.description == "Do a thing. With more words."
    assert SIGNATURE.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where, over two lines"},
            "count": {"type": "integer", "description": "how often", "default": 3},
            "mode": {"enum": ["a", "b"], "type": "string", "default": "a"},
            "points": {
                "type": "array",
                "items": {
                    "type": "object",
                    "description": "A place.",
                    "properties": {"x": {"type": "integer"}, "label": {"type": "string"}},
                    "required": ["x"],
                },
            },
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        },
        "required": ["path"],
    }


def test_arguments_are_converted_and_null_and_empty_mean_the_default() -> None:
    left_out = {"count": None, "mode": "", "points": [], "unknown": None}
    assert SIGNATURE.bind({"path": '["p"]', **left_out}) == {"path": '["p"]'}
    for points in ([{"x": 1}], '[{"x": 1}]', ['{"x": 1}'], '["{\\"x\\": 1}"]'):
        given: dict[str, Any] = {"path": "p", "count": "7", "points": points}
        assert SIGNATURE.bind(given) == {"path": "p", "count": 7, "points": [Point(x=1)]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "argument 'path' is missing"),
        ({"path": None}, "argument 'path' is missing"),
        ({"path": 3}, "argument 'path': input should be a valid string"),
        ({"path": "p", "count": "x"}, "argument 'count': input should be a valid integer"),
        ({"path": "p", "points": [{"x": "?"}]}, "argument 'points[0].x': input should be a valid integer"),
        ({"path": "p", "mode": "c"}, "argument 'mode': input should be 'a' or 'b'"),
        ({"path": "p", "file": "x"}, "unknown argument 'file'"),
    ],
)
def test_wrong_arguments_show_the_right_call(arguments: dict[str, JsonValue], said: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        SIGNATURE.bind(arguments)
    usage = "Usage: sample(path: string, count?: integer, mode?: string, points?: array, either?: any)"
    assert caught.value.kind == "bad_arguments"
    assert caught.value.message.startswith(said)
    assert caught.value.message.endswith(usage)


def test_functions_that_cannot_be_tools_are_refused() -> None:
    def untyped(path) -> None:  # type: ignore[no-untyped-def]
        """Says."""

    def variadic(*paths: str) -> None:
        """Says."""

    def recursive(tree: Tree) -> None:
        """Says."""

    def silent(path: str) -> None: ...

    reasons = ("parameter 'path' needs a type", "cannot be given by name", "contains itself", "it needs a docstring")
    for function, why in zip((untyped, variadic, recursive, silent), reasons, strict=True):
        with pytest.raises(TypeError, match=why):
            read_signature(function, "one")


def test_built_in_schemas_are_small() -> None:
    for made in make_tools(tool_names()):
        text = str({"description": made.description, "parameters": made.parameters})
        assert "$ref" not in text
        assert "title" not in text
        assert len(text) < 1400, made.name
