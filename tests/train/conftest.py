from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the extra: pip install 'gumshoe-debug[train]'")
pytest.importorskip("trl", reason="needs the extra: pip install 'gumshoe-debug[train]'")

from gumshoe.train.config import TrainConfig
from gumshoe.train.model import load_tokenizer, training_template
from gumshoe.train.rows.render import Renderer
from gumshoe.train.run import TrainResult
from gumshoe.train.sft import train_sft
from support.shared import make_once
from support.train.tiny_model import make_config, tiny_model
from support.train.training_rows import row, write_dataset


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """One, also for what is made once for many tests: threads that wait for each other crawl on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    return write_dataset(folder, {"train": [row(number) for number in range(6)], "test": [row(8), row(9)]})


@pytest.fixture(scope="session")
def start() -> Path:
    """A tiny model with random weights, with the tokenizer of the dataset."""
    return tiny_model()


@pytest.fixture(scope="session")
def caller(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that has learnt to call tools."""

    def make(out: Path) -> None:
        train_sft(make_config(dataset, out, max_steps=30, learning_rate=1e-2))

    return make_once(tmp_path_factory, "caller", make) / "model"


@pytest.fixture(scope="session")
def renderer(start: Path) -> Renderer:
    tokenizer = load_tokenizer(str(start), None)
    return Renderer(tokenizer, training_template(tokenizer))


@pytest.fixture(scope="session")
def trained(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainConfig, TrainResult]:
    """A finished run of four steps with a checkpoint every two, for tests that only look at it."""
    config = make_config(dataset, tmp_path_factory.mktemp("runs") / "run", eval_split="test", save_every=2, keep=2)
    return config, train_sft(config)
