"""The test server: runs that are forked have the outcomes of runs in a fresh interpreter."""

import re
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env import DebugEnv, open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.workspace import Workspace
from gumshoe.records import Observation, TestRun, ToolCall
from gumshoe.tools.runs.commands import debug_argv
from support.folder_tasks import PYTEST, folder_task
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

CASES = ["casebook/ttl_cache", "casebook/event_sim", "casebook/delivery_import"]
Open = Callable[..., Workspace]
SHOW = "print(each)"


def played(workspace: Workspace, script: str, part: str = '"programs." + "server"') -> str:
    """What a program prints that runs a script on the path of each command line with this part; each test server's."""
    find = f"import glob\nfor each in glob.glob('/proc/[0-9]*/cmdline'):\n    if {part} in open(each).read():\n"
    return workspace.sandbox.run(["python", "-c", f"{find}        {script}"]).output


def _facts(run: TestRun) -> tuple[int | None, bool, list[Any]]:
    messages = [(each.id, each.outcome, re.sub(r"0x\w+", "", each.message), each.frames) for each in run.outcomes]
    return run.result.exit_code, run.result.timed_out, messages


@pytest.fixture
def open_workspace(tmp_path: Path) -> Generator[Open]:
    """Opens a workspace with these files; its sandbox is closed at the end."""
    with ExitStack() as opened:

        def begin(*entrypoint: str, **files: str) -> Workspace:
            named = {f"{name}.py": text for name, text in files.items()}
            task = folder_task(tmp_path, named, entrypoint=entrypoint or PYTEST)
            return Workspace(task, opened.enter_context(open_sandbox(task, CHEAPEST, trusted=True)))

        yield begin


@pytest.mark.parametrize("case", CASES)
def test_outcomes_of_the_casebook_are_equal_warm_and_cold(case: str) -> None:
    ((task, _),) = load_tasks("casebook", ids=[case])
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        workspace = Workspace(task, sandbox)
        cold, first, second = (workspace.run_tests(warm=warm) for warm in (False, True, True))
        assert (cold.result.warm, first.result.warm, second.result.warm) == (False, True, True)
        assert _facts(cold) == _facts(first) == _facts(second)


def test_a_fork_sees_what_was_changed_and_nothing_that_another_imported(open_workspace: Open) -> None:
    early = "import sys\nearly = 'colorsys' in vars(sys)['modules']\nimport colorsys, part\n"
    workspace = open_workspace(test_it=f"{early}def test_it(): assert (part.N, early) == (1, False)\n", part="N = 1\n")
    first = workspace.run_tests(warm=True)
    workspace.write_text("part.py", "N = 2\n")
    second = workspace.run_tests(warm=True)
    assert first.passed
    assert [run.result.warm for run in (first, second)] == [True, True]
    assert "(2, False) == (1, False)" in second.outcomes[0].message


@pytest.mark.parametrize(
    ("name", "source", "why"),
    [
        ("test_it", "import os\ndef test_it():\n    os.fork() or os._exit(0)\n", "starts processes"),
        ("test_it", "import gc\ndef test_it(): gc.get_objects()\n", "looks at its own process"),
        ("colorsys", "", None),
        ("calendar", "", "a module calendar of its own"),
    ],
)
def test_it_falls_back_and_says_why(open_workspace: Open, name: str, source: str, why: str | None) -> None:
    workspace = open_workspace(**{"test_any": "def test_any(): pass\n", name: source})
    run = workspace.run_tests(warm=True)
    assert run.passed
    assert run.result.warm is (why is None)
    assert (why or "None") in str(run.result.cold)


def test_other_runners_and_scripts(open_workspace: Open) -> None:
    source = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): assert 0\n"
    workspace = open_workspace("python", "-W", "error", "-m", "unittest", "-v", test_it=source)
    cold, warm = workspace.run_tests(), workspace.run_tests(warm=True)
    assert warm.result.warm
    assert _facts(cold) == _facts(warm)
    script = workspace.sandbox.run(
        ["python", "-W", "error", "-c", "import sys; sys.exit(len(sys.argv))", "a"], warm=True
    )
    assert (script.exit_code, script.cold) == (2, "another test runner is loaded")


