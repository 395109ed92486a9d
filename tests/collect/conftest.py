"""Small task sets whose tests take a few milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gumshoe.collect.config import CollectConfig
from gumshoe.config import validate
from support.sandboxes.sandbox_backends import LOCAL_SETTINGS
from support.shop_tasks import make_taskset


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., CollectConfig]:
    """Makes a config of a teacher's run in the local sandbox; dotted names override."""

    def make(tasks: int = 2, **changes: object) -> CollectConfig:
        folder = make_taskset(tmp_path / "tasks", tasks)
        data: dict[str, object] = {
            "out": str(tmp_path / "run"),
            "tasks": {"source": str(folder)},
            "policy": {"kind": "teacher", "explore": 0.0},
            "sandbox": LOCAL_SETTINGS,
            **changes,
        }
        return validate(CollectConfig, data, origin="test")

    return make


@pytest.fixture
def config_file(config: Callable[..., CollectConfig], tmp_path: Path) -> Callable[..., Path]:
    """Writes such a config to a file."""

    def make(tasks: int = 2, **changes: object) -> Path:
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(config(tasks, **changes).model_dump(mode="json")), encoding="utf-8")
        return path

    return make
