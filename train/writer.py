"""A model that is in this process as a writer of turns, for live episodes between two steps of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gumshoe.train.live import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["Writer"]


class Writer:
    """Writes the likeliest next turn.

    Args:
        model: in whatever mode; it is put back into it.
        tokenizer: of the model.
        template: the chat template that is served.
        tools: schemas of the tools.
        max_tokens: most tokens of a turn.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: PreTrainedTokenizerBase,
        template: str,
        tools: list[dict[str, Any]],
        max_tokens: int,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._template = template
        self._tools = tools
        self._max_tokens = max_tokens

    def __call__(self, messages: Sequence[Message]) -> str:
        """The text of the turn that follows, its end token left off."""
        import torch

        render: Any = self._tokenizer.apply_chat_template
        encoded = render(
            list(messages),
            tools=self._tools,
            chat_template=self._template,
            add_generation_prompt=True,
            return_dict=True,
            return_tensors="pt",
        )
        prompt = encoded["input_ids"].to(self._model.device)
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                written = self._model.generate(
                    input_ids=prompt,
                    attention_mask=torch.ones_like(prompt),
                    max_new_tokens=self._max_tokens,
                    do_sample=False,
                    pad_token_id=self._tokenizer.pad_token_id,
                    eos_token_id=self._tokenizer.eos_token_id,
                )
        finally:
            self._model.train(was_training)
        ids = written[0][prompt.shape[1] :].tolist()
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
