"""A model of two small layers with random weights, and a tokenizer of its own: trains in seconds, knows nothing."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.train.training_rows import row

__all__ = ["make_tiny_model", "make_tiny_tokenizer", "tiny_model"]

END_OF_TURN, END_OF_TEXT = "<|im_end|>", "<|endoftext|>"
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")


def make_tiny_tokenizer(rows: Iterable[Mapping[str, Any]], *, vocab: int = 1024) -> Any:
    """Byte-level BPE trained on the rows, with a template that has tools."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_instruct_2507_chat_template as template

    plain = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), chat_template=template)
    texts = [plain.apply_chat_template(row["messages"], tools=row.get("tools") or None, tokenize=False) for row in rows]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = [END_OF_TEXT, "<|im_start|>", END_OF_TURN]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(TAGS), special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(map(str, texts), trainer)
    core.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=END_OF_TURN, pad_token=END_OF_TEXT, chat_template=template
    )


def make_tiny_model(out: Path, *, seed: int = 0) -> Path:
    """Writes a model folder for the conversations of the tests, and returns it."""
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM, set_seed

    tokenizer = make_tiny_tokenizer([row(number) for number in range(6)])
    set_seed(seed)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=80,
            intermediate_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=8192,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            dtype=torch.float32,
        )
    )
    ends = [tokenizer.eos_token_id, tokenizer.pad_token_id]
    model.generation_config = GenerationConfig(do_sample=False, eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
    model.save_pretrained(str(out))
    tokenizer.save_pretrained(str(out))
    return out


@functools.cache
def tiny_model() -> Path:
    """The folder of a tiny model, made once for all tests of this process."""
    folder = Path(tempfile.mkdtemp(prefix="tiny-model-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return make_tiny_model(folder)
