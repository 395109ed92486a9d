"""Sandboxes of every kind, one for a module's tests that leave nothing behind, or a fresh one."""

from collections.abc import Generator
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.sandboxes.channel import Link
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.staging import stage
from gumshoe.records import Task
from support.folder_tasks import folder_task, write_files
from support.sandboxes.forked import ForkedBackend
from support.sandboxes.sandbox_backends import ISOLATED

FILES = {
    "app.py": "def double(n):\n    return n + n\n",
    "pkg/core.py": "NAME = 'core'\nprint(NAME)\n",
    "test_app.py": "from app import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
}


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small repository."""
    return write_files(tmp_path_factory.mktemp("project"), FILES)


@pytest.fixture(scope="session")
def task(project: Path) -> Task:
    return folder_task(project, id="small")


@pytest.fixture(scope="module", params=[*ISOLATED, "forked"])
def shared(request: pytest.FixtureRequest, task: Task) -> Generator[WardenSandbox]:
    """One sandbox for the tests of a module; the forked one is the local one, as coverage can see it."""
    if request.param == "forked":
        config = SandboxConfig(kind="local", unsafe=True, pids=128, disk_mb=64)
        with WardenSandbox(Link(ForkedBackend(config), 1 << 18)) as sandbox:
            stage(sandbox, task, config.setup_timeout_s)
            yield sandbox
    else:
        config = SandboxConfig(kind=request.param, pids=128, disk_mb=64)
        with open_sandbox(task, config, trusted=True) as sandbox:
            yield sandbox


@pytest.fixture
def sandbox(shared: WardenSandbox) -> Generator[WardenSandbox]:
    """The shared sandbox; its workspace is put back afterwards."""
    before = shared.snapshot()
    yield shared
    shared.restore(before)
