"""Loads models and tokenizers, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError
from gumshoe.train.arguments import in_bf16
from gumshoe.train.config import TrainConfig
from gumshoe.train.trainer_config import TrainerConfig

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["check_targets", "load_model", "load_tokenizer", "load_weights", "merge_adapters"]


def load_tokenizer(model: str, revision: str | None) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub id. Raises ConfigError."""
    from transformers import AutoTokenizer

    with _loading(model):
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision or "main")
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        # Where there are no files of it, transformers makes an empty one.
        raise ConfigError(f"model {model} has no tokenizer: it lacks tokenizer.json or another file with a vocabulary")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(model: str, config: TrainConfig) -> PreTrainedModel:
    """The model, in the precision that the config trains it in. Raises ConfigError."""
    import torch

    if config.method == "qlora":
        return load_weights(model, config.revision, dtype=torch.bfloat16, quantization_config=_four_bits())
    dtype = torch.bfloat16 if config.method == "lora" and in_bf16(config) else torch.float32
    return load_weights(model, config.revision, dtype=dtype)


def load_weights(model: str, revision: str | None, **options: Any) -> PreTrainedModel:
    """The model as it is stored, in float32 unless told otherwise. Raises ConfigError."""
    import torch
    from transformers import AutoModelForCausalLM

    with _loading(model):
        return AutoModelForCausalLM.from_pretrained(
            model, revision=revision or "main", **{"dtype": torch.float32, **options}
        )


def check_targets(model: PreTrainedModel, adapters: LoraConfig) -> None:
    """Raises ConfigError if no layer of the model has a name that the adapters target."""
    from peft.tuners.tuners_utils import check_target_module_exists

    if adapters.target_modules == "all-linear":
        return
    names = [name for name, layer in model.named_modules() if not list(layer.children())]
    if not any(check_target_module_exists(adapters, name) for name in names):
        known = ", ".join(sorted({name.rpartition(".")[2] for name in names}))
        raise ConfigError(f"lora.targets: the model has no such layer; its layers are {known}")


def merge_adapters(model: str, adapters: Path, config: TrainerConfig) -> PreTrainedModel:
    """The model with its adapters merged: on the processor, into weights that were never reduced to 4 bits."""
    import torch
    from peft import PeftModel

    dtype = torch.bfloat16 if in_bf16(config) else torch.float32
    merged: Any = PeftModel.from_pretrained(load_weights(model, config.revision, dtype=dtype), str(adapters))
    return merged.merge_and_unload()


def _four_bits() -> Any:
    """Settings for 4-bit weights that are computed with in bfloat16. Raises ConfigError if that is not available."""
    import torch
    from transformers import BitsAndBytesConfig

    if find_spec("bitsandbytes") is None:
        raise ConfigError("method: qlora needs bitsandbytes: pip install bitsandbytes, or use method: lora")
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


@contextmanager
def _loading(model: str) -> Generator[None]:
    """Turns whatever a damaged model makes transformers raise, which may be anything, into a ConfigError."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except Exception as error:
        told = isinstance(error, (OSError, ValueError))
        reason = " ".join((str(error) if told else f"{type(error).__name__}: {error}").split())
        short = reason if len(reason) <= 200 else f"{reason[:199]}…"
        raise ConfigError(
            f"model {model} cannot be loaded: give a model folder, a .gguf file, or the id of a hub model ({short})"
        ) from None
