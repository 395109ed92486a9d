"""Episodes in live sandboxes, as training sees them.

Training imports no environment: the command hands one over, named in the config as `module:function` and made from the
config's section `live`, which only that function understands.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from pydantic import Field, JsonValue, PositiveInt

from gumshoe.config import Config
from gumshoe.errors import ConfigError

__all__ = ["Arena", "Episode", "LiveSection", "Message", "open_arena", "play"]

Message = dict[str, Any]


class Episode(Protocol):
    """One episode after another, each in a fresh sandbox."""

    def reset(self, task: str) -> list[Message]:
        """Begins an episode of `task` and returns the messages that open it."""
        ...

    def call(self, name: str, arguments: Mapping[str, Any], *, new_turn: bool = True) -> str:
        """Carries out one call, the first of a turn or a further one; returns the text that answers it."""
        ...

    def answer(self, text: str) -> list[Message]:
        """Takes in a whole turn as the model wrote it; returns it and what answers it, as messages."""
        ...

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        ...

    def scores(self) -> dict[str, float]:
        """What the episode is worth by now, 0 to 1 each, by name."""
        ...

    def close(self) -> None:
        """Ends the episode and its sandbox. Idempotent."""
        ...


class Arena(Protocol):
    """Tasks, tools, and episodes on them."""

    @property
    def tasks(self) -> Sequence[str]: ...

    @property
    def tools(self) -> list[dict[str, Any]]:
        """Their schemas, as the chat template gets them."""
        ...

    @property
    def scores(self) -> Sequence[str]:
        """The names of what an episode is worth."""
        ...

    def opening(self, task: str) -> list[Message]:
        """The messages that an episode of `task` begins with."""
        ...

    def episode(self) -> Episode: ...


class LiveSection(Config):
    """Where episodes are played while a model trains, and what they are worth."""

    environment: str = Field(
        "gumshoe.eval.live:open_arena", description="module:function that makes the episodes from the section live"
    )
    live: dict[str, JsonValue] = Field(description="tasks, sandbox and limits, as that function reads them")
    weights: dict[str, float] = Field(
        default={"line_f1": 1.0, "grounding": 0.3, "format": 0.3, "cost": 0.1},
        description="what the reward is made of: score to weight",
    )
    max_tokens: PositiveInt = Field(256, description="most tokens of one turn")


def open_arena(section: LiveSection) -> Arena:
    """The episodes that a config names. Raises ConfigError."""
    module, separator, name = section.environment.partition(":")
    try:
        if not separator:
            raise AttributeError("it is not of the form module:function")
        make = cast("Callable[[Mapping[str, JsonValue]], Arena]", getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"environment {section.environment!r} cannot be loaded: {error}") from None
    arena = make(section.live)
    _check_weights(section.weights, arena.scores)
    return arena


def play(episode: Episode, task: str, write: Callable[[Sequence[Message]], str], weights: Mapping[str, float]) -> float:
    """Plays one episode and returns its reward.

    Args:
        episode: where.
        task: which.
        write: the model: the text of the next turn.
        weights: of the scores.
    """
    try:
        messages = episode.reset(task)
        while not episode.over:
            messages += episode.answer(write(messages))
        return reward(episode.scores(), weights)
    finally:
        episode.close()


def reward(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The weighted sum. Raises ConfigError for a weight of a score that there is not."""
    _check_weights(weights, list(scores))
    return sum(weight * scores[name] for name, weight in weights.items())


def _check_weights(weights: Mapping[str, float], scores: Sequence[str]) -> None:
    unknown = sorted(weights.keys() - set(scores))
    if unknown:
        raise ConfigError(f"weights: there is no score {unknown[0]!r}; the scores are {', '.join(sorted(scores))}")
