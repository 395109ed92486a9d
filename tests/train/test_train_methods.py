"""Adapters on few bits, half precision, checkpointed activations, trackers."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import ConfigError
from gumshoe.train.sft import train
from support.train.micro_config import make_config


@pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed here")
def test_four_bits_without_bitsandbytes_is_one_clear_line(start: Path, dataset: Path, tmp_path: Path) -> None:
    config = make_config(dataset, tmp_path / "run", model=str(start), method="qlora")
    with pytest.raises(ConfigError, match="method: qlora needs bitsandbytes: pip install bitsandbytes"):
        train(config)


def test_half_precision_is_stored_as_it_was_computed(start: Path, dataset: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    # Without an accelerator the trainer refuses bf16 unless the CPU is requested explicitly.
    options: dict[str, Any] = {"device": "auto", "bf16": True, "gradient_checkpointing": True, "max_steps": 1}
    result = train(make_config(dataset, tmp_path / "run", model=str(start), **options))
    weights = load_file(result.model / "model.safetensors")
    assert {str(weight.dtype) for weight in weights.values()} == {"torch.bfloat16"}
    assert result.outcome is not None
    assert result.outcome.loss is not None


def test_bfloat16_is_left_to_what_the_processor_has(start: Path, dataset: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    result = train(make_config(dataset, tmp_path / "run", model=str(start), bf16="auto", max_steps=1))
    weights = load_file(result.model / "model.safetensors")
    has_instructions = re.search(r"\b(avx512_bf16|amx_bf16|bf16)\b", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    assert {str(weight.dtype) for weight in weights.values()} == {
        "torch.bfloat16" if has_instructions else "torch.float32"
    }


def test_losses_go_to_a_tracker(start: Path, dataset: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": str(start), "max_steps": 1, "report_to": ("tensorboard",)}
    train(make_config(dataset, tmp_path / "run", **options))
    (events,) = (tmp_path / "run").rglob("events.out.tfevents.*")
    assert b"train/loss" in events.read_bytes()


def test_decisions_and_windows_train(start: Path, dataset: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"model": str(start), "max_steps": 1}
    decisions = train(make_config(dataset, tmp_path / "decisions", unit="decision", **common)).outcome
    assert decisions is not None
    assert decisions.rows == 18
    cut = train(make_config(dataset, tmp_path / "cut", too_long="windows", max_length=500, **common)).outcome
    assert cut is not None
    assert cut.rows > 6
