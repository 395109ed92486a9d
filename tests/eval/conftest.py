"""A model folder that is small enough to be made for a test, and a real server on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve import ModelServer
from support.shared import make_once


@pytest.fixture(scope="session")
def micro_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3 of two small layers that answers "good" and "bad" in known ways."""
    pytest.importorskip("torch", reason="making a model needs the extra `train`", exc_type=ImportError)
    pytest.importorskip("fastapi", reason="serving needs the extra `serve`", exc_type=ImportError)
    from support.eval.micro_model import make_micro_model

    return make_once(tmp_path_factory, "micro_model", make_micro_model)


@pytest.fixture(scope="session")
def served(micro_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """The micro model behind `transformers serve`, once for all tests; with a name and a prefix cache."""
    log = tmp_path_factory.mktemp("served") / "server.log"
    config = ServeConfig(backend="transformers", device="cpu", threads=1, name="seeker", prefix_cache=True)
    with ModelServer(micro_model, config, log=log) as server:
        yield server
