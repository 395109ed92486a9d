"""Calls of tools as a person types them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.policies.human import line_parameter, parse_command
from gumshoe.records import ToolSchema
from gumshoe.tools import make_tools
from gumshoe.tools.toolbox import Toolbox

SCHEMAS = Toolbox(make_tools(["listdir", "view", "grep", "eval", "pdb", "rewrite", "bash"])).schemas


def test_typed_values() -> None:
    call = parse_command("x a=[1,2] b=null c=true d=1.5 e={f:1}", "c")
    assert call.arguments == {"a": [1, 2], "b": None, "c": True, "d": 1.5, "e": {"f:1": None}}
    call = parse_command("x 'a=[1, 2]' b=null c=true d=1.5 'e={f: g}'", "c")
    assert call.arguments == {"a": [1, 2], "b": None, "c": True, "d": 1.5, "e": {"f": "g"}}
    assert parse_command("x a=2024-01-05 b=p==q", "c").arguments == {"a": "2024-01-05", "b": "p==q"}
    assert parse_command("x a='it", "c").arguments == {"a": "'it"}


def test_values_with_spaces_need_quotes() -> None:
    call = parse_command("x a=[1, 2]", "c")
    assert call.arguments == {}
    assert call.parse_error == "'2]' is not of the form argument=value"


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("view cart.py 3 9", {"path": "cart.py", "start": 3, "end": 9}),
        ("view end=9 cart.py", {"path": "cart.py", "end": 9}),
        ("  eval ", {}),
        ("listdir", {}),
        (r'grep "def \w+\b" src', {"pattern": r"def \w+\b", "path": "src"}),
        ("grep 7", {"pattern": "7"}),
        ("grep pattern=7 literal=true", {"pattern": "7", "literal": True}),
        ("grep a=b", {"pattern": "a=b"}),
        ("pdb b cart.py:3, x == 'a'", {"command": "b cart.py:3, x == 'a'"}),
        ("pdb command='b cart.py:3'", {"command": "b cart.py:3"}),
        ("pdb", {}),
        ("bash echo $HOME | sort # now", {"command": "echo $HOME | sort # now"}),
        ("rewrite a.py 'x = 1'", {"path": "a.py", "code": "x = 1"}),
    ],
)
def test_arguments_without_names(line: str, arguments: dict[str, Any]) -> None:
    call = parse_command(line, "c", SCHEMAS)
    assert (call.name, call.arguments, call.parse_error) == (line.split()[0], arguments, None)


def test_one_argument_too_many() -> None:
    call = parse_command("view cart.py 3 9 12", "c", SCHEMAS)
    assert call.parse_error == "'12' is one argument too many: view takes path, start, end"
    call = parse_command("eval now", "c", SCHEMAS)
    assert call.parse_error == "'now' is one argument too many: eval takes no arguments"


@given(st.text())
def test_any_line_is_read_without_an_error(line: str) -> None:
    for text in (line, f"view {line}", f"pdb {line}", f"grep {line}"):
        parse_command(text, "c", SCHEMAS)
        parse_command(text, "c")


def test_tools_that_take_the_rest_of_the_line() -> None:
    assert [schema.name for schema in SCHEMAS if line_parameter(schema)] == ["pdb", "bash"]
    assert line_parameter(ToolSchema(name="x", description="", parameters={})) is None


def test_a_single_list_needs_no_quotes() -> None:
    (whatif,) = Toolbox(make_tools(["whatif"])).schemas
    call = parse_command("whatif [{path: a.py, line: 3, do: skip}]", "c", [whatif])
    assert call.arguments == {"variants": [{"path": "a.py", "line": 3, "do": "skip"}]}


def test_a_tool_whose_only_text_may_be_left_out_runs_without_it() -> None:
    (suspects,) = Toolbox(make_tools(["suspects"])).schemas
    assert line_parameter(suspects) is None
    assert parse_command("suspects", "c", [suspects]).arguments == {}
    assert parse_command("suspects dstar", "c", [suspects]).arguments == {"formula": "dstar"}
