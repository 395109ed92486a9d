"""Rows with their names and numbers exchanged, so that a small model learns to copy them and not to know them by heart.

A few hundred rows over a dozen projects name the same files again and again. A small model learns those names sooner
than it learns to copy, and then puts them into reports about projects that it has never seen. Exchanging the rare words
of a row for other rare words, and moving its line numbers along, the same throughout the row, keeps everything that a
row shows about where things are copied from, and makes every name new. A name is given one token or more: names that
were never seen are cut into more tokens than those that the tokenizer knows, and are to be copied as well.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["RenamingCollator", "exchangeable"]

_WORD = re.compile(r"(?P<before>[ ./_]?)_*[A-Za-z]+")
_NUMBER = re.compile(r"[1-9]\d{1,2}")
_COMMON = 0.3
"""Words in more rows than this are the language of the conversations: they stay."""
_MORE_TOKENS = (0, 0, 1, 2, 3)
"""How many tokens may follow the first one of a new name, each as likely as the others."""

Batch = list[dict[str, Any]]


def exchangeable(
    tokenizer: PreTrainedTokenizerBase, rows: Iterable[Sequence[int]]
) -> tuple[list[list[int]], list[int]]:
    """Tokens that may stand for one another: groups of rare words, and the numbers from 10 on in their order.

    Words of a group begin alike (with a space, a slash, ...), so that what comes out still looks like code; those that
    begin with a small letter are the first group. Numbers
    below 10 stay: they are steps and shares.

    Args:
        tokenizer: of the model.
        rows: tokens of the rows, for telling rare words from common ones.
    """
    every = list(rows)
    counts = Counter(token for row in every for token in set(row))
    groups: dict[str, list[int]] = {}
    numbers: dict[int, int] = {}
    for token in range(len(tokenizer)):
        text = str(tokenizer.decode([token]))
        word = _WORD.fullmatch(text)
        if _NUMBER.fullmatch(text):
            numbers[int(text)] = token
        elif word and len(text) > 1 and counts[token] < _COMMON * len(every):
            groups.setdefault(word["before"] + ("A" if text[-1].isupper() else "a"), []).append(token)
    plain = groups.pop("a", [])
    return [plain, *groups.values()] if plain else list(groups.values()), [
        numbers[number] for number in sorted(numbers)
    ]


class RenamingCollator:
    """Exchanges names and numbers in a share of the rows, anew in each epoch, then makes the batch.

    What a row becomes depends on the seed, the row and the epoch alone: a resumed run sees the same rows.

    Args:
        collate: makes the batch.
        words: groups of words, see `exchangeable`; further tokens of a name are of the first group.
        numbers: numbers in their order.
        share: of the rows that are changed.
        seed: of the run.
        epoch: says which epoch it is.
    """

    def __init__(
        self,
        collate: Callable[[Batch], Mapping[str, Any]],
        *,
        words: Sequence[Sequence[int]],
        numbers: Sequence[int],
        share: float,
        seed: int,
        epoch: Callable[[], int],
    ) -> None:
        self._collate = collate
        self._words = words
        self._numbers = numbers
        self._share = share
        self._seed = seed
        self._epoch = epoch

    def __call__(self, rows: Batch) -> Mapping[str, Any]:
        """The batch of these rows."""
        return self._collate([self._changed(row) for row in rows])

    def _changed(self, row: dict[str, Any]) -> dict[str, Any]:
        rng = random.Random(f"{self._seed} {self._epoch()} {row['input_ids']}")
        if rng.random() >= self._share:
            return row
        new = self._exchange(rng)
        changed = [
            (fresh, fresh if label == token else label)
            for token, label in zip(row["input_ids"], row["labels"], strict=True)
            for fresh in new.get(token, (token,))
        ]
        return {**row, "input_ids": [token for token, _ in changed], "labels": [label for _, label in changed]}

    def _exchange(self, rng: random.Random) -> dict[int, tuple[int, ...]]:
        """Which tokens stand for which."""
        new: dict[int, tuple[int, ...]] = {}
        for group in self._words:
            for old, first in zip(group, rng.sample(group, len(group)), strict=True):
                new[old] = (first, *rng.choices(self._words[0], k=rng.choice(_MORE_TOKENS)))
        if self._numbers:
            shift = rng.randrange(len(self._numbers))
            shifted = [*self._numbers[shift:], *self._numbers[:shift]]
            new.update((old, (number,)) for old, number in zip(self._numbers, shifted, strict=True))
        return new
