"""Test servers that are started in warm sandboxes before the repository is there."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.sandboxes import open as opening
from gumshoe.env.sandboxes.open import close_pools
from gumshoe.env.workspace import Workspace
from gumshoe.protocols import TestRun
from gumshoe.records import Task, WorkspaceSpec

pytestmark = pytest.mark.needs("bubblewrap")

CONFIG = SandboxConfig(kind="bubblewrap", pool=1, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
FIND = """\
import glob
for each in glob.glob("/proc/[0-9]*/cmdline"):
    if "gumshoe_" + "server" in open(each).read():
        print(each.split("/")[2])
"""


@pytest.fixture(autouse=True)
def pools() -> Generator[None]:
    yield
    close_pools()


def make_task(folder: Path, **files: str) -> Task:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return Task(
        id="t",
        source="test",
        problem_statement="",
        workspace=WorkspaceSpec(path=str(folder)),
        entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
    )


def episode(task: Task, config: SandboxConfig = CONFIG) -> tuple[list[str], TestRun, list[str]]:
    """The servers before the first run, that run, and the servers after it."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        before = sandbox.run(["python", "-c", FIND]).output.split()
        run = Workspace(task, sandbox).run_tests(warm=True)
        after = sandbox.run(["python", "-c", FIND]).output.split()
    for pool in opening._pools:  # pyright: ignore[reportPrivateUsage]
        pool.fill()
    return before, run, after


def test_the_next_episodes_server_waits_and_is_the_one_that_forks(tmp_path: Path) -> None:
    first = make_task(tmp_path / "first", part="N = 1\n", test_it="import part\ndef test_it(): assert part.N == 1\n")
    other = make_task(tmp_path / "other", part="N = 2\n", test_it="import part\ndef test_it(): assert part.N == 1\n")
    before, run, after = episode(first)
    assert (before, run.passed, run.result.warm, len(after)) == ([], True, True, 1)
    for task, passes in ((other, False), (first, True)):
        before, run, after = episode(task)
        assert (run.passed, run.result.warm) == (passes, True)
        assert before == after != []


def test_what_the_repository_brings_is_still_looked_at(tmp_path: Path) -> None:
    episode(make_task(tmp_path / "plain", test_it="def test_it(): pass\n"))
    before, run, _ = episode(make_task(tmp_path / "other", test_it="def test_it(): pass\n", pluggy=""))
    assert before
    assert not run.result.warm
    assert "a module pluggy of its own" in str(run.result.cold)


def test_where_the_repository_has_a_say_in_the_interpreters_start_the_server_waits_for_it(tmp_path: Path) -> None:
    task = make_task(
        tmp_path / "repo",
        sitecustomize="import builtins\nbuiltins.started = True\n",
        test_it="def test_it(): assert started\n",
    )
    config = CONFIG.model_copy(update={"env": {**CONFIG.env, "PYTHONPATH": "/workspace"}})
    for _ in range(2):
        before, run, _ = episode(task, config)
        assert (before, run.passed) == ([], True)


def test_another_kind_of_server_replaces_it(tmp_path: Path) -> None:
    task = make_task(tmp_path / "repo", test_it="def test_it(): pass\n")
    episode(task)
    strict = task.model_copy(update={"entrypoint": ("python", "-W", "error", "-m", "pytest", "-q")})
    before, run, after = episode(strict)
    assert run.passed
    assert run.result.warm
    assert len(before) == len(after) == 1
    assert before != after
