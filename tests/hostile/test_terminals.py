"""What tasks, programs, files and arguments hold cannot control the terminal that a command prints on."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pexpect
import pytest

from support.folder_tasks import write_files

pytestmark = pytest.mark.needs("bubblewrap")

HOSTILE = "a\x1b]0;title\x07\x1b[2J\x1b[31mb\x9b2Jc\u202ed\u2066e\x08f\rg\x7f[bold]h[/]"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
RICH = re.compile(r"\x1b\[[0-9;]*[mAK]|\x1b\[\?25[lh]|\r")
"""Colors and the moves of the cursor, which Rich makes on a terminal."""
LIMIT_S = 400

SOURCE = f"""
from pathlib import Path
from gumshoe.records import Oracle, Task, WorkspaceSpec

NAME = {HOSTILE!r}
GOLD = "--- a/calc.py\\n+++ b/calc.py\\n@@ -1,2 +1,2 @@\\n def double(x):\\n-    return x + 2\\n+    return x * 2  # "

def load(*, broken: bool = False):
    if broken:
        raise ValueError(NAME)
    workspace = WorkspaceSpec(path=str(Path("project").resolve()))
    task = Task(
        id="mine/" + NAME, source="mine", problem_statement=NAME, workspace=workspace, tags={{"kind": NAME, NAME: "x"}},
        entrypoint=("python", "-m", "pytest", "-q", "-s"),
    )
    gold = GOLD + NAME + "\\n"
    return [(task, Oracle(task_id=task.id, gold_patch=gold, fail_to_pass=("test_calc.py::test_double",)))]
"""
TEST = f"""
import os
from calc import double

NAME = {HOSTILE!r}

def test_double():
    print(NAME)
    os.write(2, NAME.encode("utf-8", "surrogateescape"))
    assert double(3) == 6, NAME
"""
CONFIG = """
out: runs/mine
tasks: {source: "hostile_source:load"}
agent: {kind: seeker}
policy: {kind: suspect}
sandbox: {kind: bubblewrap}
"""
EVALUATION = """
out: runs/eval
tasks: {source: "hostile_source:load"}
arms: [{name: suspect, label: "LABEL", policy: {kind: suspect}, baseline: true}]
sandbox: {kind: bubblewrap}
"""
COMMANDS = {
    "list": ["tasks", "list", "hostile_source:load"],
    "show": ["tasks", "show", "hostile_source:load", "mine/" + HOSTILE, "--oracle"],
    "check": ["tasks", "check", "hostile_source:load", "--sandbox", "bubblewrap"],
    "broken source": ["tasks", "list", "hostile_source:load", "-o", "broken=true"],
    "collect": ["collect", "collect.yaml", "-vv"],
    "debug": ["debug", "project", "-p", "policy.kind=investigator", "-p", "sandbox.kind=bubblewrap", "-vv"],
    "eval": ["eval", "eval.yaml"],
    "play": ["play", "local:project", "--sandbox", "bubblewrap"],
    "no such path": ["tasks", "list", f"local:{HOSTILE}"],
    "no such command": [HOSTILE],
    "no such key": ["collect", "collect.yaml", "-p", f"{HOSTILE}=1"],
}


ALL_COMMANDS = """
import json, os, sys
from gumshoe.cli import main
for words in json.load(open(sys.argv[1])):
    print(sys.argv[2], flush=True)
    try:
        code = main(words)
    except SystemExit as leaving:
        code = leaving.code
    print(f"{sys.argv[2]} exit {code or 0}", flush=True)
"""
MARK = "=====command====="
"""What separates the commands, which all run in one process, in what it prints."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    label = HOSTILE.encode("unicode_escape").decode()
    files = {
        "project/calc.py": "def double(x):\n    return x + 2\n",
        "project/test_calc.py": TEST,
        f"project/data{HOSTILE.replace('/', '')}.txt": HOSTILE,
        "hostile_source.py": SOURCE,
        "collect.yaml": CONFIG,
        "eval.yaml": EVALUATION.replace("LABEL", label),
    }
    return write_files(tmp_path, files)


def outcomes(printed: str, names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """The name of each command, its exit code and what it printed."""
    parts = re.split(rf"{MARK}\r?\n", printed)[1:]
    for name, part in zip(names, parts, strict=True):
        text, _, code = part.partition(f"{MARK} exit ")
        yield name, int(code.split()[0]), text


def make_argv(folder: Path, names: Sequence[str]) -> list[str]:
    """The program that runs these commands in the folder."""
    (folder / "commands.json").write_text(json.dumps([COMMANDS[name] for name in names]))
    return [sys.executable, "-c", ALL_COMMANDS, "commands.json", MARK]


def test_no_control_character_is_printed(folder: Path) -> None:
    typed = "listdir\nview test_calc.py\neval\nbash cat data*\npdb c\n" + HOSTILE + "\nquit\n"
    argv, out = make_argv(folder, list(COMMANDS)), subprocess.STDOUT
    printed = subprocess.check_output(
        argv, cwd=folder, input=typed.encode(), stderr=out, env={**os.environ, "COLUMNS": "400"}, timeout=LIMIT_S
    )
    for name, code, text in outcomes(printed.decode("utf-8"), list(COMMANDS)):
        assert code in (0, 1, 2), (name, text)
        assert "Traceback (most recent call last)" not in text, (name, text)
        assert CONTROLS.search(text) is None, (name, CONTROLS.findall(text))
        assert "[bold]h[/]" in text or name == "debug", (name, text)


def test_on_a_terminal_there_are_only_our_own_colors_and_moves(folder: Path) -> None:
    names = ["list", "check", "collect", "debug", "eval"]
    program, *words = make_argv(folder, names)
    child = pexpect.spawn(program, words, cwd=str(folder), encoding="utf-8", timeout=LIMIT_S)
    child.expect(pexpect.EOF)
    child.close()
    for name, code, printed in outcomes(child.before or "", names):
        plain = RICH.sub("", printed)
        assert code in (0, 1), (name, plain)
        assert CONTROLS.search(plain) is None, (name, CONTROLS.findall(plain))
