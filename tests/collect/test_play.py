"""`gumshoe play`, at a real terminal and through a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from gumshoe.tools.toolbox import tool_names
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
    terminal.send("2\r")
    terminal.expect_exact("breakpoint 1 at calc.py:2")
    terminal.send("c\r")
    terminal.expect_exact("(pdb)")
    terminal.send("p a, b\r")
    terminal.expect_exact("(2, 3)")
    terminal.send(CONTROL_D)
    terminal.expect_exact("[4] >")
    terminal.send("rewrite calc.py 2\r")
    terminal.expect_exact("return a - b")
    terminal.send(f"{CONTROL_U}    return a + b{CONTROL_D}")
    terminal.expect_exact("rewrote calc.py")
    terminal.expect_exact("[5] >")
    terminal.send("eval\r")
    terminal.expect_exact("1 passed")
    terminal.expect_exact("[6] >")
    terminal.send(f"{ARROW_UP}\r")
    terminal.expect_exact("1 passed")
    terminal.expect_exact("[7] >")
    terminal.send("submit\r")
    terminal.expect_exact("solved: the tests pass")
    terminal.expect_exact("+    return a + b")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0


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
    terminal.send("quit\r")
    terminal.expect_exact("not submitted")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0


def play(argv: list[str], typed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, input=typed, capture_output=True, text=True, check=False, env=ENVIRONMENT)


def test_lines_through_a_pipe(argv: list[str]) -> None:
    typed = "help\nhelp grep\nhelp nothing\nproblem\n\nview calc.py\npatch\nview nothing.py\npdb\nb calc.py:2\nc\nq\n"
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
