"""A damaged model folder is refused in one line, whatever is wrong with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.errors import ConfigError
from gumshoe.train.model import load_tokenizer, load_weights
from support.train.micro_config import make_config
from support.train.tiny_model import tiny_model

HALF = "half of what is there"
SIZES = '{"hidden_size": "big", "num_attention_heads": 2}'
UNKNOWN = '{"model_type": "nonesuch", "architectures": ["Nonesuch"]}'


def damaged(folder: Path, name: str, content: str | None) -> Path:
    """A copy of a model, with one of its files cut in half, replaced, or removed."""
    shutil.copytree(tiny_model(), folder)
    file = folder / name
    if content is None:
        file.unlink()
    elif content == HALF:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.write_text(content)
    return folder


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", HALF, "not a valid JSON file"),
        ("config.json", "[]", "cannot be loaded"),
        ("config.json", "null", "cannot be loaded"),
        ("config.json", SIZES, "cannot be loaded"),
        ("config.json", UNKNOWN, "model type `nonesuch`"),
        ("model.safetensors", HALF, "SafetensorError"),
        ("model.safetensors", None, "no file named model.safetensors"),
    ],
)
def test_weights_that_cannot_be_loaded(name: str, content: str | None, message: str, tmp_path: Path) -> None:
    folder = damaged(tmp_path / "model", name, content)
    with pytest.raises(ConfigError, match=message):
        load_weights(str(folder), None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", HALF, "cannot be loaded"),
        ("tokenizer.json", "[]", "cannot be loaded"),
        ("tokenizer.json", None, "has no tokenizer"),
        ("tokenizer_config.json", "[]", "cannot be loaded"),
    ],
)
def test_a_tokenizer_that_cannot_be_loaded(name: str, content: str | None, message: str, tmp_path: Path) -> None:
    folder = damaged(tmp_path / "model", name, content)
    if content is None:
        (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match=message):
        load_tokenizer(str(folder), None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", None, "is not a model folder: it holds no config.json"),
        ("config.json", HALF, "config.json cannot be read: it is not JSON"),
        ("model.safetensors", None, "is not a model folder: it holds no weights"),
    ],
)
def test_unpack_makes_nothing_of_half_a_model(
    name: str, content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = damaged(tmp_path / "model", name, content)
    assert main(["unpack", str(folder), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_train_refuses_in_one_line(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = damaged(tmp_path / "model", "config.json", "[]")
    config = tmp_path / "config.yaml"
    config.write_text(make_config(dataset, tmp_path / "run", model=str(folder)).model_dump_json())
    assert main(["train", str(config)]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gumshoe ")]
    assert f"model {folder} cannot be loaded" in line
