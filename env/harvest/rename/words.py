# ruff: noqa: SIM905 (lists of words read better as text)
"""New names: words that could be English and are not, in the form of the old name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

__all__ = ["Namer", "words_of"]

WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
# Words that carry the grammar of names, or that pytest goes by: they say nothing about a particular project.
KEPT = frozenset(
    "a all and any as at by case do error exception for from get has if in init into is main new no not of off on or"
    " set suite test testing tests the to warning with".split()
)
# Names this short say nothing either.
SHORT = 2
STARTS = "b bl br c cl cr d dr f fl fr g gl gr h j k l m n p pl pr qu r s sc sk sl sp st t tr v w".split()
VOWELS = "a e i o u a e i o ai ea oo ou".split()
MIDDLES = "b d f g l m n p r s t v ll nn rr ss tt ld mb mp nd nt rk rl rn st".split()
ENDS = "d k l m n p r t ck ft ld lt mp nd ng nk nt rd rk rm rn sk st th".split()


def words_of(name: str) -> list[str]:
    """The words that a name consists of, in lowercase."""
    return [word.lower() for word in WORD.findall(name)]


class Namer:
    """Makes new names, the same ones for the same seed. None of their words is among `taken`, and no two are equal.

    Args:
        seed: changes every word.
        names: every name that will be asked for.
        taken: words and names that exist already.
    """

    def __init__(self, seed: int, names: Iterable[str], taken: Iterable[str]) -> None:
        wanted = sorted({word for name in names for word in words_of(name)})
        used = {word for name in taken for word in (name.lower(), *words_of(name))} | set(wanted)
        self._words: dict[str, str] = {}
        for word in wanted:
            if len(word) <= SHORT or word in KEPT:
                continue
            made = next(made for made in _made(seed, word) if made not in used)
            used.add(made)
            self._words[word] = made

    def new(self, name: str) -> str:
        """The new name; `name` itself where it consists of words that are kept."""
        return WORD.sub(lambda found: self._word(found[0]), name) if name.isascii() else name

    def _word(self, word: str) -> str:
        made = self._words.get(word.lower())
        if made is None:
            return word
        if word.isupper() and len(word) > 1:
            return made.upper()
        return made.capitalize() if word[0].isupper() else made


def _made(seed: int, word: str) -> Iterable[str]:
    """Endless suggestions for one word; longer words get longer ones."""
    attempt = 0
    while True:
        digest = hashlib.sha256(f"{seed} {word} {attempt}".encode()).digest()
        letters = iter(digest)
        syllables = (1 if len(word) < 5 else 2) + attempt // 4
        parts = [_pick(STARTS, letters)]
        for number in range(min(syllables, 6)):
            parts += [_pick(MIDDLES, letters)] if number else []
            parts += [_pick(VOWELS, letters)]
        yield "".join([*parts, _pick(ENDS, letters)])
        attempt += 1


def _pick(parts: Sequence[str], numbers: Iterable[int]) -> str:
    return parts[next(iter(numbers)) % len(parts)]
