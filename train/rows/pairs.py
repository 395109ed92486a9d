"""Pairs of decisions as tokens: what the two have in common, and what is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gumshoe.errors import DatasetError
from gumshoe.train.rows.dataset import conversations
from gumshoe.train.rows.render import UNTRAINED, Rendered, Renderer
from gumshoe.train.rows.samples import Sampling, samples

if TYPE_CHECKING:
    from datasets import Dataset

__all__ = ["Pairs", "PreferencePair", "fitting_pairs", "pair_of", "prepare_pairs"]

_NAMED = 3


@dataclass(frozen=True)
class PreferencePair:
    """A row as the trainer gets it. What is compared is what the assistant wrote: text, calls, and the turn's end."""

    id: str
    prompt: list[int]
    chosen: list[int]
    rejected: list[int]

    @property
    def length(self) -> int:
        """Tokens of the prompt with the longer decision."""
        return len(self.prompt) + max(len(self.chosen), len(self.rejected))

    def sides(self) -> tuple[tuple[str, Rendered], tuple[str, Rendered]]:
        """Both decisions, each after the prompt, by the names of their columns."""
        return ("chosen", self._behind(self.chosen)), ("rejected", self._behind(self.rejected))

    def _behind(self, decision: list[int]) -> Rendered:
        return Rendered([*self.prompt, *decision], [*[UNTRAINED] * len(self.prompt), *decision])


@dataclass(frozen=True)
class Pairs:
    """What is trained, and how many pairs were too long and left out."""

    rows: Dataset
    skipped: int
    tokens: int
    trained_tokens: int


def pair_of(row: Mapping[str, Any], renderer: Renderer) -> PreferencePair:
    """The tokens of a row with `prompt`, `chosen`, `rejected` and perhaps `tools`.

    Raises:
        DatasetError: it cannot be rendered, or its two decisions do not follow the same prompt, or are the same.
    """
    prompt, chosen = _rendered(row, "chosen", renderer)
    other, rejected = _rendered(row, "rejected", renderer)
    name = str(row.get("id") or "a row")
    if prompt != other:
        raise DatasetError(f"{name}: the chat template renders the prompt differently before the two decisions")
    if chosen == rejected:
        raise DatasetError(f"{name}: chosen and rejected are the same")
    return PreferencePair(name, prompt, chosen, rejected)


def prepare_pairs(rows: Dataset, renderer: Renderer, max_length: int, too_long: Literal["error", "skip"]) -> Pairs:
    """Renders and checks every pair. Raises DatasetError."""
    from datasets import Dataset

    pairs = [pair_of(row, renderer) for row in conversations(rows)]
    fitting = fitting_pairs(pairs, max_length, too_long)
    columns = {
        "prompt_ids": [pair.prompt for pair in fitting],
        "chosen_ids": [pair.chosen for pair in fitting],
        "rejected_ids": [pair.rejected for pair in fitting],
    }
    compared = sum(len(pair.chosen) + len(pair.rejected) for pair in fitting)
    read = sum(2 * len(pair.prompt) for pair in fitting)
    return Pairs(Dataset.from_dict(columns), len(pairs) - len(fitting), read + compared, compared)


def fitting_pairs(
    pairs: Sequence[PreferencePair], max_length: int, too_long: Literal["error", "skip"]
) -> list[PreferencePair]:
    """The pairs that are not too long. Raises DatasetError where none is left, or none may be left out."""
    fitting = [pair for pair in pairs if pair.length <= max_length]
    long = [pair for pair in pairs if pair.length > max_length]
    if long and (too_long == "error" or not fitting):
        names = ", ".join(pair.id for pair in long[:_NAMED])
        raise DatasetError(
            f"{len(long)} of {len(pairs)} pairs have more than max_length {max_length} tokens ({names}): "
            f"set max_length to {max(pair.length for pair in long)} or more, or too_long: skip"
        )
    return fitting


def _rendered(row: Mapping[str, Any], column: str, renderer: Renderer) -> tuple[list[int], list[int]]:
    """The tokens before what the assistant wrote last, and the tokens of what it wrote."""
    # No turn is masked out: a decision that was a mistake is the one that the other is preferred to.
    completion = {**row, "completion": row[column], "sampled": ()}
    (sample,) = samples(completion, renderer, Sampling(max_length=0, mask=()))
    labels = sample.rendered.labels
    places = [place for place, label in enumerate(labels) if label != UNTRAINED]
    if not places:
        raise DatasetError(f"{row.get('id') or 'a row'}: {column} contains nothing written by an assistant")
    start, end = places[0], places[-1] + 1
    return sample.rendered.input_ids[:start], sample.rendered.input_ids[start:end]
