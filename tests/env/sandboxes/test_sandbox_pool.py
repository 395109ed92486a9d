"""Warm sandboxes: they come back as they were at the start, or not at all; and those prepared ahead are as new."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gumshoe.env import DebugEnv, SandboxConfig, open_sandbox
from gumshoe.env.inside.warden.state import mounts
from gumshoe.env.sandboxes import open as opening
from gumshoe.env.sandboxes.bubblewrap import BubblewrapBackend
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.link import Link
from gumshoe.env.sandboxes.open import close_pools
from gumshoe.env.sandboxes.pool import PreparedSandboxes, SandboxPool, closed_later
from gumshoe.errors import SandboxClosed, SandboxError
from gumshoe.records import Task, ToolCall
from support.sandboxes.sandbox_backends import ISOLATED, LOCAL

Start = Callable[[], Link]


@pytest.fixture(params=ISOLATED)
def start(request: pytest.FixtureRequest, task: Task) -> Start:
    """Starts a blank sandbox."""
    config = SandboxConfig(kind=request.param, disk_mb=64)

    def start_one() -> Link:
        if request.param in ("docker", "podman"):
            from gumshoe.env.sandboxes.containers.engine import ENGINES
            from gumshoe.env.sandboxes.docker import DockerBackend

            return Link(DockerBackend(task, config, ENGINES[request.param]), 1 << 18)
        from gumshoe.env.sandboxes.bubblewrap import BubblewrapBackend

        return Link(BubblewrapBackend(config, "/workspace"), 1 << 18)

    return start_one


def test_a_sandbox_is_used_again_and_is_blank(start: Start) -> None:
    with SandboxPool(start, 1) as pool:
        lease = pool.lease()
        sandbox = WardenSandbox(lease)
        sandbox.write_file("left.py", b"x")
        sandbox.run(["sh", "-c", "mkdir -p ~/.cache/a; touch ~/.cache/a/b /tmp/left /dev/shm/left"])
        session = sandbox.open_session(["sleep", "1000"])
        snapshot = sandbox.snapshot()
        sandbox.close()
        sandbox.close()
        pool.fill()
        assert pool.ready == 1
        with pytest.raises(SandboxClosed):
            sandbox.run(["true"])
        with pytest.raises(SandboxClosed):
            session.wait_message(1)
        second = pool.lease()
        assert second.warm is lease.warm
        again = WardenSandbox(second)
        assert again.walk() == []
        seen = again.run(["sh", "-c", "ls -A ~ /tmp /dev/shm; cat /proc/[0-9]*/comm"]).output
        assert "left" not in seen
        assert "sleep" not in seen
        with pytest.raises(SandboxError, match="no such snapshot"):
            again.restore(snapshot)
        again.close()


def test_others_are_started_ahead_and_no_more_than_wanted_are_kept(start: Start) -> None:
    with SandboxPool(start, 2) as pool:
        first = WardenSandbox(pool.lease())
        pool.fill()
        assert pool.ready == 1
        second, third = WardenSandbox(pool.lease()), WardenSandbox(pool.lease())
        for sandbox in (first, second, third):
            sandbox.close()
        pool.fill()
        assert pool.ready == 2


@pytest.mark.parametrize(
    "attack",
    [
        "chmod 700 /tmp",
        "chmod 755 /workspace",
        "python3 -c 'import ctypes; ctypes.CDLL(None).shmget(0, 4096, 0o1600)'",
        "touch /dev/left",
    ],
)
def test_what_cannot_be_cleared_is_thrown_away(start: Start, attack: str) -> None:
    with SandboxPool(start, 1) as pool:
        first = pool.lease()
        done = WardenSandbox(first).run(["sh", "-c", attack]).exit_code == 0
        first.close()
        pool.fill()
        second = pool.lease()
        assert (second.warm is not first.warm) == done
        second.close()


def test_a_pool_whose_sandboxes_do_not_start() -> None:
    def fail() -> Link:
        raise SandboxError("not today")

    with SandboxPool(fail, 2) as pool:
        for _ in range(2):
            with pytest.raises(SandboxError, match="not today"):
                pool.lease()
        with pytest.raises(SandboxError, match="not today"):
            pool.fill()


def test_a_closed_pool(start: Start) -> None:
    pool = SandboxPool(start, 1)
    sandbox = WardenSandbox(pool.lease())
    pool.close()
    pool.close()
    assert pool.ready == 0
    with pytest.raises(SandboxClosed):
        pool.lease()
    assert sandbox.run(["true"]).exit_code == 0
    sandbox.close()
    assert pool.ready == 0


@pytest.mark.parametrize("kind", ISOLATED)
def test_a_pool_by_config(kind: str, task: Task, request: pytest.FixtureRequest) -> None:
    config = SandboxConfig(kind=kind, pool=1)  # pyright: ignore[reportArgumentType]
    request.addfinalizer(close_pools)
    for _ in range(3):
        with open_sandbox(task, config, trusted=False) as sandbox:
            assert [entry.path for entry in sandbox.walk(depth=1)] == ["app.py", "pkg", "test_app.py"]
            sandbox.write_file("more.py", b"")
            assert sandbox.run(["python", "-c", "import app; print(app.double(2))"]).output == "4\n"


@pytest.mark.needs("bubblewrap")
def test_the_pools_of_one_environment_are_closed(task: Task, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(close_pools)

    def started() -> str:
        """When the sandbox was started that is used."""
        with open_sandbox(task, SandboxConfig(kind="bubblewrap", pool=1), trusted=False) as sandbox:
            return sandbox.run(["cat", "/proc/1/stat"]).output.split()[21]

    first = started()
    close_pools({"0123456789abcdef"})
    assert started() == first
    close_pools({None})
    assert started() != first


@pytest.mark.needs("bubblewrap")
def test_pools_that_were_not_used_for_longest_are_closed(
    task: Task, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    request.addfinalizer(close_pools)
    close_pools()
    monkeypatch.setattr(opening, "MOST_POOLS", 2)

    def started(kind: int) -> str:
        """When the sandbox was started that is used. Sandboxes with other limits are of another kind."""
        config = SandboxConfig(kind="bubblewrap", pool=1, pids=100 + kind)
        with open_sandbox(task, config, trusted=False) as sandbox:
            return sandbox.run(["cat", "/proc/1/stat"]).output.split()[21]

    first, second = started(0), started(1)
    assert started(0) == first
    started(2)
    assert started(0) == first
    assert started(1) != second


def test_local_has_no_pool(task: Task) -> None:
    with open_sandbox(task, LOCAL.model_copy(update={"pool": 2}), trusted=True) as sandbox:
        assert sandbox.run(["true"]).exit_code == 0


TWO_LEASES = """
from gumshoe.env.sandboxes.bubblewrap import BubblewrapBackend
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes import open as opening
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.link import Link
from gumshoe.env.sandboxes.pool import SandboxPool

