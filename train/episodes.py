"""Episodes in live sandboxes, as training sees them, and how the model that trains plays them.

Training imports no environment: the config names a function (`module:function`) that makes the episodes from the
config's section `live`, which only that function understands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic import JsonValue

from gumshoe.agreement import check_weights, weighted_sum
from gumshoe.errors import SandboxError, TaskError
from gumshoe.plugins import load_path
from gumshoe.train.config import LiveSection
from gumshoe.train.rows.render import encode_chat

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

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

    def scores(self) -> dict[str, float | None]:
        """The scores of the episode so far, 0 to 1 each, by name; None for one that is not known."""
        ...

    def close(self) -> None:
        """Ends the episode and its sandbox. Idempotent."""
        ...


class EpisodeSource(Protocol):
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


def open_episodes(section: LiveSection) -> EpisodeSource:
    """The episodes that a config names. Raises ConfigError."""
    make: Callable[[Mapping[str, JsonValue]], EpisodeSource] = load_path(section.environment, "environment")
    source = make(section.live)
    check_weights(section.weights, source.scores)
    return source


def play(episode: Episode, write: Callable[[Request], GeneratedTurn], weights: Mapping[str, float]) -> float | None:
    """Plays one episode and returns its reward, the weighted sum of its scores; None if the sandbox did not start or
    broke, or if one of the scores is not known. The episode has not begun yet, and is closed at the end.
    """
    try:
        while (request := episode.next_request()) is not None:
            turn = write(request)
            episode.accept(turn.text, cut_off=turn.cut_off)
        return weighted_sum(episode.scores(), weights)
    except (SandboxError, TaskError):
        return None
    finally:
        episode.close()


def generate_turn(
    model: Any, tokenizer: PreTrainedTokenizerBase, template: str, request: Request, max_tokens: int
) -> GeneratedTurn:
    """The next turn, by greedy decoding with the template that is served, without its end token."""
    import torch

    encoded = encode_chat(
        tokenizer, template, request.messages, request.tools, add_generation_prompt=True, return_tensors="pt"
    )
    prompt = encoded["input_ids"].to(model.device)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            written = model.generate(
                input_ids=prompt,
                attention_mask=torch.ones_like(prompt),
                max_new_tokens=max_tokens,
                do_sample=False,
                pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id,
            )
    finally:
        model.train(was_training)
    ids = written[0][prompt.shape[1] :].tolist()
    text = str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))
    return GeneratedTurn(text, cut_off=not ids or ids[-1] != tokenizer.eos_token_id)
