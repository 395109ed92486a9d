"""The loss that is computed on a processor is TRL's own, with its gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, MixtralConfig, MixtralForCausalLM, set_seed
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from gumshoe.train.config import LoraSection
from gumshoe.train.rows.render import UNTRAINED
from gumshoe.train.run import lora_arguments
from gumshoe.train.sft import SeekerTrainer
from support.train.tiny_model import tiny_model

ROWS = [
    {"input_ids": list(range(5, 35)), "labels": [UNTRAINED] * 4 + list(range(9, 20)) + [UNTRAINED] * 15},
    {"input_ids": list(range(40, 52)), "labels": [UNTRAINED] * 9 + [49, 50, 51]},
    {"input_ids": list(range(60, 69)), "labels": [60] + [UNTRAINED] * 8},  # the first token has no logits
]


def mixtral() -> Any:
    """A mixture of experts, whose loss has a part that logits do not tell."""
    set_seed(0)
    return MixtralForCausalLM(
        MixtralConfig(
            vocab_size=128,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            num_local_experts=2,
            router_aux_loss_coef=0.5,
        )
    )


def trainer_of(model: Any, out: Path, kind: str) -> SeekerTrainer:
    adapters = lora_arguments(LoraSection.model_validate({})) if "adapters" in kind else None
    if adapters is not None and kind == "adapters and rows":
        adapters.trainable_token_indices = {"model.embed_tokens": [10, 50], "lm_head": [10, 50]}
    arguments = SFTConfig(
        output_dir=str(out),
        per_device_train_batch_size=len(ROWS),
        dataset_kwargs={"skip_prepare_dataset": True},
        activation_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to=[],
    )
    return SeekerTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(ROWS),
        processing_class=AutoTokenizer.from_pretrained(tiny_model()),
        peft_config=adapters,
    )


def loss_and_gradients(kind: type[SFTTrainer], trainer: SeekerTrainer, tokens: int | None) -> tuple[float, list[Any]]:
    model: Any = trainer.model
    model.train()
    model.zero_grad()
    batch = trainer.data_collator(ROWS)
    count = None if tokens is None else torch.tensor(tokens)
    trainer.current_gradient_accumulation_steps = 1  # as the training loop sets it
    loss: Any = kind.compute_loss(trainer, model, batch, num_items_in_batch=count)
    loss.backward()
    return loss.item(), [each.grad.clone() for each in model.parameters() if each.grad is not None]


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("tokens", [None, 14])
@pytest.mark.parametrize("kind", ["all weights", "adapters", "adapters and rows", "experts"])
def test_it_is_the_loss_of_trl_with_its_gradients(kind: str, tokens: int | None, tmp_path: Path) -> None:
    model = mixtral() if kind == "experts" else AutoModelForCausalLM.from_pretrained(tiny_model())
    trainer = trainer_of(model, tmp_path, kind)
    loss, gradients = loss_and_gradients(SeekerTrainer, trainer, tokens)
    expected, theirs = loss_and_gradients(SFTTrainer, trainer, tokens)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert loss > 0
    assert len(gradients) == len(theirs) > 0
    for ours, other in zip(gradients, theirs, strict=True):
        torch.testing.assert_close(ours, other, rtol=1e-4, atol=1e-6)


def test_rows_without_trained_tokens_give_nothing(tmp_path: Path) -> None:
    trainer = trainer_of(AutoModelForCausalLM.from_pretrained(tiny_model()), tmp_path, "all weights")
    model: Any = trainer.model
    batch = trainer.data_collator([ROWS[2]])
    loss: Any = trainer.compute_loss(model.train(), batch)
    loss.backward()
    assert loss.item() == 0
    assert all(not each.grad.any() for each in model.parameters() if each.grad is not None)
