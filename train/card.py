"""The model card: what the model was made from and how, so that anyone can tell and repeat it."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from gumshoe import __version__
from gumshoe.config import config_hash, dump_config
from gumshoe.train.config import TrainConfig

__all__ = ["Outcome", "render_card"]


@dataclass(frozen=True)
class Outcome:
    """What a run came to. A loss that was not measured is None."""

    rows: int
    skipped: int
    tokens: int
    trained_tokens: int
    parameters: int
    steps: int
    loss: float | None
    eval_loss: float | None
    seconds: float


def render_card(config: TrainConfig, outcome: Outcome) -> str:
    """The text of README.md in the model folder, its YAML header included."""
    header: dict[str, object] = {"library_name": "transformers", "pipeline_tag": "text-generation"}
    header["tags"] = ["gumshoe", "seeker", "sft", "trl"]
    if config.model is not None:
        header["base_model"] = config.model
    origin = f"`{config.model}`" if config.model else "a Qwen3 architecture with fresh weights"
    left_out = f" {outcome.skipped} rows over {config.max_length} tokens were left out." if outcome.skipped else ""
    facts = [
        ("config hash", f"`{config_hash(config)}`"),
        ("parameters", f"{outcome.parameters:,}"),
        ("optimizer steps", f"{outcome.steps:,}"),
        ("training loss, last logged", _number(outcome.loss)),
        (f"loss on split {config.eval_split}", _number(outcome.eval_loss)),
        ("seconds", f"{outcome.seconds:.0f}"),
    ]
    return "\n".join(
        [
            f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n",
            "# An info-seeking model\n",
            "It looks for the cause of failing tests with tools: it runs the tests, reads code, stops the program and "
            "looks at values, and hands over what it found.\n",
            f"Fine-tuned from {origin} on split `{config.train_split}` of view `{config.view}` of the dataset "
            f"`{config.dataset}`: {outcome.rows:,} conversations, {outcome.tokens:,} tokens, of which "
            f"{outcome.trained_tokens:,} train (what the assistant wrote; never prompts, tools or tool results)."
            f"{left_out}\n",
            "The chat template in this folder renders a conversation as it was trained.\n",
            "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in facts) + "\n",
            f"Made with gumshoe {__version__} from this config:\n",
            f"```yaml\n{dump_config(config)}```\n",
        ]
    )


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4f}"
