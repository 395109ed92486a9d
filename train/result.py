"""The result of a run: a model folder that transformers, vLLM and `gumshoe serve` can load directly."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["TrainResult", "is_sharded", "put_in_place", "torch_threads", "write_model"]

OutcomeT = TypeVar("OutcomeT")


@dataclass(frozen=True)
class TrainResult(Generic[OutcomeT]):
    """Where the model is and the outcome of the run; `outcome` is None if an earlier start had finished it."""

    model: Path
    log: Path
    outcome: OutcomeT | None


def write_model(
    model: Any, tokenizer: PreTrainedTokenizerBase, folder: Path, *, state: dict[str, Any] | None = None, bf16: bool
) -> None:
    """Writes weights, tokenizer, template and generation config.

    Args:
        model: the model, adapters merged.
        tokenizer: its tokenizer, with the template that is served.
        folder: an existing folder.
        state: the weights, where the model itself holds only a part of them.
        bf16: store the weights in bfloat16, as they were computed with.
    """
    import torch

    if bf16:
        model.to(torch.bfloat16)
        state = None if state is None else {name: value.to(torch.bfloat16) for name, value in state.items()}
    _end_turns(model, tokenizer)
    model.save_pretrained(str(folder), **({} if state is None else {"state_dict": state}))
    model.generation_config.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))


def is_sharded(trainer: Any) -> bool:
    """Whether each process holds only a part of the weights (FSDP, ZeRO-3)."""
    from accelerate.utils import DistributedType

    return trainer.accelerator.distributed_type in {DistributedType.FSDP, DistributedType.DEEPSPEED}


def _end_turns(model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Makes generation stop at the token that ends a turn, in addition to where it stopped before."""
    known = model.generation_config.eos_token_id
    ends: list[int] = [] if known is None else list(known) if isinstance(known, list) else [known]
    if tokenizer.eos_token_id not in ends:
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, *ends]
    if model.generation_config.pad_token_id is None:
        model.generation_config.pad_token_id = tokenizer.pad_token_id


@contextmanager
def put_in_place(target: Path) -> Generator[Path]:
    """A folder to fill beside `target`; renamed to it if all goes well, removed otherwise."""
    fresh = target.with_name(f".{target.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        yield fresh
        fresh.replace(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def torch_threads(count: int | None) -> Generator[None]:
    """Uses `count` threads inside the block; None: as many as there were."""
    import torch

    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
