"""Makes the smallest model folder that can be served.

Two layers of 64, trained for a few seconds to answer "good" with a valid tool call and "bad" with a broken one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
from trl.chat_template_utils import qwen3_training_chat_template as template

from support.train.tiny_model import byte_level_tokenizer, small_qwen3

TOOLS = json.loads(Path(__file__).with_name("micro_tools.json").read_text())
GOOD = '[seek 0.9] I look\n<tool_call>\n{"name": "view", "arguments": {"path": "a.py"}}\n</tool_call>'
BAD = '[seek 0.9] I look\n<tool_call>\n{"name": "view", "argum\n</tool_call>'


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
        texts = [template.replace("\\n", " ").replace('\\"', '"'), json.dumps(TOOLS), GOOD, BAD] * 2
        tokenizer = byte_level_tokenizer(texts, template, vocab=909)
        model = small_qwen3(tokenizer, hidden=64, feed_forward=128, head=32)
        train(model, tokenizer)
    finally:
        torch.set_num_threads(threads)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
