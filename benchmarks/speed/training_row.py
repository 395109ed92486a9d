"""CPU seconds and seconds of one training row, forward and backward, by precision: what fine-tuning on a CPU costs.

    python -m benchmarks.speed.training_row MODEL [--tokens 2290] [--trained 400] [--threads 1] [--only bfloat16]

All weights train; the loss covers only the trained tokens, as TRL computes it. CPU seconds hold on a shared machine,
seconds only on an idle one. The second of two rows counts: the first one is a warm-up.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM

PRECISIONS = {
    "float32": (torch.float32, False),
    "bf16: true": (torch.float32, True),
    "bfloat16": (torch.bfloat16, False),
}
"""By name: the type of the weights, and whether computation on them is in bfloat16."""


def main() -> None:
    """Measures each precision and prints a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="model folder")
    parser.add_argument("--tokens", type=int, default=2290, help="of the row (2290)")
    parser.add_argument("--trained", type=int, default=400, help="tokens of the row that train (400)")
    parser.add_argument("--threads", type=int, default=1, help="processor threads (1)")
    parser.add_argument("--only", choices=PRECISIONS, help="one precision (all)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name, (dtype, autocast) in PRECISIONS.items():
        if arguments.only not in {None, name}:
            continue
        model: Any = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype).train()
        spent, wall = [measure(model, arguments.tokens, arguments.trained, autocast) for _ in range(2)][-1]
        rates = f"{arguments.tokens / spent:>8.0f} tokens a CPU s{arguments.tokens / wall:>8.0f} tokens a s"
        print(f"{name:<12}{spent:>8.1f} CPU s{wall:>8.1f} s a row{rates}", flush=True)


def measure(model: Any, tokens: int, trained: int, autocast: bool) -> tuple[float, float]:
    """CPU seconds and seconds of one row of random tokens, without the optimizer."""
    ids = torch.randint(0, model.config.vocab_size, (1, tokens))
    places = torch.randperm(tokens - 1)[:trained]
    spent, began = time.process_time(), time.monotonic()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        hidden = model.model(input_ids=ids).last_hidden_state
        logits = model.lm_head(hidden[0, places])
        loss = torch.nn.functional.cross_entropy(logits.float(), ids[0, places + 1])
    loss.backward()
    figures = time.process_time() - spent, time.monotonic() - began
    model.zero_grad()
    return figures


if __name__ == "__main__":
    main()
