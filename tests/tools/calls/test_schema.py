"""From a typed function to what a model reads, and from its arguments back."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.tools import make_tools, tool_names
from gumshoe.tools.calls.schema import read_signature


class Point(BaseModel):
    """A place."""

    x: int
    label: str | None = None


class Tree(BaseModel):
    """A type that contains itself."""

    children: list[Tree] = []


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


def test_null_and_empty_leave_it_to_the_default() -> None:
    assert SIGNATURE.bind({"path": "p", "count": None, "mode": "", "points": [], "unknown": None}) == {"path": "p"}


def test_arguments_are_validated_and_converted() -> None:
    bound = SIGNATURE.bind({"path": "p", "count": "7", "points": [{"x": 1}]})
    assert bound["count"] == 7
    assert bound["points"] == [Point(x=1)]


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
    assert caught.value.kind == "bad_arguments"
    assert caught.value.message.startswith(said)
    usage = "Usage: sample(path: string, count?: integer, mode?: string, points?: array, either?: any)"
    assert caught.value.message.endswith(usage)


def test_functions_that_cannot_be_tools_are_refused() -> None:
    def untyped(path) -> str:  # type: ignore[no-untyped-def]
        """Says."""
        return str(path)

    def variadic(*paths: str) -> str:
        """Says."""
        return str(paths)

    def recursive(tree: Tree) -> str:
        """Says."""
        return str(tree)

    def silent(path: str) -> str:
        return path

    with pytest.raises(TypeError, match="parameter 'path' needs a type"):
        read_signature(untyped, "untyped")
    with pytest.raises(TypeError, match="cannot be given by name"):
        read_signature(variadic, "variadic")
    with pytest.raises(TypeError, match="contains itself"):
        read_signature(recursive, "recursive")
    with pytest.raises(TypeError, match="tool silent: it needs a docstring"):
        read_signature(silent, "silent")


def test_built_in_schemas_are_small() -> None:
    for made in make_tools(tool_names()):
        text = str({"description": made.description, "parameters": made.parameters})
        assert "$ref" not in text
        assert "title" not in text
        assert len(text) < 1400, made.name


@pytest.mark.parametrize("points", ['[{"x": 1}]', ['{"x": 1}'], '["{\\"x\\": 1}"]'])
def test_arrays_and_objects_may_be_json_text(points: JsonValue) -> None:
    assert SIGNATURE.bind({"path": '["p"]', "points": points})["points"] == [Point(x=1)]
    assert SIGNATURE.bind({"path": '["p"]'})["path"] == '["p"]'
