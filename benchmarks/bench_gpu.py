"""Tokens per second and model FLOPs utilization of training on a GPU, for Qwen3 architectures with random weights.

    python benchmarks/bench_gpu.py --sizes 0.6B 1.7B --lengths 8192 32768 [--steps 8] [--peak 989] [--out FILE.json]

A step is forward, backward and AdamW on one full row, in bfloat16 over float32 weights, with activation checkpointing
and the attention that torch chooses, through TRL's trainer as `gumshoe train` sets it up. The first two steps are not
counted. Utilization is (6 x parameters + 6 x layers x heads x head width x length) x tokens per second / peak: what the
model needs, not what checkpointing recomputes. The seconds for 10,000 seeker samples are computed from the tokens per
second at 8,192, packed, at `--sample-tokens` tokens each.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from gumshoe.train.shapes import SHAPES, Shape

WARM_UP = 2


def main() -> int:
    """Measures each size at each length, prints a line each, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["0.6B", "1.7B"], help="of Qwen3 (0.6B 1.7B)")
    parser.add_argument("--lengths", type=int, nargs="+", default=[8192, 32768], help="tokens of a row")
    parser.add_argument("--steps", type=int, default=8, help="steps that count (8)")
    parser.add_argument("--peak", type=float, default=989, help="dense bfloat16 TFLOP/s of the GPU (989: H100, H200)")
    parser.add_argument("--sample-tokens", type=int, default=2000, help="tokens of a seeker sample (2000)")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        print("bench_gpu: torch sees no GPU here", file=sys.stderr)
        return 2
    figures: list[dict[str, Any]] = []
    for size in arguments.sizes:
        for length in arguments.lengths:
            shape = SHAPES[f"Qwen/Qwen3-{size}"]
            speed = tokens_a_second(shape, length, arguments.steps)
            needed = 6 * shape.active_parameters + 6 * shape.layers * shape.heads * shape.head_dim * length
            figures.append(
                {
                    "gpu": torch.cuda.get_device_name(),
                    "size": size,
                    "length": length,
                    "tokens_a_second": speed,
                    "mfu": needed * speed / (arguments.peak * 1e12),
                    "memory_gb": torch.cuda.max_memory_allocated() / 1e9,
                    "seconds_for_10000_samples": 10_000 * arguments.sample_tokens / speed,
                }
            )
            print(json.dumps(figures[-1]), flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def tokens_a_second(shape: Shape, length: int, steps: int) -> float:
    """Trains a fresh model of this shape on random rows of `length` tokens."""
    import torch
    from datasets import Dataset

    from gumshoe.train.arguments import sft_arguments
    from gumshoe.train.config import TrainConfig
    from gumshoe.train.trainer import Trainer

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as folder:
        config = TrainConfig.model_validate(
            {
                "out": folder,
                "dataset": folder,
                "model": "random",
                "max_length": length,
                "max_steps": WARM_UP + steps,
                "bf16": True,
                "gradient_checkpointing": True,
                "log_every": 1000,
            }
        )
        rows = torch.randint(0, shape.vocab, (WARM_UP + steps, length)).tolist()
        clock = Clock()
        trainer = Trainer(
            model=random_model(shape, length),
            args=sft_arguments(config),
            train_dataset=Dataset.from_dict({"input_ids": rows, "labels": rows}),
            processing_class=blank_tokenizer(),
            callbacks=[clock.callback()],
        )
        trainer.train()
    return length * steps / clock.seconds


class Clock:
    """Times the steps after the warm-up."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def callback(self) -> Any:
        """The callback that the trainer notifies of its steps."""
        import time

        import torch
        from transformers import TrainerCallback

        clock = self
        began = 0.0

        class Steps(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
                nonlocal began
                torch.cuda.synchronize()
                if state.global_step == WARM_UP:
                    began = time.perf_counter()
                elif state.global_step > WARM_UP:
                    clock.seconds = time.perf_counter() - began

        return Steps()


def random_model(shape: Shape, length: int) -> Any:
    """A Qwen3 model of this shape, on the GPU, with random weights."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    with torch.device("cuda"):
        return Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=shape.vocab,
                hidden_size=shape.hidden,
                intermediate_size=shape.intermediate,
                num_hidden_layers=shape.layers,
                num_attention_heads=shape.heads,
                num_key_value_heads=shape.kv_heads,
                head_dim=shape.head_dim,
                tie_word_embeddings=shape.tied,
                max_position_embeddings=length,
            )
        )


def blank_tokenizer() -> Any:
    """A tokenizer to create the trainer with; the rows are tokens already."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel({"<end>": 0}, unk_token="<end>"))
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<end>", pad_token="<end>")


if __name__ == "__main__":
    sys.exit(main())
