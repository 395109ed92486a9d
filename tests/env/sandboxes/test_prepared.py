"""Sandboxes that are prepared ahead for tasks that change all of theirs: the next one is there, and as new."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.sandboxes.bubblewrap import BubblewrapBackend
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.connection.link import Link
from gumshoe.env.sandboxes.open import close_pools, open_sandbox
from gumshoe.env.sandboxes.prepared import PreparedSandboxes, closed_later
from gumshoe.errors import SandboxClosed, SandboxError
from gumshoe.records import Task, ToolCall

pytestmark = pytest.mark.needs("bubblewrap")

Make = Callable[[], WardenSandbox]


@pytest.fixture
def made() -> list[WardenSandbox]:
    """The sandboxes that a test has started."""
    return []


@pytest.fixture
def make(task: Task, made: list[WardenSandbox]) -> Generator[Make]:
    """Starts a sandbox of a task with setup commands."""
    prepared = task.model_copy(update={"setup": (("sh", "-c", "echo ready > setup.txt"),)})

    def make_one() -> WardenSandbox:
        made.append(open_sandbox(prepared, SandboxConfig(kind="bubblewrap"), trusted=False))
        return made[-1]

    yield make_one
    for sandbox in made:
        sandbox.close()


def test_the_next_one_is_prepared_from_the_second_use_on(make: Make, made: list[WardenSandbox]) -> None:
    prepared = PreparedSandboxes(2)
    first = prepared.take("a", make)
    assert (len(made), prepared.waiting) == (1, 0)
    first.close()
    second = prepared.take("a", make)
    prepared.fill()
    assert (len(made), prepared.waiting) == (3, 1)
    second.write_file("left.txt", b"")
    second.close()
    third = prepared.take("a", make)
    assert third is made[2]
    assert third.read_file("setup.txt") == b"ready\n"
    with pytest.raises(FileNotFoundError):
        third.read_file("left.txt")
    prepared.close()
    prepared.close()
    assert not third.closed
    assert made[3:] == [] or made[3].closed


def test_no_more_wait_than_the_limit(make: Make, made: list[WardenSandbox]) -> None:
    prepared = PreparedSandboxes(1)
    for key in ("a", "a", "b", "b"):
        prepared.take(key, make).close()
        prepared.fill()
    assert prepared.waiting == 1
    prepared.close()
    assert all(sandbox.closed for sandbox in made)


def test_one_that_broke_while_it_waited_is_replaced(make: Make, made: list[WardenSandbox]) -> None:
    prepared = PreparedSandboxes(1)
    for _ in range(2):
        prepared.take("a", make).close()
    prepared.fill()
    made[2].close()
    taken = prepared.take("a", make)
    assert taken is not made[2]
    assert taken.run(["true"]).exit_code == 0
    prepared.close()


def test_one_that_could_not_be_prepared_is_started_when_it_is_needed(make: Make, made: list[WardenSandbox]) -> None:
    prepared = PreparedSandboxes(1)
    broken = [False]

    def make_or_fail() -> WardenSandbox:
        if broken[0]:
            raise SandboxError("not today")
        return make()

    prepared.take("a", make_or_fail)
    broken[0] = True
    made[-1].close()
    with pytest.raises(SandboxError, match="not today"):
        prepared.take("a", make_or_fail)
    broken[0] = False
    prepared.take("a", make_or_fail)
    broken[0] = True
    prepared.close()
    with_closed = prepared.take("b", make)
    assert prepared.waiting == 0
    assert with_closed.run(["true"]).exit_code == 0


def test_a_sandbox_that_is_closed_later() -> None:
    closers = ThreadPoolExecutor(1)
    sandboxes = [
        WardenSandbox(closed_later(Link(BubblewrapBackend(SandboxConfig(), "/workspace"), 1 << 18), closers))
        for _ in range(2)
    ]
    for sandbox in sandboxes:
        assert sandbox.run(["echo", "here"]).output == "here\n"
        sandbox.close()
        sandbox.close()
        assert sandbox.closed
        sandbox.give_up()
        with pytest.raises(SandboxClosed):
            sandbox.run(["true"])
        closers.shutdown(wait=True)


def test_episodes_of_a_task_with_setup_use_them(task: Task, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(close_pools)
    prepared = task.model_copy(update={"setup": (("sh", "-c", "date +%s%N > started.txt"),)})
    env = DebugEnv(prepared, sandbox=SandboxConfig(kind="bubblewrap", pool=1), trusted=True)
    seen: set[bytes] = set()
    for _ in range(3):
        env.reset(seed=0)
        seen.add(env.sandbox.read_file("started.txt"))
        assert [entry.path for entry in env.sandbox.walk(depth=1) if entry.path.endswith("new.py")] == []
        env.step(ToolCall(id="1", name="rewrite", arguments={"path": "new.py", "code": "x = 1\n"}))
    env.close()
    assert len(seen) == 3
