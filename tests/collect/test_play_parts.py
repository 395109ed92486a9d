"""The parts of `gumshoe play`: choosing a task, completing a line, showing what came back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.commands.line_input import DEBUGGER_COMMANDS, suggestions
from gumshoe.collect.commands.play import WORDS, choose_task, render_observation
from gumshoe.env.inside.debugger.language import HELP, split_command
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Failure, Observation
from gumshoe.text import visible
from gumshoe.tools import make_tools
from gumshoe.tools.toolbox import Toolbox

SCHEMAS = Toolbox(make_tools(["listdir", "view", "grep", "eval", "pdb", "bash"])).schemas
PATHS = ["a/", "a/b.py", "a/c/", "a/c/d.py", "main.py", "notes.txt"]


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("ledger", "casebook/ledger"),
        ("casebook/ledger", "casebook/ledger"),
        ("casebook:ledger", "casebook/ledger"),
        ("casebook:casebook/ledger", "casebook/ledger"),
    ],
)
def test_a_task_of_the_casebook(text: str, task: str) -> None:
    assert choose_task(text).id == task


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("casebook", "casebook has 16 tasks: name one, such as casebook:casebook/build_plan"),
        ("ledgr", "casebook has no task 'ledgr'; did you mean 'ledger'?"),
        ("casebook:", "casebook has no task ''"),
        ("local:/does/not/exist", "/does/not/exist"),
    ],
)
def test_what_is_no_task(text: str, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        choose_task(text)
    assert said in str(caught.value)


def test_a_path_is_told_how_to_name_the_task(tmp_path: Path) -> None:
    write_taskset(tmp_path / "set", [])
    for text, said in (
        ("set/t/1", f"for the task t/1 of the set {tmp_path}/set, write {tmp_path}/set:t/1"),
        ("", f"it has no tasks.jsonl; for a repository of your own, write local:{tmp_path}"),
        ("nowhere:t/1", f"no task source '{tmp_path}/nowhere': give aider, "),
    ):
        with pytest.raises(TaskError) as caught:
            choose_task(str(tmp_path / text))
        assert said in str(caught.value)


def complete(line: str) -> list[str]:
    """The whole lines that the suggestions make of `line`."""
    found = suggestions(line, SCHEMAS, WORDS, lambda: PATHS)
    return [line[: len(line) - each.replaces] + each.word for each in found]


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("", ["listdir", "view", "grep", "eval", "pdb", "bash", *WORDS]),
        ("p", ["pdb", "problem", "patch"]),
        ("help v", ["help view"]),
        ("nothing x", []),
        ("view ", ["view a/", "view main.py", "view notes.txt", "view path=", "view start=", "view end="]),
        ("view a/", ["view a/", "view a/b.py", "view a/c/"]),
        ("view path=m", ["view path=main.py"]),
        ("view main.py ", ["view main.py start=", "view main.py end="]),
        ("view main.py start=3 ", ["view main.py start=3 end="]),
        ("view main.py start=", []),
        ("view path=main.py e", ["view path=main.py end="]),
        ("grep x m", ["grep x main.py"]),
        ("eval ", []),
        ("pdb t", ["pdb tbreak"]),
        ("pdb ", [f"pdb {command}" for command in DEBUGGER_COMMANDS]),
        ("pdb b ", ["pdb b a/", "pdb b main.py:"]),
        ("pdb c;; b a/b", ["pdb c;; b a/b.py:"]),
        ("pdb p m", []),
        ("bash cat <ma", ["bash cat <main.py"]),
        ("bash cat a/c/", ["bash cat a/c/", "bash cat a/c/d.py"]),
    ],
)
def test_lines_are_completed(line: str, completed: list[str]) -> None:
    assert complete(line) == completed


def test_every_command_of_the_debugger_is_offered() -> None:
    assert set(re.findall(r"(?:: |, )([a-z]+)", HELP)) == set(DEBUGGER_COMMANDS)
    assert all(split_command(command)[0] not in ("", "unknown") for command in DEBUGGER_COMMANDS)


@given(st.text())
def test_any_line_can_be_completed(line: str) -> None:
    for text in (line, f"view {line}", f"pdb {line}", f"bash {line}", f"help {line}"):
        complete(text)


@given(st.text())
def test_nothing_shown_drives_a_terminal(text: str) -> None:
    clean = visible(text)
    assert all(character in "\t\n" or character.isprintable() or ord(character) > 0x9F for character in clean)
    plain = render_observation(Observation(tool="eval", text=text)).plain
    assert plain == clean
    assert (
        render_observation(Observation(tool="eval", text=text, failure=Failure(kind="x", message="y"))).plain == clean
    )
