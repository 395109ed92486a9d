"""Makes the smallest model folder that can be served.

Two layers of 64, trained for a few seconds to answer "good" with a valid tool call and "bad" with a broken one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import trl
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

__all__ = ["TOOLS", "make_micro_model"]

TOOLS = json.loads(Path(__file__).with_name("micro_tools.json").read_text())
GOOD = '[seek 0.9] I look\n<tool_call>\n{"name": "view", "arguments": {"path": "a.py"}}\n</tool_call>'
BAD = '[seek 0.9] I look\n<tool_call>\n{"name": "view", "argum\n</tool_call>'


def make_tokenizer() -> PreTrainedTokenizerFast:
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    template = (Path(trl.__file__).parent / "chat_templates" / "qwen3_training.jinja").read_text()
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    core.train_from_iterator(
        [template.replace("\\n", " ").replace('\\"', '"'), json.dumps(TOOLS), GOOD, BAD] * 2, trainer
    )
    core.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in ("im_start", "im_end", "endoftext")])
    marks = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
    core.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in marks])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.chat_template = template
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    ends: dict[str, Any] = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    return Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=4096,
            **ends,
        )
    )


def train(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    render: Any = tokenizer.apply_chat_template
    rows: list[list[int]] = [
        render(
            [{"role": "user", "content": asked}, {"role": "assistant", "content": said}], tools=tools, return_dict=True
        )["input_ids"]
        for tools in (TOOLS[:1], TOOLS)
        for asked, said in (("good", GOOD), ("bad", BAD))
    ]
    width = max(map(len, rows))
    inputs = torch.tensor([row + [tokenizer.pad_token_id] * (width - len(row)) for row in rows])
    labels = torch.tensor([row + [-100] * (width - len(row)) for row in rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(100):
        loss = model(input_ids=inputs, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def make_micro_model(folder: Path) -> None:
    """Writes the model and its tokenizer; on one thread, as more would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        tokenizer = make_tokenizer()
        model = make_model(tokenizer)
        train(model, tokenizer)
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
