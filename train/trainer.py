"""TRL's trainer, with live episodes in addition to the loss on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trl.trainer.sft_trainer import SFTTrainer

from gumshoe.errors import ConfigError
from gumshoe.train.result import is_sharded

__all__ = ["Trainer"]


class Trainer(SFTTrainer):
    """Measures live episodes at every evaluation."""

    judge: Callable[[Any], float] | None = None
    """Plays live episodes with the model and returns their mean reward; None: no episodes are played."""

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
