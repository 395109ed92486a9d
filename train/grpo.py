"""Reinforcement learning with GRPO: live episodes in, a model folder out.

    LiveTrainer (TRL's GRPOTrainer) ── tasks ──> TokenRollouts.play ── turns as text ──> episodes in sandboxes
                 ^                                     │
                 └── tokens, masks and scores ─────────┘

TRL hands a batch of prompts to a `rollout_func` and takes back token ids. That function is experimental in TRL, which
is why its minor version is pinned. Here it drives episodes, which own the limits, the nudges and the reading of calls,
so that a model trains on the conversation that an evaluation would show it. An episode whose sandbox does not start or
breaks has no reward, and the run goes on.

An episode trains as one sequence of tokens, so its conversation may only grow: agents that leave out old observations
or that unlock tools on the way are refused.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerBase
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from gumshoe.errors import ConfigError, SandboxError, TaskError
from gumshoe.train.config import GrpoConfig
from gumshoe.train.episodes import Episode, EpisodeSource, GeneratedTurn, Message, Request, open_episodes
from gumshoe.train.model import (
    check_tools,
    load_weights,
    local_model,
    starting_tokenizer,
    template_to_serve,
    training_template,
)
from gumshoe.train.rows.render import encode_chat
from gumshoe.train.run import (
    Facts,
    TrainingFolder,
    TrainResult,
    fit,
    render_card,
    save_model,
    torch_threads,
    trainer_arguments,
)

Tokens = list[int]
Broken = SandboxError | TaskError
Generate = Callable[[list[Tokens]], tuple[list[Tokens], list[list[float]] | None]]


def train_grpo(config: GrpoConfig, episodes: EpisodeSource | None = None) -> TrainResult:
    """Runs a config on its episodes, or on others; a stopped run goes on from its newest checkpoint.

    Raises:
        ConfigError: the config, the model or the run folder is wrong.
        SandboxError, TaskError: all episodes of a step broke.
    """
    episodes = episodes or open_episodes(config.episodes)
    if config.vllm != "off" and find_spec("vllm") is None:
        raise ConfigError(
            f"vllm: {config.vllm} needs vLLM in addition to TRL: pip install 'trl[vllm]', or use vllm: off"
        )
    folder = TrainingFolder(config)
    if folder.done:
        return TrainResult(folder.model, folder.log, None)
    with torch_threads(config.threads):
        trainer = _trainer(config, episodes)
        tokenizer = _tokenizer_to_save(config, episodes)
        facts = {**fit(trainer, folder), **_measure(trainer)}
        save_model(config, folder, trainer, tokenizer, _card(config, facts))
    return TrainResult(folder.model, folder.log, facts)


def _trainer(config: GrpoConfig, episodes: EpisodeSource) -> LiveTrainer:
    tokenizer = starting_tokenizer(config)
    if isinstance(tokenizer.chat_template, str):
        check_tools(tokenizer, tokenizer.chat_template)
    model = load_weights(local_model(config.model), config.revision)
    weights = config.episodes.weights
    rows = [{"prompt": episodes.opening(task), "task": task} for task in episodes.tasks]
    os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return LiveTrainer(
            episodes=episodes,
            template=training_template(tokenizer),
            model=model,
            args=_arguments(config, list(weights.values())),
            reward_funcs=[_score_function(name) for name in weights],
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
        )


def _tokenizer_to_save(config: GrpoConfig, episodes: EpisodeSource) -> PreTrainedTokenizerBase:
    """A tokenizer that TRL has not changed, with the chat template to serve.

    No conversations are there to compare templates by, so one is made up. It reasons, as some templates drop what was
    thought in earlier turns.
    """
    tokenizer = starting_tokenizer(config)
    turns: list[Message] = [
        {"role": "assistant", "content": "<think>\nThe test may be wrong.\n</think>\n\nI look."},
        {"role": "user", "content": "1 failed"},
        {"role": "assistant", "content": "I see."},
    ]
    row = {"messages": [*episodes.opening(episodes.tasks[0]), *turns]}
    tokenizer.chat_template = template_to_serve(tokenizer, training_template(tokenizer), [row])
    return tokenizer


def _arguments(config: GrpoConfig, weights: list[float]) -> GRPOConfig:
    episodes = config.group * config.tasks_a_step
    return GRPOConfig(
        **trainer_arguments(config),
        reward_weights=weights,
        num_generations=config.group,
        per_device_train_batch_size=config.batch,
        gradient_accumulation_steps=episodes // config.batch,
        num_iterations=config.iterations,
        max_steps=config.max_steps,
        max_completion_length=config.max_completion,
        generation_kwargs={"max_new_tokens": config.episodes.max_tokens},
        temperature=config.temperature,
        lr_scheduler_type=config.schedule,
        beta=config.beta,
        scale_rewards=config.scale_rewards,
        gradient_checkpointing=config.gradient_checkpointing,
        use_vllm=config.vllm != "off",
        vllm_mode="colocate" if config.vllm == "off" else config.vllm,
        save_steps=config.save_every,
        remove_unused_columns=False,
    )


def _measure(trainer: LiveTrainer) -> Facts:
    rewards = [entry["reward"] for entry in trainer.state.log_history if entry.get("reward") is not None]
    part = max(1, len(rewards) // 5)
    return {
        "mean reward, first fifth of the steps": sum(rewards[:part]) / part if rewards else None,
        "mean reward, last fifth": sum(rewards[-part:]) / part if rewards else None,
    }


def _card(config: GrpoConfig, facts: Facts) -> str:
    """The text of README.md in the model folder."""
    weights = ", ".join(f"{weight:g} x {name}" for name, weight in config.episodes.weights.items())
    paragraphs = [
        f"`{config.model}` went on learning with GRPO from episodes in live sandboxes, in groups of {config.group} "
        f"on one task. An episode is worth {weights}."
    ]
    return render_card(config, "grpo", "An info-seeking model, trained on its own episodes", paragraphs, facts)


@dataclass
class TokenizedEpisode:
    """One episode as tokens: the prompt, then turns (mask 1) and the answers to them (mask 0).

    Attributes:
        episode: the episode.
        request: what the model is asked next; None if the episode did not start.
        prompt, completion, mask, logprobs: its tokens and what is known of each.
        over: whether no turn is left.
        broken: what broke it, for a reason outside what the model did.
    """

    episode: Episode
    request: Request | None
    prompt: Tokens
    completion: Tokens = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    over: bool = False
    broken: Broken | None = None

    def add(self, ids: Sequence[int], *, trained: bool, logprobs: Sequence[float] | None = None) -> None:
        """Adds tokens after those that are there."""
        self.completion += ids
        self.mask += [int(trained)] * len(ids)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)


def _score_function(name: str) -> Callable[..., list[float | None]]:
    """The reward function of one score, called by its name."""

    def score(episode_scores: Sequence[dict[str, float | None]], **kwargs: Any) -> list[float | None]:
        return [scores[name] for scores in episode_scores]

    score.__name__ = name
    return score


class TokenRollouts:
    """Plays batches of episodes with a model that reads and writes tokens.

    Args:
        generate: turns the tokens of each conversation into the tokens of its next turn, and their log probabilities
            if the generator gives them.
        template: the chat template that the model was trained with.
        max_completion: maximum tokens of an episode after the prompt.
    """

    def __init__(
        self, episodes: EpisodeSource, generate: Generate, tokenizer: Any, template: str, max_completion: int
    ) -> None:
        self._episodes = episodes
        self._generate = generate
        self._tokenizer = tokenizer
        self._template = template
        self._max_completion = max_completion
        self._end: int = tokenizer.eos_token_id

    def play(self, tasks: Sequence[str]) -> dict[str, Any]:
        """Plays one episode for each task, all at once; the result is what TRL takes from a rollout function.

        An episode whose sandbox does not start or breaks has no scores: TRL leaves it out of its group.

        Raises:
            SandboxError, TaskError: all of them broke.
            ConfigError: a conversation changed in other ways than growing.
        """
        episodes = [self._episodes.episode(task) for task in tasks]
        try:
            with ThreadPoolExecutor(max_workers=len(episodes)) as pool:
                requests = pool.map(_first_request, episodes)
                rows = list(map(self._tokenize, tasks, episodes, requests))
                has_logprobs = True
                while live := [row for row in rows if not row.over]:
                    has_logprobs = self._play_turn(live, pool)
            errors = [row.broken for row in rows if row.broken is not None]
            if len(errors) == len(rows):
                raise errors[0]
            return {
                "prompt_ids": [row.prompt for row in rows],
                "completion_ids": [row.completion for row in rows],
                "logprobs": [row.logprobs for row in rows] if has_logprobs else None,
                "env_mask": [row.mask for row in rows],
                "episode_scores": [
                    row.episode.scores() if row.broken is None else dict.fromkeys(self._episodes.scores) for row in rows
                ],
            }
        finally:
            for episode in episodes:
                episode.close()

    def _tokenize(self, task: str, episode: Episode, first: Request | Broken) -> TokenizedEpisode:
        """An episode with its prompt; `first` is its first request, or what kept it from starting."""
        if isinstance(first, Broken):
            # TRL wants tokens of every episode; none of these trains.
            prompt = self._render(self._episodes.opening(task), None, add_generation_prompt=True)
            row = TokenizedEpisode(episode, None, prompt, over=True, broken=first)
            row.add([self._end], trained=False)
            return row
        return TokenizedEpisode(episode, first, self._render(first.messages, first.tools, add_generation_prompt=True))

    def _play_turn(self, rows: list[TokenizedEpisode], pool: ThreadPoolExecutor) -> bool:
        """Generates and plays one turn of each row; returns whether the generator gave log probabilities."""
        written, logprobs = self._generate([row.prompt + row.completion for row in rows])
        turns: list[GeneratedTurn] = []
        for number, row in enumerate(rows):
            ids = written[number][: self._room(row)]
            row.add(ids, trained=True, logprobs=None if logprobs is None else logprobs[number][: len(ids)])
            text = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            turns.append(GeneratedTurn(str(text), cut_off=ids[-1:] != [self._end]))
        # Sandboxes answer in threads; the tokenizer is used only in this one.
        for row, turn, request in zip(rows, turns, pool.map(_next_request, rows, turns), strict=True):
            self._take_answers(row, turn, request)
        return logprobs is not None

    def _take_answers(self, row: TokenizedEpisode, turn: GeneratedTurn, request: Request | None) -> None:
        """Adds what answers a turn. A row without room for another token after it is over."""
        if request is None:
            row.over = True
            return
        assert row.request is not None, "an episode that did not start has no turns"
        known = len(row.request.messages)
        if request.tools != row.request.tools or request.messages[:known] != row.request.messages:
            raise ConfigError(
                "GRPO needs a conversation that only grows: leave out episodes.live.agent.context_tokens, and take "
                "an agent whose tools stay the same"
            )
        answers = [self._end] * turn.cut_off + self._answer_ids(request.messages[known + 1 :])
        row.request = request
        if len(answers) >= self._room(row):
            row.over = True
        else:
            row.add(answers, trained=False)

    def _room(self, row: TokenizedEpisode) -> int:
        """Tokens that the row may still take."""
        return self._max_completion - len(row.completion)

    def _answer_ids(self, answers: list[Message]) -> Tokens:
        """The tokens after a turn's end: what answers it, and the beginning of the next turn."""
        dummy: list[Message] = [{"role": "user", "content": "dummy"}, {"role": "assistant", "content": "dummy"}]
        before = self._render(dummy, None, add_generation_prompt=False)
        # Templates put a line end after the end of a turn, which belongs to the answers.
        length = len(before) - before[::-1].index(self._end) if self._end in before else len(before)
        return self._render([*dummy, *answers], None, add_generation_prompt=True)[length:]

    def _render(
        self, messages: list[Message], tools: list[dict[str, Any]] | None, *, add_generation_prompt: bool
    ) -> Tokens:
        rendered = encode_chat(
            self._tokenizer, self._template, messages, tools, add_generation_prompt=add_generation_prompt
        )
        return list(rendered["input_ids"])


