"""Loading of models and tokenizers, with errors that say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gumshoe.errors import ConfigError
from gumshoe.train.config import TrainConfig

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["load_model", "load_tokenizer"]


def load_tokenizer(model: str, revision: str | None) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub id. Raises ConfigError."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision or "main")
    except (OSError, ValueError, KeyError) as error:
        raise _cannot_load(model, error) from None
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(model: str, config: TrainConfig) -> PreTrainedModel:
    """The model, in bfloat16 where the config trains in it, else in float32. Raises ConfigError."""
    import torch
    from transformers import AutoModelForCausalLM

    dtype = torch.bfloat16 if config.bf16 and config.method == "lora" else torch.float32
    try:
        return AutoModelForCausalLM.from_pretrained(model, revision=config.revision or "main", dtype=dtype)
    except (OSError, ValueError, KeyError) as error:
        raise _cannot_load(model, error) from None


def _cannot_load(model: str, error: Exception) -> ConfigError:
    reason = " ".join(str(error).split())
    short = reason if len(reason) <= 200 else f"{reason[:199]}…"
    return ConfigError(f"model {model} cannot be loaded: give a model folder, or the id of a hub model ({short})")
