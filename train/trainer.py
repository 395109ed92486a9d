"""TRL's trainer, with a collator of its own for the rows that train."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trl.trainer.sft_trainer import SFTTrainer

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