def test_the_server_checks_syntax_as_an_interpreter_does(open_workspace: Open) -> None:
    workspace = open_workspace(test_it="def test_it(): pass\n")
    sandbox = workspace.sandbox
    argv = debug_argv(sandbox, workspace.debug_entrypoint, "programs.syntax")
    for text, problem in (
        (b"x = 1\n" * 50_000, ""),
        (b"def (", "SyntaxError"),
        (b"x = '\0'", "Error"),
        (b"# coding: none\n", "SyntaxError"),
        (b"(" * 5000 + b")" * 5000, "Error"),
        (b"", ""),
    ):
        cold, warm = (sandbox.run(argv, input=text, warm=warm, timeout=20) for warm in (False, True))
        assert (cold.warm, warm.warm) == (False, True)
        assert (cold.exit_code, cold.output) == (0, warm.output) == (warm.exit_code, cold.output)
        assert problem in cold.output
        assert bool(problem) == bool(cold.output)
    assert workspace.run_tests(warm=True).result.warm


def test_nothing_that_a_fork_starts_outlives_it(open_workspace: Open) -> None:
    leave = "import subprocess\ndef test_it(): subprocess.Popen(['sleep', '987'], start_new_session=True)\n"
    workspace = open_workspace(test_it=leave)
    assert workspace.run_tests(warm=True).result.warm
    assert played(workspace, SHOW, part='"sl" + "eep"') == ""


def test_the_debugger_is_a_fork_too(open_workspace: Open) -> None:
    task = open_workspace(test_it="def test_it():\n    n = 1\n    assert n == 2\n").task

    def call(name: str, **arguments: str) -> Observation:
        return env.step(ToolCall(id="1", name=name, arguments=arguments))[4]["observation"]  # type: ignore[arg-type]

    with closing(DebugEnv(task, tools=("pdb", "eval"), sandbox=CHEAPEST, trusted=True)) as env:
        env.reset(seed=0)
        assert "test_it.py:3 in test_it (breakpoint 1)" in call("pdb", command="b test_it.py:3\nc").text
        fork = "'programs.server' in open('/proc/self/cmdline').read(), n"
        assert call("pdb", command=f"p {fork}").text == f"{fork} = (True, 1)"
        assert call("eval").data["warm"] is True
        assert "test_it.py:3 in test_it (breakpoint 1)" in call("pdb", command="restart\nc").text
        assert "post-mortem" in call("pdb", command="c").text


def test_what_warns_while_it_is_compiled_warns_in_every_run(open_workspace: Open) -> None:
    workspace = open_workspace(test_it="def test_it():\n    assert (1, 'never false')\n")
    # What looks like a module and is a pipe does not hold it up.
    assert workspace.sandbox.run(["mkfifo", "pipe.py"]).exit_code == 0
    runs = [workspace.run_tests(warm=True) for _ in range(2)]
    assert all("1 warning" in run.result.output and run.result.warm for run in runs)


def test_where_the_repository_has_a_say_in_the_interpreters_start_a_fresh_one_runs(tmp_path: Path) -> None:
    start = "import builtins\nbuiltins.started = True\n"
    files = {"sitecustomize.py": start, "test_it.py": "def test_it(): assert started\n"}
    config = CHEAPEST.model_copy(update={"env": {**CHEAPEST.env, "PYTHONPATH": "/workspace"}})
    task = folder_task(tmp_path, files)
    with open_sandbox(task, config, trusted=True) as sandbox:
        run = Workspace(task, sandbox).run_tests(warm=True)
    assert (run.passed, run.result.warm) == (True, False)
    assert "comes from the workspace" in str(run.result.cold)


def test_another_interpreters_options_get_another_server(open_workspace: Open) -> None:
    workspace = open_workspace(test_it="def test_it(): pass\n")
    first = workspace.run_tests(warm=True)
    known = played(workspace, SHOW)
    workspace.task = workspace.task.model_copy(update={"entrypoint": ("python", "-W", "error", "-m", "pytest", "-q")})
    second = workspace.run_tests(warm=True)
    assert (first.result.warm, second.result.warm) == (True, True)
    assert played(workspace, SHOW) not in ("", known)


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
def test_a_server_that_was_killed_or_stopped_is_replaced_or_continued(open_workspace: Open, number: str) -> None:
    workspace = open_workspace(test_it="def test_it(): pass\n")
    assert workspace.run_tests(warm=True).result.warm
    played(workspace, f"import os, signal; os.kill(int(each.split('/')[2]), signal.{number})")
    assert workspace.run_tests(warm=True).passed
    assert workspace.run_tests(warm=True).result.warm


def test_a_program_cannot_look_into_the_server(open_workspace: Open) -> None:
    workspace = open_workspace(test_it="def test_it(): pass\n")
    assert workspace.run_tests(warm=True).result.warm
    look = """
        import ctypes
        number = each.split("/")[2]
        try:
            open(f"/proc/{number}/mem", "rb")
        except OSError as error:
            print("memory", error.errno)
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        print("trace", ptrace(16, int(number), None, None), ctypes.get_errno())
"""
    assert played(workspace, look.strip()).splitlines() == ["memory 13", "trace -1 1"]
