"""A trajectory says which image its container was made from."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.sandboxes.containers.engine import image_digest
from gumshoe.records import Task, WorkspaceSpec


def a_task(folder: Path) -> Task:
    spec = WorkspaceSpec(path=str(folder))
    return Task(id="t", source="test", problem_statement="", workspace=spec, entrypoint=("true",))


@pytest.mark.needs("docker")
def test_a_container_has_the_digest_of_its_image(tmp_path: Path) -> None:
    config = SandboxConfig(kind="docker")
    with closing(DebugEnv(a_task(tmp_path), tools=("eval",), sandbox=config, trusted=True)) as env:
        env.reset()
        digest = env.describe().image_digest
    assert digest is not None
    assert digest.startswith("sha256:")
    assert digest == image_digest(config.image)


def test_a_sandbox_without_an_image_has_none(tmp_path: Path) -> None:
    config = SandboxConfig(kind="local", unsafe=True)
    with closing(DebugEnv(a_task(tmp_path), tools=("eval",), sandbox=config, trusted=True)) as env:
        env.reset()
        assert env.describe().image_digest is None