config = SandboxConfig(disk_mb=64, packages=())
with SandboxPool(lambda: Link(BubblewrapBackend(config, "/workspace"), 1 << 18), 1) as pool:
    first = pool.lease()
    sandbox = WardenSandbox(first)
    assert sandbox.run([sandbox.python, "-c", "open('/tmp/left', 'w')"]).exit_code == 0
    first.close()
    second = pool.lease()
    print(sandbox.python, second.warm is first.warm, WardenSandbox(second).run(["ls", "/tmp"]).output.split())
    second.close()
"""


@pytest.mark.needs("bubblewrap")
def test_a_python_below_the_temporary_folder_does_not_keep_a_sandbox_from_being_used_again() -> None:
    # Not pytest's tmp_path, which another TMPDIR would put elsewhere.
    with tempfile.TemporaryDirectory(prefix="gumshoe-venv-", dir="/tmp") as folder:
        venv = Path(folder, "a b", "venv")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", str(venv)], check=True)
        told = subprocess.run(
            [str(venv / "bin" / "python"), "-c", TWO_LEASES],
            env={**os.environ, "PYTHONPATH": ":".join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
        start, _, names = told.stdout.partition(" [")
        assert start == f"{venv}/bin/python True", told.stderr
        # The checkout itself may be below /tmp and is mounted then.
        assert f"'{Path(folder).name}'" in names
        assert "'left'" not in names


def test_mount_points_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 0:21 / / ro,relatime - tmpfs tmpfs rw\n"
        "23 22 0:22 / /tmp/a\\040b\\134 rw,nosuid shared:1 - tmpfs tmpfs rw,size=1k\n"
    )
    assert mounts(str(table)) == {"/": "ro", "/tmp/a b\\": "rw"}


def test_a_sandbox_that_failed_once_is_not_used_again(start: Start) -> None:
    with SandboxPool(start, 1) as pool:
        first = pool.lease()
        with pytest.raises(SandboxError):
            first.ask("no_such_operation")
        first.close()
        pool.fill()
        second = pool.lease()
        assert second.warm is not first.warm
        second.close()


# --- prepared ahead, for tasks that change all of their sandbox

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
