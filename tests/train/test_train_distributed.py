"""Two processes on gloo give what one gives; the shipped accelerate configs are read by accelerate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from gumshoe.cli import main
from support.train.tiny_model import tiny_model

CONFIGS = Path(__file__).parents[2] / "configs" / "accelerate"
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


def train(dataset: Path, out: Path, batch: int, *flags: object) -> list[dict[str, float]]:
    config = {"out": str(out), "dataset": str(dataset), "model": str(tiny_model()), "max_length": 1024, "max_steps": 3}
    config |= {"batch": batch, "learning_rate": 0.01, "log_every": 1, "device": "cpu", "threads": 1}
    config |= {"eval_split": "test", "eval_every": 3}
    path = out.with_suffix(".yaml")
    path.write_text(json.dumps(config))
    command = [sys.executable, "-m", "gumshoe", "train", str(path), *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **OFFLINE}, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("model  ") == 1
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def test_two_processes_give_the_losses_of_one(dataset: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    alone = train(dataset, tmp_path / "one", 2)
    together = train(dataset, tmp_path / "two", 1, "--accelerate", CONFIGS / "cpu.yaml")
    for key in ("loss", "eval_loss", "eval_mean_token_accuracy"):
        one = [entry[key] for entry in alone if key in entry]
        assert one
        assert [entry[key] for entry in together if key in entry] == pytest.approx(one, rel=1e-4)
    first, second = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("one", "two"))
    assert first.keys() == second.keys()
    assert all(first[name].allclose(second[name], atol=1e-4) for name in first)


@pytest.mark.parametrize("name", ["fsdp2", "zero3", "cpu"])
def test_accelerate_reads_the_shipped_configs(name: str) -> None:
    from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file

    path = CONFIGS / f"{name}.yaml"
    read = load_config_from_file(str(path))
    assert isinstance(read, ClusterConfig)
    given = yaml.safe_load(path.read_text())
    assert str(read.distributed_type).endswith(given["distributed_type"])
    known = ClusterConfig.__dataclass_fields__
    assert given.keys() <= known.keys()


def test_a_missing_accelerate_config_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text(f"{{out: {tmp_path}/o, dataset: d, model: m}}")
    assert main(["train", str(tmp_path / "c.yaml"), "--accelerate", str(tmp_path / "no.yaml")]) == 2
    assert "there is no file" in capsys.readouterr().err
