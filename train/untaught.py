"""Tokens that a model cannot write, since nothing has taught it to tell them from others.

Qwen2.5-Coder-0.5B-Instruct shares the row of `<tool_call>` in its output layer with 3,217 other tokens. Adapters of the
other layers cannot make the model prefer one of them: after 158 steps it wrote any of the others in its place, in 33
of 62 episodes to the end. So their own rows are trained as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["rows_to_train", "untaught_tokens"]

SAME = 0.999
"""Cosine of two rows from which they are taken for the same."""
_PART = 16384


def rows_to_train(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, labels: Iterable[Sequence[int]]
) -> dict[str, list[int]] | None:
    """The rows of the first and the last layer that adapters should train, as `trainable_token_indices` of PEFT.

    Args:
        model: the model, without adapters.
        tokenizer: its tokenizer; of its tokens, those that were added to the vocabulary are looked at.
        labels: the tokens that the model shall write, for each row of the dataset.

    None if the model can tell all of them from others.
    """
    untaught = set(untaught_tokens(model, sorted(tokenizer.added_tokens_decoder)))
    written = sorted({token for row in labels for token in row} & untaught) if untaught else []
    ends = (model.get_input_embeddings(), model.get_output_embeddings())
    names = [name for name, layer in model.named_modules() if any(layer is end for end in ends)]
    return dict.fromkeys(names, written) if written else None


def untaught_tokens(model: PreTrainedModel, tokens: Sequence[int]) -> list[int]:
    """Those of the tokens whose row in the output layer is that of another token; none if the layer is sharded."""
    import torch
    from torch.nn.functional import normalize

    last: Any = model.get_output_embeddings()
    if last is None or not len(last.weight) or not tokens:
        return []
    with torch.no_grad():
        rows = normalize(last.weight[list(tokens)].float())
        parts = [(normalize(part.float()) @ rows.T > SAME).sum(dim=0) for part in last.weight.split(_PART)]
        same = torch.stack(parts).sum(dim=0).tolist()
    return [token for token, count in zip(tokens, same, strict=True) if count > 1]
