"""Episodes in live sandboxes, as training sees them.

Training imports no environment: the command hands one over, named in the config as `module:function` and made from the
config's section `live`, which only that function understands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from pydantic import Field, JsonValue, PositiveInt

from gumshoe.config import Config
from gumshoe.errors import ConfigError
from gumshoe.plugins import load_path

__all__ = ["Arena", "Episode", "GeneratedTurn", "LiveSection", "Message", "Request", "open_arena", "play"]

Message = dict[str, Any]


class Request(Protocol):
    """What the model is asked next, as its chat template takes it."""

    @property
    def messages(self) -> list[Message]:
        """The conversation so far."""
        ...

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that may be called, as JSON schemas."""
        ...


class Episode(Protocol):
    """One episode in a sandbox of its own. It owns the limits, the nudges and what may be called."""

    def next_request(self) -> Request | None:
        """What the model is asked next; None once the episode is over."""
        ...

    def accept(self, text: str, *, cut_off: bool = False) -> None:
        """Takes in a turn as the model wrote it; `cut_off` if it hit its length limit."""
        ...

    def scores(self) -> dict[str, float]:
        """The scores of the episode so far, 0 to 1 each, by name."""
        ...

    def close(self) -> None:
        """Ends the episode and its sandbox. Idempotent."""
        ...


class Arena(Protocol):
    """Tasks, and episodes on them."""

    @property
    def tasks(self) -> Sequence[str]:
        """The IDs of the tasks."""
        ...

    @property
    def scores(self) -> Sequence[str]:
        """The names of the scores of an episode."""
        ...

    def opening(self, task: str) -> list[Message]:
        """The messages that an episode of `task` begins with."""
        ...

    def episode(self, task: str) -> Episode:
        """Opens an episode of `task`. The caller closes it."""
        ...


class GeneratedTurn(NamedTuple):
    """What a model wrote, and whether it hit its length limit."""

    text: str
    cut_off: bool = False


class LiveSection(Config):
    """Where episodes are played while a model trains, and what they are worth."""

    environment: str = Field(
        "gumshoe.eval.live:open_arena", description="module:function that creates the episodes from the section live"
    )
    live: dict[str, JsonValue] = Field(description="tasks, sandbox and limits, as that function reads them")
    weights: dict[str, float] = Field(
        default={"line_f1": 1.0, "grounding": 0.3, "format": 0.3, "cost": 0.1},
        description="weight of each score in the reward",
    )
    max_tokens: PositiveInt = Field(256, description="maximum tokens per turn")


def open_arena(section: LiveSection) -> Arena:
    """The episodes that a config names. Raises ConfigError."""
    make: Callable[[Mapping[str, JsonValue]], Arena] = load_path(section.environment, "environment")
    arena = make(section.live)
    _check_weights(section.weights, arena.scores)
    return arena


def play(episode: Episode, write: Callable[[Request], GeneratedTurn], weights: Mapping[str, float]) -> float:
    """Plays one episode and returns its reward.

    Args:
        episode: not begun yet; closed at the end.
        write: asks the model for the next turn.
        weights: the weights of the scores.
    """
    try:
        while (request := episode.next_request()) is not None:
            turn = write(request)
            episode.accept(turn.text, cut_off=turn.cut_off)
        return reward(episode.scores(), weights)
    finally:
        episode.close()


def reward(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The weighted sum of the scores. Raises ConfigError for the weight of a score that does not exist."""
    _check_weights(weights, list(scores))
    return sum(weight * scores[name] for name, weight in weights.items())


def _check_weights(weights: Mapping[str, float], scores: Sequence[str]) -> None:
    unknown = sorted(weights.keys() - set(scores))
    if unknown:
        raise ConfigError(f"weights: there is no score {unknown[0]!r}; the scores are {', '.join(sorted(scores))}")
