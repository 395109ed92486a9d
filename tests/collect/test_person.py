"""A person who decides, or who looks at each turn of another policy."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.policies.human import HumanPolicy, line_parameter, parse_command
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.records import Completion, ToolCall, ToolSchema
from gumshoe.tools import make_tools
from gumshoe.tools.toolbox import Toolbox
from support.collect.small_trajectories import OPENING, converse, schemas

Make = Callable[..., Path]


def test_a_person_may_take_the_models_place(config_file: Make, tmp_path: Path) -> None:
    config = config_file(1)
    argv = [sys.executable, "-m", "gumshoe", "collect", str(config), "-p", "policy.model=human"]
    left = subprocess.run(argv, input="eval\nquit\n", capture_output=True, text=True, timeout=120, check=False)
    assert left.returncode == 130, left.stderr
    assert "run the same command again to resume" in left.stdout
    typed = "[seek 0.5] what else?\nlistdir\nsubmit\n"
    done = subprocess.run(argv, input=typed, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = read_trajectories(tmp_path / "run")
    assert (found.policy.kind, found.stop.value) == ("human", "submitted")
    assert [step.tool_calls[0].name for step in found.steps] == ["eval", "listdir", "submit"]
    assert found.steps[1].rationale == "what else?"


@pytest.mark.parametrize(
    ("options", "prompt", "typed"), [(("-p", "policy={kind: human}"), "> ", "eval"), (("--step",), "step> ", "")]
)
def test_ctrl_c_at_a_prompt_stops_at_once_and_keeps_the_turns(
    config_file: Make, tmp_path: Path, options: tuple[str, ...], prompt: str, typed: str
) -> None:
    argv = ["-m", "gumshoe", "collect", str(config_file(1)), *options]
    terminal = pexpect.spawn(sys.executable, argv, encoding="utf-8", timeout=120)
    terminal.expect_exact(prompt)
    terminal.sendline(typed)
    terminal.expect_exact(prompt)
    terminal.sendintr()
    terminal.expect_exact("0 of 1 episodes")
    terminal.expect_exact("run the same command again to resume")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
    (journal,) = (tmp_path / "run" / "journal").glob("*.jsonl")
    assert journal.read_text().count('"completion"') == 1


def test_a_person_types_calls() -> None:
    typed = io.StringIO("tools\nhelp\n\n[seek 0.5] a look\nview path=a.py start=3 x='a b'\n")
    shown = io.StringIO()
    completion = HumanPolicy(None, typed, shown).complete(OPENING, schemas("view"))
    assert completion.text == "[seek 0.5] a look"
    assert completion.tool_calls == (
        ToolCall(id="call-0", name="view", arguments={"path": "a.py", "start": 3, "x": "a b"}),
    )
    assert "--- user\nU" in shown.getvalue()


def test_a_person_looks_at_each_turn_edits_one_and_takes_over() -> None:
    script = [Completion(text=f"turn {n}", tool_calls=(ToolCall(id=f"c{n}", name="eval"),)) for n in range(3)]
    typed = io.StringIO("\ne\ne view path=a.py\nt\nlistdir\ngrep pattern=x\n")
    shown = io.StringIO()
    policy = HumanPolicy(ScriptedPolicy(script), typed, shown)
    assert policy.kind == "scripted"
    turns = converse(policy, ("eval", "view"), "one", "two", "three")
    assert [turn.tool_calls[0].name for turn in turns] == ["eval", "view", "listdir", "grep"]
    assert turns[1].text == "turn 1"
    assert policy.kind == "scripted+human"
    assert "--- scripted wants\nturn 0" in shown.getvalue()
    assert "[step 0] one" in shown.getvalue()
    policy.close()


def test_a_person_may_stop() -> None:
    script = ScriptedPolicy([Completion(text="x")])
    for inner, typed in ((script, "q\n"), (script, ""), (None, "quit\n"), (None, "q\n"), (None, "")):
        with pytest.raises(KeyboardInterrupt):
            HumanPolicy(inner, io.StringIO(typed), io.StringIO()).complete(OPENING, [])


NAMES = ["listdir", "view", "grep", "eval", "pdb", "rewrite", "bash", "whatif", "suspects"]
SCHEMAS = Toolbox(make_tools(NAMES)).schemas


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("x a=[1,2] b=null c=true d=1.5 e={f:1}", {"a": [1, 2], "b": None, "c": True, "d": 1.5, "e": {"f:1": None}}),
        ("x 'a=[1, 2]' 'e={f: g}'", {"a": [1, 2], "e": {"f": "g"}}),
        ("x a=2024-01-05 b=p==q", {"a": "2024-01-05", "b": "p==q"}),
        ("x a='it", {"a": "'it"}),
    ],
)
def test_typed_values(line: str, arguments: dict[str, Any]) -> None:
    assert parse_command(line, "c").arguments == arguments


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
        ("whatif [{path: a.py, line: 3, do: skip}]", {"variants": [{"path": "a.py", "line": 3, "do": "skip"}]}),
        ("suspects", {}),
        ("suspects dstar", {"formula": "dstar"}),
    ],
)
def test_arguments_without_names(line: str, arguments: dict[str, Any]) -> None:
    call = parse_command(line, "c", SCHEMAS)
    assert (call.name, call.arguments, call.parse_error) == (line.split()[0], arguments, None)


def test_what_is_no_argument_is_told() -> None:
    for line, tools, said in (
        ("view cart.py 3 9 12", SCHEMAS, "'12' is one argument too many: view takes path, start, end"),
        ("eval now", SCHEMAS, "'now' is one argument too many: eval takes no arguments"),
        ("x a=[1, 2]", (), "'2]' is not of the form argument=value"),
    ):
        assert parse_command(line, "c", tools).parse_error == said


@given(st.text())
def test_any_line_is_read_without_an_error(line: str) -> None:
    for text in (line, f"view {line}", f"pdb {line}", f"grep {line}"):
        parse_command(text, "c", SCHEMAS)
        parse_command(text, "c")


def test_tools_that_take_the_rest_of_the_line() -> None:
    assert [schema.name for schema in SCHEMAS if line_parameter(schema)] == ["pdb", "bash"]
    assert line_parameter(ToolSchema(name="x", description="", parameters={})) is None
