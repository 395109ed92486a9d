"""The model card: what the model was made from and how, so that anyone can repeat it."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from gumshoe import __version__
from gumshoe.config import config_hash, dump_config
from gumshoe.train.config import TrainConfig
from gumshoe.train.dpo_config import DpoConfig
from gumshoe.train.grpo_config import GrpoConfig
from gumshoe.train.trainer_config import TrainerConfig

__all__ = [
    "Outcome",
    "PreferenceOutcome",
    "RewardOutcome",
    "render_card",
    "render_preference_card",
    "render_reward_card",
]


_TEMPLATE = "The chat template in this folder renders a conversation as it was trained."


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run. Anything that was not measured is None."""

    rows: int
    skipped: int
    masked: int
    tokens: int
    trained_tokens: int
    parameters: int
    steps: int
    best_step: int | None
    loss: float | None
    eval_loss: float | None
    eval_accuracy: float | None
    seeker_score: float | None
    seconds: float


@dataclass(frozen=True)
class RewardOutcome:
    """The outcome of a run of reinforcement learning: the mean reward of its first and of its last fifth."""

    parameters: int
    steps: int
    first: float | None
    last: float | None
    seconds: float


@dataclass(frozen=True)
class PreferenceOutcome:
    """The outcome of a run of preference training. Anything that was not measured is None.

    `accuracy` is the share of pairs whose better decision has gained more than the worse one, `margin` by how much, in
    nats times beta; both are from the last logged steps.
    """

    pairs: int
    skipped: int
    tokens: int
    trained_tokens: int
    parameters: int
    steps: int
    loss: float | None
    accuracy: float | None
    margin: float | None
    eval_accuracy: float | None
    seconds: float


def render_card(config: TrainConfig, outcome: Outcome) -> str:
    """The text of README.md in the model folder, its YAML header included."""
    left_out = f" {outcome.skipped} rows over {config.max_length} tokens were left out." if outcome.skipped else ""
    masked = f" {outcome.masked} turns that were mistakes were read and not trained." if outcome.masked else ""
    facts = [
        ("optimizer steps", f"{outcome.steps:,}"),
        ("training loss, last logged", _number(outcome.loss)),
        *_held_out(config, outcome),
    ]
    said = [
        "It looks for the cause of failing tests with tools: it runs the tests, reads code, stops the program and "
        "looks at values, and reports what it found.",
        f"Fine-tuned from `{config.model}` on split `{config.train_split}` of view `{config.view}` of the dataset "
        f"`{config.dataset}`: {outcome.rows:,} conversations, {outcome.tokens:,} tokens, of which "
        f"{outcome.trained_tokens:,} train (what the assistant wrote; never prompts, tools or tool results)."
        f"{left_out}{masked}",
        _TEMPLATE,
    ]
    return _card("sft", "An info-seeking model", said, facts, config, outcome)


def _held_out(config: TrainConfig, outcome: Outcome) -> list[tuple[str, str]]:
    if config.eval_split is None:
        return [("loss on held-out rows", "not measured")]
    facts = [
        (f"loss on split {config.eval_split}", _number(outcome.eval_loss)),
        (f"token accuracy on split {config.eval_split}", _number(outcome.eval_accuracy)),
    ]
    if config.best != "last":
        facts.append((f"step kept, by {config.best}", str(outcome.best_step)))
    if config.episodes is not None:
        facts.append(("mean reward of live episodes", _number(outcome.seeker_score)))
    return facts


def render_reward_card(config: GrpoConfig, outcome: RewardOutcome) -> str:
    """The text of README.md in the folder of a model from reinforcement learning."""
    weights = ", ".join(f"{weight:g} x {name}" for name, weight in config.episodes.weights.items())
    facts = [
        ("optimizer steps", f"{outcome.steps:,}"),
        ("mean reward, first fifth of the steps", _number(outcome.first)),
        ("mean reward, last fifth", _number(outcome.last)),
    ]
    said = [
        f"`{config.model}` went on learning with GRPO from episodes in live sandboxes, in groups of {config.group} "
        f"on one task. An episode is worth {weights}."
    ]
    return _card("grpo", "An info-seeking model, trained on its own episodes", said, facts, config, outcome)


def render_preference_card(config: DpoConfig, outcome: PreferenceOutcome) -> str:
    """The text of README.md in the folder of a model from preferences."""
    left_out = f" {outcome.skipped} over {config.max_length} tokens were left out." if outcome.skipped else ""
    facts = [
        ("optimizer steps", f"{outcome.steps:,}"),
        ("training loss, last logged", _number(outcome.loss)),
        ("pairs whose better decision gained more, last logged", _number(outcome.accuracy)),
        ("by how much, on average", _number(outcome.margin)),
        ("of held-out pairs, whose better decision gained more", _number(outcome.eval_accuracy)),
    ]
    said = [
        f"`{config.model}` went on learning with DPO (beta {config.beta:g}) from {outcome.pairs:,} pairs of "
        f"decisions that were tried in one place of an episode: split `{config.train_split}` of view "
        f"`{config.view}` of the dataset `{config.dataset}`. {outcome.trained_tokens:,} of {outcome.tokens:,} "
        "tokens are compared: what "
        f"the assistant wrote in the two decisions, never prompts, tools or tool results.{left_out}",
        _TEMPLATE,
    ]
    return _card("dpo", "An info-seeking model, trained on preferences", said, facts, config, outcome)


def _card(
    method: str,
    title: str,
    said: list[str],
    facts: list[tuple[str, str]],
    config: TrainerConfig,
    outcome: Outcome | RewardOutcome | PreferenceOutcome,
) -> str:
    header = {
        "library_name": "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["gumshoe", "seeker", method, "trl"],
        "base_model": config.model,
    }
    rows = [
        ("config hash", f"`{config_hash(config)}`"),
        ("parameters", f"{outcome.parameters:,}"),
        *facts,
        ("seconds", f"{outcome.seconds:.0f}"),
    ]
    return "\n".join(
        [
            f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n",
            f"# {title}\n",
            *(f"{paragraph}\n" for paragraph in said),
            "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows) + "\n",
            f"Made with gumshoe {__version__} from this config:\n",
            f"```yaml\n{dump_config(config)}```\n",
        ]
    )


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4f}"
