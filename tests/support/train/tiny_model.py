"""A model of two small layers with random weights, its tokenizer and a config: trains in seconds, knows nothing."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gumshoe.train.config import TrainConfig
from support.train.training_rows import row

END_OF_TURN, END_OF_TEXT = "<|im_end|>", "<|endoftext|>"
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")


def make_tiny_tokenizer(rows: Iterable[Mapping[str, Any]], *, vocab: int = 1024) -> Any:
    """Byte-level BPE trained on the rows, with a template that has tools."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from trl.chat_template_utils import qwen3_instruct_2507_chat_template as template

    plain = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), chat_template=template)
    texts = [plain.apply_chat_template(row["messages"], tools=row.get("tools") or None, tokenize=False) for row in rows]
    return byte_level_tokenizer(map(str, texts), template, vocab=vocab)


def byte_level_tokenizer(texts: Iterable[str], template: str, *, vocab: int) -> Any:
    """Byte-level BPE of `vocab` tokens trained on the texts, with the marks of Qwen3."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = [END_OF_TEXT, "<|im_start|>", END_OF_TURN]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(TAGS), special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(texts, trainer)
    core.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token=END_OF_TURN, pad_token=END_OF_TEXT, chat_template=template
    )


def small_qwen3(tokenizer: Any, *, hidden: int, feed_forward: int, head: int) -> Any:
    """A Qwen3 of two layers and random weights: its sizes are those of the states, the feed-forward part and a head."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM, set_seed

    set_seed(0)
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            intermediate_size=feed_forward,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=head,
            max_position_embeddings=8192,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            dtype=torch.float32,
        )
    )


def make_tiny_model(out: Path) -> Path:
    """Writes a model folder for the conversations of the tests, and returns it."""
    from transformers import GenerationConfig

    tokenizer = make_tiny_tokenizer([row(number) for number in range(6)])
    model = small_qwen3(tokenizer, hidden=80, feed_forward=32, head=16)
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


def make_config(dataset: Path, out: Path, **changes: object) -> TrainConfig:
    """A config of a few steps with a tiny model."""
    base: dict[str, object] = {
        "out": str(out),
        "dataset": str(dataset),
        "model": str(tiny_model()),
        "max_length": 1024,
        "max_steps": 4,
        "batch": 2,
        "learning_rate": 1e-2,
        "log_every": 1,
        "device": "cpu",
    }
    return TrainConfig.model_validate({**base, **changes})
