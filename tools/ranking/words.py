"""Words that texts and code share: identifiers in parts, and BM25."""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence

__all__ = ["Index", "identifiers", "words"]

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_COMMON = frozenset(keyword.kwlist) | frozenset(
    {"self", "cls", "test", "tests", "the", "an", "of", "to", "str", "int", "len", "dict", "list", "set", "type"}
)
"""Words of any code. They tell nothing, and they make long texts of tests look alike."""
_SATURATION, _LENGTH = 1.2, 0.75
"""The usual constants of BM25, k1 and b."""


def identifiers(text: str) -> set[str]:
    """All identifiers of a text, whole."""
    return set(_IDENTIFIER.findall(text))


def words(text: str) -> list[str]:
    """The parts of all identifiers in a text, in small letters: `parseHTTP_url` gives parse, http and url."""
    parts = (part.lower() for name in _IDENTIFIER.findall(text) for part in _PART.findall(name))
    return [part for part in parts if len(part) > 1 and part not in _COMMON]


class Index:
    """Documents that are searched by words."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        self._counts = [Counter(document) for document in documents]
        self._lengths = [count.total() for count in self._counts]
        self._mean = (sum(self._lengths) / len(self._lengths) if self._lengths else 0.0) or 1.0
        self._holding = Counter(word for count in self._counts for word in count)

    def scores(self, query: Iterable[str]) -> list[float]:
        """BM25 of each document, from 0 on, for the words of a query, each counted once.

        S. Robertson, H. Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond, 2009; the inverse document
        frequency is that of Lucene, which is never negative.
        """
        wanted = [word for word in dict.fromkeys(query) if word in self._holding]
        number = len(self._counts)
        weight = {word: math.log1p((number - n + 0.5) / (n + 0.5)) for word in wanted for n in [self._holding[word]]}
        return [
            sum(weight[word] * _saturated(count[word], length / self._mean) for word in wanted if word in count)
            for count, length in zip(self._counts, self._lengths, strict=True)
        ]


def _saturated(count: int, length: float) -> float:
    """How much a word counts that a document of a relative length has `count` times."""
    return count * (_SATURATION + 1) / (count + _SATURATION * (1 - _LENGTH + _LENGTH * length))
