"""Tokens that a model cannot write, since nothing has taught it to tell them from others.

Qwen2.5-Coder-0.5B-Instruct shares the row of `<tool_call>` in its output layer with 3,217 other tokens. Adapters of the
other layers cannot make the model prefer one of them: after 158 steps it wrote any of the others in its place, in 33
of 62 episodes to the end. So their own rows are trained as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gumshoe.train.render import UNTRAINED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["rows_to_train", "untaught_tokens", "written_tokens"]

SAME = 0.999
"""Cosine of two rows from which they are taken for the same."""
_PART = 16384


def rows_to_train(model: PreTrainedModel, tokens: Sequence[int]) -> dict[str, list[int]] | None:
    """The rows of the first and the last layer that adapters should train, as `trainable_token_indices` of PEFT.

    Args:
        model: the model, without adapters.
        tokens: tokens that the model shall write.

    None if it can tell all of them from others.
    """
    found = untaught_tokens(model, tokens)
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    names = [name for name, layer in model.named_modules() if any(layer is end for end in ends)]
    return dict.fromkeys(names, found) if found else None


def untaught_tokens(model: PreTrainedModel, tokens: Sequence[int]) -> list[int]:
    """Those of the tokens whose row in the output layer is that of another token."""
    import torch
    from torch.nn.functional import normalize

    last: Any = model.get_output_embeddings()
    if last is None or not tokens:
        return []
    with torch.no_grad():
        rows = normalize(last.weight[list(tokens)].float())
        parts = [(normalize(part.float()) @ rows.T > SAME).sum(dim=0) for part in last.weight.split(_PART)]
        same = torch.stack(parts).sum(dim=0).tolist()
    return [token for token, count in zip(tokens, same, strict=True) if count > 1]


def written_tokens(rows: Iterable[Sequence[int]], tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """The tokens that were added to the vocabulary, such as `<tool_call>`, and that these labels contain."""
    added = set(tokenizer.added_tokens_decoder)
    return sorted({token for labels in rows for token in labels if token != UNTRAINED} & added)
