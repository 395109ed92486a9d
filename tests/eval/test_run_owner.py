"""A run folder belongs to one command: the others refuse it, and leave it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.collect.config import CollectConfig
from gumshoe.config import dump_config, load_config
from gumshoe.eval.config import EvalConfig
from gumshoe.train.config import TrainConfig

COLLECT, EVAL, TRAIN = Path("collect/demo"), Path("eval/heuristics"), Path("train/smollm2")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("command", "config", "owner"),
    [
        ("eval", EVAL, load_config(CollectConfig, COLLECT)),
        ("eval", EVAL, load_config(TrainConfig, TRAIN)),
        ("collect", COLLECT, load_config(EvalConfig, EVAL)),
        ("collect", COLLECT, load_config(TrainConfig, TRAIN)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_another_commands_folder_is_refused_before_anything_is_written(
    tmp_path: Path,
    command: str,
    config: Path,
    owner: CollectConfig | EvalConfig | TrainConfig,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text(dump_config(owner))
    (folder / "results.jsonl").write_text("years of work\n")
    before = content(tmp_path)
    assert main([command, str(config), "-p", f"out={folder}"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "choose another folder" in said
    assert content(tmp_path) == before
    assert sorted(path.name for path in folder.iterdir()) == ["config.yaml", "results.jsonl"]
