"""Generates turns with the model that is being trained, for live episodes between two optimizer steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gumshoe.train.encoding import encode_chat
from gumshoe.train.live import GeneratedTurn, Request

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["GreedyGenerator"]


class GreedyGenerator:
    """Generates the next turn by greedy decoding.

    Args:
        model: left in the mode (training or evaluation) that it was in.
        tokenizer: of the model.
        template: the chat template that is served.
        max_tokens: maximum number of tokens in a turn.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: PreTrainedTokenizerBase,
        template: str,
        max_tokens: int,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._template = template
        self._max_tokens = max_tokens

    def __call__(self, request: Request) -> GeneratedTurn:
        """The next turn, without its end token."""
        import torch

        encoded = encode_chat(
            self._tokenizer,
            self._template,
            request.messages,
            request.tools,
            add_generation_prompt=True,
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
        text = str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
        return GeneratedTurn(text, cut_off=not ids or ids[-1] != self._tokenizer.eos_token_id)
