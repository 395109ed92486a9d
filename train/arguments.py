"""Gumshoe's config translated for TRL and peft."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError
from gumshoe.train.config import TrainConfig
from gumshoe.train.run_folder import CHECKPOINTS
from gumshoe.train.trainer_config import LoraSection, RowsConfig, TrainerConfig

if TYPE_CHECKING:
    from peft import LoraConfig
    from trl.trainer.sft_config import SFTConfig

__all__ = [
    "in_bf16",
    "lora_arguments",
    "on_accelerator",
    "rows_arguments",
    "sft_arguments",
    "trackers",
    "trainer_arguments",
]

_METRIC = {"last": None, "eval_loss": "eval_loss", "seeker": "eval_seeker_score"}


def sft_arguments(config: TrainConfig) -> SFTConfig:
    """The trainer's arguments. Rows come tokenized and checked, so that the trainer prepares nothing itself.

    Raises:
        ConfigError: a tracker is not known or not installed.
    """
    from trl.trainer.sft_config import SFTConfig

    return SFTConfig(
        **rows_arguments(config, eval_every=config.eval_every),
        # Packing is the one preparation that is left to the trainer; it cuts nothing that was checked to fit.
        dataset_kwargs={"skip_prepare_dataset": not config.packing},
        packing=config.packing,
        train_sampling_strategy="group_by_length" if config.by_length else "random",
        length_column_name="length",
        max_length=config.max_length,
        weight_decay=config.weight_decay,
        adam_beta2=config.beta2,
        ddp_find_unused_parameters=False,
        activation_checkpointing=config.gradient_checkpointing,
        load_best_model_at_end=config.best != "last",
        metric_for_best_model=_METRIC[config.best],
        greater_is_better=config.best == "seeker",
    )


def rows_arguments(config: RowsConfig, *, eval_every: int | None) -> dict[str, Any]:
    """What every trainer is told that goes over rows in epochs. Raises ConfigError."""
    return trainer_arguments(config) | {
        "num_train_epochs": config.epochs,
        "max_steps": config.max_steps,
        "per_device_train_batch_size": config.batch,
        "per_device_eval_batch_size": config.batch,
        "gradient_accumulation_steps": config.accumulate,
        "lr_scheduler_type": config.schedule,
        "warmup_steps": config.warmup,
        "logging_first_step": True,
        "eval_strategy": _when(eval_every) if config.eval_split is not None else "no",
        "eval_steps": eval_every,
        "save_strategy": _when(config.save_every),
        "save_steps": config.save_every or 500,
    }


def trainer_arguments(config: TrainerConfig) -> dict[str, Any]:
    """What every trainer is told. Raises ConfigError: a tracker is not known or not installed."""
    return {
        "output_dir": str(Path(config.out) / CHECKPOINTS),
        "learning_rate": config.learning_rate,
        "max_grad_norm": config.clip,
        "bf16": in_bf16(config),
        "seed": config.seed,
        "data_seed": config.seed,
        "use_cpu": not on_accelerator(config),
        "dataloader_pin_memory": on_accelerator(config),
        "logging_steps": config.log_every,
        "save_total_limit": config.keep,
        "report_to": trackers(config.report_to),
        "disable_tqdm": True,
    }


def lora_arguments(config: LoraSection) -> LoraConfig:
    """The adapters."""
    from peft import LoraConfig

    return LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=config.targets if isinstance(config.targets, str) else list(config.targets),
        task_type="CAUSAL_LM",
    )


def on_accelerator(config: TrainerConfig) -> bool:
    """Whether an accelerator is used. Without one, the trainer takes `bf16` only if told that processors are meant."""
    import torch

    return config.device == "auto" and torch.accelerator.is_available()


def in_bf16(config: TrainerConfig) -> bool:
    """Whether the model is computed in bfloat16. `auto` is True if the device has instructions for it.

    Without them a processor emulates bfloat16: on an AMD EPYC with AVX2, one matrix product of SmolLM2's output layer
    (1,024 rows) took 192 s, and 0.9 s in float32. `torch.cpu.get_capabilities` names the instructions.
    """
    import torch

    if config.bf16 != "auto":
        return config.bf16
    if not on_accelerator(config):
        return any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return not torch.cuda.is_available() or torch.cuda.is_bf16_supported(including_emulation=False)


def trackers(names: Sequence[str]) -> list[str]:
    """The trackers to report to, each of them known to transformers and installed. Raises ConfigError."""
    from transformers.integrations import integration_utils

    known = sorted(integration_utils.INTEGRATION_TO_CALLBACK)
    for name in names:
        if name not in known:
            raise ConfigError(f"report_to: {name!r} is not a tracker known to transformers: {', '.join(known)}")
        # For this one, transformers does not say whether it is installed.
        if name != "flyte" and name not in integration_utils.get_available_reporting_integrations():
            raise ConfigError(f"report_to: {name} is not installed here: pip install it, or leave it out")
    return list(names)


def _when(every: int | None) -> str:
    return "epoch" if every is None else "steps"
