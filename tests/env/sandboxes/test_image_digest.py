"""A trajectory says which image its container was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.collect.episode.environments import LocalEnvironment
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.sandboxes.engine import image_digest
from gumshoe.records import Task, WorkspaceSpec


def a_task(folder: Path) -> Task:
    spec = WorkspaceSpec(path=str(folder))
    return Task(id="t", source="test", problem_statement="", workspace=spec, entrypoint=("true",))


@pytest.mark.needs("docker")
def test_a_container_has_the_digest_of_its_image(tmp_path: Path) -> None:
    config = SandboxConfig(kind="docker")
    environment = LocalEnvironment(DebugEnv(a_task(tmp_path), tools=("eval",), sandbox=config, trusted=True))
    try:
        digest = environment.reset(0).image_digest
    finally:
        environment.close()
    assert digest is not None
    assert digest.startswith("sha256:")
    assert digest == image_digest(config.image)


def test_a_sandbox_without_an_image_has_none(tmp_path: Path) -> None:
    environment = LocalEnvironment(
        DebugEnv(a_task(tmp_path), tools=("eval",), sandbox=SandboxConfig(kind="local", unsafe=True), trusted=True)
    )
    try:
        assert environment.reset(0).image_digest is None
    finally:
        environment.close()
