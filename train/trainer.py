"""TRL's trainer, with live episodes in addition to the loss on held-out rows."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from peft.utils.other import TrainableTokensWrapper
from torch.nn.functional import cross_entropy
from trl.trainer.sft_trainer import SFTTrainer

from gumshoe.errors import ConfigError
from gumshoe.train.render import UNTRAINED
from gumshoe.train.result import is_sharded

__all__ = ["Trainer"]


class Trainer(SFTTrainer):
    """Measures live episodes at every evaluation, and computes the training loss in less time on a processor."""

    judge: Callable[[Any], float] | None = None
    """Plays live episodes with the model and returns their mean reward; None: no episodes are played."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model: Any = self.model
        last: Any = model.get_output_embeddings()
        if isinstance(last, TrainableTokensWrapper):
            # TRL reads the weight and the bias of the last layer; PEFT's layer, which stands for it, has the weight.
            layer: Any = last.original_module
            last.register_parameter("bias", layer.bias)

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: torch.Tensor | int | None = None,
    ) -> Any:
        """The loss as TRL computes it: the mean negative log-likelihood of the trained tokens.

        TRL computes it from tiles of the logits, which saves memory and is quick with Triton. Without Triton it takes
        half of the time of a step (SmolLM2-135M, rows of 2,000 tokens, two cores). So on a processor, the logits of the
        trained tokens are computed at once. TRL's entropy and token accuracy are not logged in that case.
        """
        if self.args.device.type != "cpu" or return_outputs or not model.training or not self._takes_positions:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        targets = inputs["labels"][:, 1:]
        positions = (targets != UNTRAINED).any(dim=0).nonzero().flatten()
        given = {name: value for name, value in inputs.items() if name != "labels"}
        logits = model(**given, use_cache=False, logits_to_keep=positions).logits
        kept = targets[:, positions].flatten()
        loss = cross_entropy(logits.flatten(0, 1).float(), kept, ignore_index=UNTRAINED, reduction="sum")
        if num_items_in_batch is None:
            return loss / (kept != UNTRAINED).sum().clamp(min=1)
        # The number counts the tokens of all processes, and the gradients of processes are averaged.
        return loss * self.accelerator.num_processes / torch.as_tensor(num_items_in_batch).clamp(min=1)

    @functools.cached_property
    def _takes_positions(self) -> bool:
        """Whether the model can compute the logits of chosen tokens only, and its loss has no other part."""
        model: Any = self.accelerator.unwrap_model(self.model)
        if hasattr(model, "get_base_model"):
            model = model.get_base_model()
        return not self.aux_loss_enabled and "logits_to_keep" in inspect.signature(type(model).forward).parameters

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """The metrics on held-out rows, and the seeker's score, if it is wanted."""
        output: Any = super().evaluation_loop(*args, **kwargs)
        if self.judge is not None:
            prefix = kwargs.get("metric_key_prefix", "eval")
            output.metrics[f"{prefix}_seeker_score"] = self._judged(self.judge)
        return output

    def _judged(self, judge: Callable[[Any], float]) -> float:
        """The first process plays, the others wait for its score. Raises ConfigError if the model is sharded."""
        from accelerate.utils import broadcast_object_list

        if is_sharded(self):
            raise ConfigError("best: seeker needs the whole model on each device: use best: eval_loss with sharding")
        model: Any = self.accelerator.unwrap_model(self.model)
        score: list[Any] = [judge(model) if self.is_world_process_zero() else None]
        return float(broadcast_object_list(score)[0])
