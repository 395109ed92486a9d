"""TRL's GRPO trainer on live episodes.

TRL hands a batch of prompts to a `rollout_func` and takes back token ids. That function is experimental in TRL, which
is why its minor version is pinned. Here it drives episodes, which own the limits, the nudges and the reading of calls,
so that a model trains on the conversation that an evaluation would show it. A sandbox that breaks stops the run.

An episode trains as one sequence of tokens, so its conversation may only grow: agents that leave out old observations
or that unlock tools on the way are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from trl.trainer.grpo_trainer import GRPOTrainer

from gumshoe.errors import ConfigError
from gumshoe.train.encoding import encode_chat
from gumshoe.train.live import Arena, Episode, GeneratedTurn, Message, Request

__all__ = ["LiveTrainer", "TokenRollouts", "score_functions"]

Tokens = list[int]
Generate = Callable[[list[Tokens]], tuple[list[Tokens], list[list[float]] | None]]


@dataclass
class TokenizedEpisode:
    """One episode as tokens: the prompt, then turns (mask 1) and the answers to them (mask 0)."""

    episode: Episode
    request: Request
    prompt: Tokens
    completion: Tokens = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    over: bool = False

    def add(self, ids: Sequence[int], *, trained: bool, logprobs: Sequence[float] | None = None) -> None:
        """Adds tokens after those that are there."""
        self.completion += ids
        self.mask += [int(trained)] * len(ids)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)


def score_functions(names: Sequence[str]) -> list[Callable[..., list[float]]]:
    """Reward functions, one for each score by its name."""

    def function(name: str) -> Callable[..., list[float]]:
        def scores(episode_scores: Sequence[dict[str, float]], **kwargs: Any) -> list[float]:
            return [each[name] for each in episode_scores]

        scores.__name__ = name
        return scores

    return [function(name) for name in names]


class TokenRollouts:
    """Plays batches of episodes with a model that reads and writes tokens.

    Args:
        arena: the episodes.
        generate: turns the tokens of each conversation into the tokens of its next turn, and their log probabilities
            if the generator gives them.
        tokenizer: of the model.
        template: the chat template that the model was trained with.
        max_completion: maximum tokens of an episode after the prompt.
    """

    def __init__(self, arena: Arena, generate: Generate, tokenizer: Any, template: str, max_completion: int) -> None:
        self._arena = arena
        self._generate = generate
        self._tokenizer = tokenizer
        self._template = template
        self._max_completion = max_completion
        self._end: int = tokenizer.eos_token_id

    def play(self, tasks: Sequence[str]) -> dict[str, Any]:
        """Plays one episode for each task, all at once; the result is what TRL takes from a rollout function.

        Raises:
            SandboxError, TaskError: a sandbox broke.
            ConfigError: a conversation changed in other ways than growing.
        """
        episodes = [self._arena.episode(task) for task in tasks]
        try:
            with ThreadPoolExecutor(max_workers=len(episodes)) as pool:
                rows = [self._row(*begun) for begun in zip(episodes, pool.map(_begin, episodes), strict=True)]
                has_logprobs = True
                while live := [row for row in rows if not row.over]:
                    has_logprobs = self._turn(live, pool)
            return {
                "prompt_ids": [row.prompt for row in rows],
                "completion_ids": [row.completion for row in rows],
                "logprobs": [row.logprobs for row in rows] if has_logprobs else None,
                "env_mask": [row.mask for row in rows],
                "episode_scores": [row.episode.scores() for row in rows],
            }
        finally:
            for episode in episodes:
                episode.close()

    def _row(self, episode: Episode, request: Request) -> TokenizedEpisode:
        return TokenizedEpisode(
            episode, request, self._render(request.messages, request.tools, add_generation_prompt=True)
        )

    def _turn(self, rows: list[TokenizedEpisode], pool: ThreadPoolExecutor) -> bool:
        """Generates and plays one turn of each row; returns whether the generator gave log probabilities."""
        written, logprobs = self._generate([row.prompt + row.completion for row in rows])
        turns: list[GeneratedTurn] = []
        for number, row in enumerate(rows):
            ids = written[number][: self._room(row)]
            row.add(ids, trained=True, logprobs=None if logprobs is None else logprobs[number][: len(ids)])
            text = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
            turns.append(GeneratedTurn(str(text), cut_off=ids[-1:] != [self._end]))
        # Sandboxes answer in threads; the tokenizer is used only in this one.
        for row, turn, request in zip(rows, turns, pool.map(_play_turn, rows, turns), strict=True):
            self._take_answers(row, turn, request)
        return logprobs is not None

    def _take_answers(self, row: TokenizedEpisode, turn: GeneratedTurn, request: Request | None) -> None:
        """Adds what answers a turn. A row without room for another token after it is over."""
        if request is None:
            row.over = True
            return
        known = len(row.request.messages)
        if request.tools != row.request.tools or request.messages[:known] != row.request.messages:
            raise ConfigError(
                "GRPO needs a conversation that only grows: leave out live.agent.context_tokens, and take an agent "
                "whose tools stay the same"
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

    Args:
        arena: the episodes.
        template: the chat template that the model was trained with.
        kwargs: those of TRL's trainer; the rows of its dataset hold `prompt` and `task`.
    """

    def __init__(self, *, arena: Arena, template: str, **kwargs: Any) -> None:
        super().__init__(rollout_func=lambda prompts, trainer: self._rollouts.play(self._tasks), **kwargs)
        assert self.max_completion_length is not None
        self._tasks: list[str] = []
        self._rollouts = TokenRollouts(
            arena,
            lambda ids: self._generate_single_turn(ids, None, {}, 1),
            self._tokenizer,
            template,
            self.max_completion_length,
        )

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        """Remembers which tasks the batch is about: TRL hands only prompts to a rollout function."""
        self._tasks = [row["task"] for row in inputs]
        return super()._generate_and_score_completions(inputs)


def _begin(episode: Episode) -> Request:
    request = episode.next_request()
    assert request is not None, "an episode has at least one turn"
    return request


def _play_turn(row: TokenizedEpisode, turn: GeneratedTurn) -> Request | None:
    row.episode.accept(turn.text, cut_off=turn.cut_off)
    return row.episode.next_request()
