"""`gumshoe play`, at a real terminal and through a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.commands.line_input import DEBUGGER_COMMANDS, suggestions
from gumshoe.collect.commands.play import WORDS, choose_task, render_observation
from gumshoe.env.inside.debugger.requests import HELP, split_command
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Failure, Observation
from gumshoe.text import visible
from gumshoe.tools import make_tools
from gumshoe.tools.toolbox import Toolbox, tool_names
from support.folder_tasks import write_files
from support.small_projects import ADDING

ARROW_UP, TAB, CONTROL_C, CONTROL_D, CONTROL_U = "\x1b[A", "\t", "\x03", "\x04", "\x15"
ENVIRONMENT = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "120"}


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    write_files(tmp_path, ADDING)
    return [sys.executable, "-m", "gumshoe", "play", f"local:{tmp_path}", "--sandbox", "local", "--unsafe"]


@pytest.fixture
def terminal(argv: list[str]) -> Iterator[pexpect.spawn[str]]:
    spawned = pexpect.spawn(
        argv[0],
        argv[1:],
        env=ENVIRONMENT,  # pyright: ignore[reportArgumentType]
        encoding="utf-8",
        timeout=120,
        dimensions=(40, 120),
    )
    yield spawned
    spawned.close(force=True)


def complete(terminal: pexpect.spawn[str], typed: str, rest: str) -> None:
    """Types the beginning of a word; the Tab key brings the rest."""
    terminal.send(typed)
    terminal.expect_exact(typed[-1])
    terminal.send(TAB)
    terminal.expect_exact(rest)


def ended(terminal: pexpect.spawn[str]) -> int | None:
    terminal.expect(pexpect.EOF)
    terminal.wait()
    return terminal.exitstatus


def test_a_person_repairs_a_bug_at_a_terminal(terminal: pexpect.spawn[str]) -> None:
    terminal.expect_exact("[0] >")
    complete(terminal, "vi", "ew")
    complete(terminal, " cal", "c.py")
    terminal.send("\r")
    terminal.expect_exact("calc.py 1-2 of 2 lines")
    terminal.expect_exact("[1] >")
    terminal.send("pdb\r")
    terminal.expect_exact("(pdb)")
    complete(terminal, "b cal", "c.py:")
    for typed, shown in (
        ("2\r", "breakpoint 1 at calc.py:2"),
        ("c\r", "(pdb)"),
        ("p a, b\r", "(2, 3)"),
        (CONTROL_D, "[4] >"),
        ("rewrite calc.py 2\r", "return a - b"),
        (f"{CONTROL_U}    return a + b{CONTROL_D}", "rewrote calc.py"),
        ("", "[5] >"),
        ("eval\r", "1 passed"),
        ("", "[6] >"),
        (f"{ARROW_UP}\r", "1 passed"),
        ("", "[7] >"),
        ("submit\r", "solved: the tests pass"),
        ("", "+    return a + b"),
    ):
        terminal.send(typed)
        terminal.expect_exact(shown)
    assert ended(terminal) == 0


def test_a_call_is_stopped_and_the_game_goes_on(terminal: pexpect.spawn[str], tmp_path: Path) -> None:
    terminal.expect_exact("[0] >")
    terminal.send(f"half a line{CONTROL_C}")
    terminal.expect_exact("stopped")
    begun = tmp_path / "begun"
    terminal.send(f"bash touch {begun}; sleep 1000\r")
    while not begun.exists():  # The local sandbox sees the host's files. The test's own timeout ends this.
        time.sleep(0.05)
    terminal.send(CONTROL_C)
    terminal.expect_exact("stopped")
    terminal.send("bash expr 600 '*' 7\r")
    terminal.expect_exact("4200")
    terminal.expect_exact("[2] >")
    terminal.send("q\r")
    terminal.expect_exact("not submitted")
    assert ended(terminal) == 0


def play(argv: list[str], typed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, input=typed, capture_output=True, text=True, check=False, env=ENVIRONMENT)


def test_lines_through_a_pipe(argv: list[str]) -> None:
    typed = "tools\nhelp grep\nhelp nothing\nproblem\n\nview calc.py\npatch\nview nothing.py\npdb\nb calc.py:2\nc\nq\n"
    done = play(argv, f"{typed}rewrite calc.py 2\n    return a * b\n.\npatch\nsubmit\n")
    assert (done.returncode, done.stderr) == (1, "")
    for part in ("nothing is changed", "There is no nothing.py", "pattern: regular expression", "no tool nothing"):
        assert part in done.stdout
    assert done.stdout.endswith(
        "not solved: the tests do not pass (7 calls)\n" + done.stdout[done.stdout.rindex("diff") :]
    )
    assert done.stdout.count("+    return a * b") == 3


def test_every_tool_is_there_unless_some_are_named(argv: list[str]) -> None:
    typed = "suspects\nwhatif [{path: calc.py, line: 2, do: return 5}]\n"
    report = "report locations='[{path: calc.py, start: 2}]' findings='[{claim: a, fact: 1}]' hypothesis=x\n"
    done = play(argv, typed + report)
    assert f"Tools: {', '.join(tool_names())}." in done.stdout
    assert "likeliest first" in done.stdout
    assert "unchanged: " in done.stdout
    assert done.stdout.endswith("reported (3 calls)\nnothing was changed\n")


SCHEMAS = Toolbox(make_tools(["listdir", "view", "grep", "eval", "pdb", "bash"])).schemas
PATHS = ["a/", "a/b.py", "a/c/", "a/c/d.py", "main.py", "notes.txt"]


@pytest.mark.parametrize("text", ["ledger", "casebook/ledger", "casebook:ledger", "casebook:casebook/ledger"])
def test_a_task_of_the_casebook(text: str) -> None:
    assert choose_task(text).id == "casebook/ledger"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("casebook", "casebook has 16 tasks: name one, such as casebook:casebook/build_plan"),
        ("ledgr", "casebook has no task 'ledgr'; did you mean 'ledger'?"),
        ("casebook:", "casebook has no task ''"),
        ("local:/does/not/exist", "/does/not/exist"),
        ("{here}/set/t/1", "for the task t/1 of the set {here}/set, write {here}/set:t/1"),
        ("{here}", "it has no tasks.jsonl; for a repository of your own, write local:{here}"),
        ("{here}/nowhere:t/1", "unknown task source '{here}/nowhere'; known: aider, "),
    ],
)
def test_what_is_no_task_is_told(text: str, said: str, tmp_path: Path) -> None:
    write_taskset(tmp_path / "set", [])
    with pytest.raises(TaskError) as caught:
        choose_task(text.format(here=tmp_path))
    assert said.format(here=tmp_path) in str(caught.value)


def completed_lines(line: str) -> list[str]:
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
    assert completed_lines(line) == completed


def test_every_command_of_the_debugger_is_offered() -> None:
    assert set(re.findall(r"(?:: |, )([a-z]+)", HELP)) == set(DEBUGGER_COMMANDS)
    assert all(split_command(command)[0] not in ("", "unknown") for command in DEBUGGER_COMMANDS)


@given(st.text())
def test_any_line_can_be_completed(line: str) -> None:
    for text in (line, f"view {line}", f"pdb {line}", f"bash {line}", f"help {line}"):
        completed_lines(text)


@given(st.text())
def test_nothing_shown_drives_a_terminal(text: str) -> None:
    clean = visible(text)
    assert all(character in "\t\n" or character.isprintable() or ord(character) > 0x9F for character in clean)
    for failure in (None, Failure(kind="x", message="y")):
        assert render_observation(Observation(tool="eval", text=text, failure=failure)).plain == clean