class LiveTrainer(GRPOTrainer):
    """GRPO on live episodes.

    Of what is private in TRL, this overrides `_generate_and_score_completions`, calls `_generate_single_turn` and reads
    `_tokenizer`. Any minor version may change them, which is another reason for the pin. The rows of the dataset hold
    `prompt` and `task`.
    """

    def __init__(self, *, episodes: EpisodeSource, template: str, **kwargs: Any) -> None:
        # TRL calls the function in training, when what is set below is there.
        super().__init__(rollout_func=lambda prompts, trainer: self._rollouts.play(self._tasks), **kwargs)
        assert self.max_completion_length is not None
        self._tasks: list[str] = []
        self._rollouts = TokenRollouts(
            episodes,
            lambda ids: self._generate_single_turn(ids, None, {}, 1),
            self._tokenizer,
            template,
            self.max_completion_length,
        )

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        """Remembers which tasks the batch is about: TRL hands only prompts to a rollout function."""
        self._tasks = [row["task"] for row in inputs]
        return super()._generate_and_score_completions(inputs)


def _first_request(episode: Episode) -> Request | Broken:
    try:
        request = episode.next_request()
    except (SandboxError, TaskError) as error:
        return error
    assert request is not None, "an episode has at least one turn"
    return request


def _next_request(row: TokenizedEpisode, turn: GeneratedTurn) -> Request | None:
    try:
        row.episode.accept(turn.text, cut_off=turn.cut_off)
        return row.episode.next_request()
    except SandboxError as error:
        row.broken = error
        return None
