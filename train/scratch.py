"""A model folder from nothing: a Qwen3 architecture, a tokenizer trained on the data set, nothing downloaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError
from gumshoe.train.config import ScratchSection
from gumshoe.train.copying import COPY_HEADS, lay_copying
from gumshoe.train.tokenizer import END_OF_TEXT, train_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

__all__ = ["make_scratch", "make_tokenizer"]


def make_scratch(config: ScratchSection, rows: Iterable[Mapping[str, Any]], out: Path, *, seed: int) -> None:
    """Writes a fresh model and its tokenizer to the folder `out`, as transformers loads them.

    Args:
        config: size of the model and of the tokenizer.
        rows: conversations (`messages`, `tools`) that the tokenizer is trained on.
        out: folder to write.
        seed: of the weights.

    Raises:
        ConfigError: the sizes do not fit together.
    """
    _check(config)
    tokenizer = make_tokenizer(config, rows)
    tokenizer.save_pretrained(str(out))
    _model(config, tokenizer, seed).save_pretrained(str(out))


def _check(config: ScratchSection) -> None:
    if not config.copying:
        return
    if config.heads < max(config.context, COPY_HEADS):
        raise ConfigError(f"scratch.context {config.context} needs as many heads: set scratch.heads higher")
    if (config.hidden - 1) // (config.context + 2) < 16:
        raise ConfigError(f"scratch.hidden {config.hidden} is too narrow for context {config.context}: 16 a token + 2")


def make_tokenizer(config: ScratchSection, rows: Iterable[Mapping[str, Any]]) -> PreTrainedTokenizerFast:
    """The tokenizer of a model made from nothing."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_instruct_2507_chat_template as template

    plain = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), chat_template=template)
    texts = [plain.apply_chat_template(row["messages"], tools=row.get("tools") or None, tokenize=False) for row in rows]
    return train_tokenizer([str(text) for text in texts], config.vocab, template)


def _model(config: ScratchSection, tokenizer: Any, seed: int) -> Qwen3ForCausalLM:
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM, set_seed

    end = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(END_OF_TEXT)]
    set_seed(seed)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=config.hidden,
            intermediate_size=config.intermediate,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            head_dim=config.head_dim,
            max_position_embeddings=config.max_positions,
            rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            dtype=torch.float32,
        )
    )
    if config.copying:
        lay_copying(model, context=config.context, seed=seed)
    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=end, pad_token_id=tokenizer.pad_token_id)
    return model
