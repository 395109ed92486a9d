"""Estimates what a run will take before it is started: memory and time, term by term.

Memory, on each device, with P parameters of which T train, on D devices that share them (1 without sharding):

    weights      P x bytes / D        4 bytes in float32, 2 in bfloat16 (adapters), about 0.55 in 4 bits
    gradients    T x 4 / D            float32 (2 bytes where adapters train in bfloat16 weights)
    optimizer    T x 8 / D            AdamW: two numbers per trained weight
    activations  B x L tokens x layers x width x 34 bytes, or x 2 bytes with checkpointing plus one layer in full
    logits       B x L x vocabulary x 10 bytes: bfloat16, and float32 with its gradient

34 bytes per token, layer and unit of width is the count of Korthikanti et al. (2022, "Reducing Activation
Recomputation") without the attention matrix, which a fused attention does not keep; the feed-forward part is scaled by
its real width.

Time: 6 x active parameters x tokens floating point operations (2 forward, 4 backward), 4 with adapters (no gradients of
weights), 8 and 6 with checkpointing, plus attention (12 x layers x heads x head width x length / 2 per token), divided
by what the devices reach. The share of the peak that is reached is a guess, and a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.errors import ConfigError
from gumshoe.train.config import TrainConfig
from gumshoe.train.shapes import SHAPES, Shape, read_shape
from gumshoe.train.starting_point import local_model

__all__ = ["DEVICES", "Device", "TrainingEstimate", "as_table", "estimate", "shape_of"]

GB = 1e9


@dataclass(frozen=True)
class Device:
    """An accelerator: memory in GB, dense bfloat16 peak in TFLOP/s, as its maker states them."""

    name: str
    memory_gb: float
    peak_tflops: float


DEVICES = {
    device.name: device
    for device in (
        Device("a100-40gb", 40, 312),
        Device("a100-80gb", 80, 312),
        Device("h100-80gb", 80, 989),
        Device("h200", 141, 989),
        Device("l40s", 48, 362),
        Device("rtx4090", 24, 165),
    )
}


@dataclass(frozen=True)
class TrainingEstimate:
    """Gigabytes on each device, by what they hold, and seconds."""

    parameters: int
    trained: int
    memory_gb: dict[str, float]
    flops: float
    seconds: float

    @property
    def total_gb(self) -> float:
        """The memory of all parts together, in GB."""
        return sum(self.memory_gb.values())


def shape_of(config: TrainConfig) -> Shape:
    """The sizes of the config's model: known by name, or read from its folder or file.

    Raises:
        ConfigError: they are not known.
    """
    if config.model in SHAPES:
        return SHAPES[config.model]
    stored = Path(local_model(config.model)) / "config.json"
    if stored.is_file():
        return read_shape(stored)
    known = ", ".join(sorted(SHAPES))
    raise ConfigError(
        f"the sizes of {config.model} are not known: give a model folder, a .gguf file, or one of {known}"
    )


def estimate(
    config: TrainConfig, *, tokens: float, device: Device, devices: int = 1, sharded: bool = False, mfu: float = 0.4
) -> TrainingEstimate:
    """What training on `tokens` tokens (one pass over the rows, padding included) takes.

    Args:
        config: the run.
        tokens: of all rows together.
        device: what it runs on.
        devices: how many of them.
        sharded: whether they share weights, gradients and optimizer (FSDP2, ZeRO-3).
        mfu: share of the devices' peak that is reached.

    Raises:
        ConfigError: the model's sizes are not known.
    """
    shape = shape_of(config)
    trained = shape.parameters if config.method == "full" else _adapters(shape, config)
    flops = _flops_a_token(config, shape) * tokens * config.epochs
    return TrainingEstimate(
        parameters=shape.parameters,
        trained=trained,
        memory_gb=_memory(config, shape, trained, devices if sharded else 1),
        flops=flops,
        seconds=flops / (devices * device.peak_tflops * 1e12 * mfu),
    )


def _memory(config: TrainConfig, shape: Shape, trained: int, shares: int) -> dict[str, float]:
    weight_bytes = {"full": 4.0, "lora": 2.0 if config.bf16 else 4.0, "qlora": 0.55}[config.method]
    row_tokens = config.batch * config.max_length
    layer = shape.hidden * 34 / 3 + 8 * shape.active_intermediate + 4 * (shape.heads + shape.kv_heads) * shape.head_dim
    wide = 1.0 if config.bf16 else 2.0
    if config.gradient_checkpointing:
        activations = row_tokens * (shape.layers * shape.hidden * 2 + layer) * wide
    else:
        activations = row_tokens * shape.layers * layer * wide
    bytes_by_part = {
        "weights": shape.parameters * weight_bytes / shares,
        "gradients": trained * 4 / shares,
        "optimizer": trained * 8 / shares,
        "activations": activations,
        "logits": row_tokens * shape.vocab * (10.0 if config.bf16 else 12.0),
    }
    return {name: size / GB for name, size in bytes_by_part.items()}


def _flops_a_token(config: TrainConfig, shape: Shape) -> float:
    passes = (6 if config.method == "full" else 4) + (2 if config.gradient_checkpointing else 0)
    attention = 2 * shape.layers * shape.heads * shape.head_dim * config.max_length
    return passes * (shape.active_parameters + attention / 2)


def _adapters(shape: Shape, config: TrainConfig) -> int:
    """Adapter weights on the layers that get adapters."""
    targets = config.lora.targets
    return config.lora.rank * sum(
        rows + columns for name, rows, columns in shape.linear_layers() if targets == "all-linear" or name in targets
    )


def as_table(found: TrainingEstimate, device: Device, devices: int) -> list[tuple[str, str]]:
    """The estimate in words: (what, how much)."""
    rows: list[tuple[str, Any]] = [
        ("parameters", f"{found.parameters / 1e9:.2f} billion, {found.trained / 1e9:.3f} billion train"),
        *((name, f"{size:.1f} GB") for name, size in found.memory_gb.items()),
        ("memory on each device", f"{found.total_gb:.1f} of {device.memory_gb:g} GB"),
        ("computing", f"{found.flops:.2e} floating point operations"),
        ("time", f"{found.seconds / 3600:.2f} hours on {devices} x {device.name}"),
    ]
    return rows
