"""TRL's trainer, with a collator of its own for the rows that train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trl.trainer.sft_trainer import SFTTrainer

from gumshoe.errors import ConfigError
from gumshoe.train.result import is_sharded

__all__ = ["Trainer"]


class Trainer(SFTTrainer):
    """`train_collator` makes the batches that train; held-out rows are measured as they are."""

    train_collator: Callable[..., Any] | None = None

    def get_train_dataloader(self) -> Any:
        """The batches of an epoch."""
        plain: Any = self.data_collator
        changing: Any = self.train_collator or plain
        try:
            self.data_collator = changing
            return super().get_train_dataloader()
        finally:
            self.data_collator = plain

    judge: Callable[[Any], float] | None = None
    """Measures the model by live episodes, at every evaluation."""

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """What held-out rows give, and the seeker's score, where it is wanted."""
        output: Any = super().evaluation_loop(*args, **kwargs)
        if self.judge is not None:
            prefix = kwargs.get("metric_key_prefix", "eval")
            output.metrics[f"{prefix}_seeker_score"] = self._judged(self.judge)
        return output

    def _judged(self, judge: Callable[[Any], float]) -> float:
        """The first process plays, the others wait for what came of it. Raises ConfigError where none can."""
        from accelerate.utils import broadcast_object_list

        if is_sharded(self):
            raise ConfigError("best: seeker needs the whole model on each device: use best: eval_loss with sharding")
        model: Any = self.accelerator.unwrap_model(self.model)
        score: list[Any] = [judge(model) if self.is_world_process_zero() else None]
        return float(broadcast_object_list(score)[0])
