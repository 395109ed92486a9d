"""Test servers that are started in warm sandboxes before the repository is there."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.sandboxes.open import close_pools
from gumshoe.env.workspace import Workspace
from gumshoe.records import Task, TestRun
from support.folder_tasks import folder_task
from support.sandboxes.sandbox_backends import WARM
from support.sandboxes.warm_sandboxes import FIND_SERVERS, fill_pools, servers_in

pytestmark = pytest.mark.needs("bubblewrap")

CONFIG = WARM.model_copy(update={"pool": 1})
SANDBOXES = 2
"""How many the pool has: the one that it is to keep, and one more since there are test servers."""


@pytest.fixture(autouse=True)
def pools() -> Generator[None]:
    yield
    close_pools()


def make_task(folder: Path, **files: str) -> Task:
    return folder_task(folder, {f"{name}.py": text for name, text in files.items()})


def episode(task: Task, config: SandboxConfig = CONFIG) -> tuple[list[str], TestRun, list[str]]:
    """The servers before the first run, that run, and the servers after it."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        before = servers_in(sandbox)
        run = Workspace(task, sandbox).run_tests(warm=True)
        after = servers_in(sandbox)
    fill_pools()
    return before, run, after


def test_the_next_episodes_server_waits_and_is_the_one_that_forks_or_is_replaced(tmp_path: Path) -> None:
    first = make_task(tmp_path / "first", part="N = 1\n", test_it="import part\ndef test_it(): assert part.N == 1\n")
    other = make_task(tmp_path / "other", part="N = 2\n", test_it="import part\ndef test_it(): assert part.N == 1\n")
    before, run, after = episode(first)
    assert (before, run.passed, run.result.warm, len(after)) == ([], True, True, 1)
    for task, passes in ((other, False), (first, True)):
        before, run, after = episode(task)
        assert (run.passed, run.result.warm) == (passes, True)
        assert before == after != []
    before, run, _ = episode(make_task(tmp_path / "shadowing", test_it="def test_it(): pass\n", pluggy=""))
    assert before
    assert not run.result.warm
    assert "a module pluggy of its own" in str(run.result.cold)
    strict = first.model_copy(update={"entrypoint": ("python", "-W", "error", "-m", "pytest", "-q")})
    before, run, after = episode(strict)
    assert (run.passed, run.result.warm) == (True, True)
    assert before
    assert set(after) - set(before)


def test_where_the_repository_has_a_say_in_the_interpreters_start_a_fresh_one_runs(tmp_path: Path) -> None:
    task = make_task(
        tmp_path / "repo",
        sitecustomize="import builtins\nbuiltins.started = True\n",
        test_it="def test_it(): assert started\n",
    )
    config = CONFIG.model_copy(update={"env": {**CONFIG.env, "PYTHONPATH": "/workspace"}})
    for why in ("comes from the workspace", "a module sitecustomize of its own"):
        _, run, _ = episode(task, config)
        assert (run.passed, run.result.warm) == (True, False)
        assert why in str(run.result.cold)


def played(task: Task, script: str) -> str:
    """What a script prints as a program of one episode."""
    with open_sandbox(task, CONFIG, trusted=True) as sandbox:
        output = sandbox.run(["python", "-c", FIND_SERVERS.replace('print(each.split("/")[2])', script)]).output
    fill_pools()
    return output


def waiting_servers(task: Task) -> set[str]:
    """The server of each of the sandboxes that wait, with the time of its start."""
    show = "print(open(each.replace('cmdline', 'stat')).read().rpartition(')')[2].split()[19], each.split('/')[2])"
    found = {played(task, show) for _ in range(SANDBOXES)}
    return {min(output.splitlines(), key=lambda line: int(line.split()[0])) for output in found if output}


def test_a_server_outlives_the_episodes_that_leave_it_alone_and_one_that_was_stopped_is_replaced(
    tmp_path: Path,
) -> None:
    task = make_task(tmp_path / "repo", test_it="def test_it(): pass\n")
    for _ in range(SANDBOXES):
        episode(task)
    known = waiting_servers(task)
    assert known
    assert all(episode(task)[1].result.warm for _ in range(SANDBOXES))
    assert waiting_servers(task) == known
    for number in ("SIGKILL", "SIGSTOP"):
        attack = f"import os, signal; os.kill(int(each.split('/')[2]), signal.{number})"
        for _ in range(SANDBOXES):
            played(task, attack)
        for _ in range(SANDBOXES):
            _, run, _ = episode(task)
            assert (run.passed, run.result.warm) == (True, True)
        stopped, known = known, waiting_servers(task)
        assert stopped.isdisjoint(known)


def test_what_an_episode_hides_below_the_server_does_not_outlive_it(tmp_path: Path) -> None:
    leave = (
        "import os, signal, subprocess\n"
        "def test_it():\n"
        "    subprocess.Popen(['sleep', '986'], start_new_session=True)\n"
        "    for name in filter(str.isdigit, os.listdir('/proc')):\n"
        "        try:\n"
        "            if 'programs.server' in open(f'/proc/{name}/cmdline').read() and int(name) != os.getpid():\n"
        "                os.kill(int(name), signal.SIGKILL)\n"
        "        except OSError:\n"
        "            pass\n"
    )
    task = make_task(tmp_path / "repo", test_it=leave)
    for _ in range(SANDBOXES):
        episode(task)
    seen = "import glob\nfor each in glob.glob('/proc/[0-9]*/cmdline'):\n    print(open(each).read())\n"
    for _ in range(SANDBOXES):
        with open_sandbox(task, CONFIG, trusted=True) as sandbox:
            assert "986" not in sandbox.run(["python", "-c", seen]).output


def test_a_program_cannot_look_into_the_server(tmp_path: Path) -> None:
    task = make_task(tmp_path / "repo", test_it="def test_it(): pass\n")
    for _ in range(SANDBOXES):
        episode(task)
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
    assert played(task, look.strip()).splitlines() == ["memory 13", "trace -1 1"]
