"""A small repository, and a sandbox of each isolating kind in which nothing is trusted."""

from collections.abc import Generator
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.records import Task
from support.folder_tasks import folder_task
from support.sandboxes.sandbox_backends import ISOLATED

LIMITS = SandboxConfig(memory_mb=256, pids=64, disk_mb=32)
FILES = {
    "app.py": "def double(n):\n    return n + n\n",
    "tests/test_app.py": "from app import double\n\n\ndef test_double():\n    assert double(2) == 4\n",
}


@pytest.fixture
def small_task(tmp_path: Path) -> Task:
    """A task whose repository is a folder."""
    return folder_task(tmp_path / "project", FILES, id="small")


@pytest.fixture(params=ISOLATED)
def cell(request: pytest.FixtureRequest, small_task: Task) -> Generator[WardenSandbox]:
    """A fresh sandbox, which must still work after the attack."""
    config = LIMITS.model_copy(update={"kind": request.param})
    with open_sandbox(small_task, config, trusted=False) as sandbox:
        yield sandbox
        assert sandbox.run(["echo", "alive"], timeout=60).output == "alive\n"
