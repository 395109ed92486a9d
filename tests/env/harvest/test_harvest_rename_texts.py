"""What renaming does to single files: nothing but names change, and the same ones everywhere."""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.harvest.rename.foreign import foreign_names
from gumshoe.env.harvest.rename.names import Names, choose_names
from gumshoe.env.harvest.rename.rewrite import rewrite
from gumshoe.env.harvest.rename.survey import survey
from gumshoe.env.harvest.rename.words import Namer, words_of

SHOP = '''\
"""The shop: `checkout_total` and Basket.price_of."""

import os.path
from dataclasses import dataclass, field
from itertools import groupby

from shop.prices import tariff

__all__ = ["Basket", "checkout_total"]
PRICE_LIMIT = 10  # see checkout_total


@dataclass
class Basket:
    """A basket.

    >>> Basket(["apple"]).price_of("apple", discount=1)
    4
    """

    contents: list[str] = field(default_factory=list)

    def price_of(self, fruit: "Basket", discount=0):
        raise_message = f"no {fruit!r} in price_of of {self.contents}"
        if fruit not in self.contents:
            raise KeyError(raise_message)
        return tariff.lookup(fruit) - discount

    def append(self, fruit):
        self.contents.append(fruit)


def checkout_total(baskets, *, rounding=None, **extras):
    amounts = [basket.price_of(fruit, discount=extras["discount"]) for basket in baskets for fruit in basket.contents]
    grouped = {key: list(values) for key, values in groupby(sorted(amounts, key=lambda amount: amount))}
    folder = os.path.join("shop", "prices")
    return getattr(baskets[0], "price_of"), grouped, folder, "checkout_total failed", "shop.prices"
'''


def names_of(text: str, seed: int = 0) -> Names:
    own = frozenset({"shop", "prices"})
    found = survey({"shop/basket.py": ast.parse(text)}, own)
    return choose_names(found, foreign_names(found.imported, Path("/nowhere")), own, frozenset({"shop"}), set(), seed)


def renamed(text: str, names: Names) -> str:
    return rewrite(text, names, frozenset({"shop", "prices"}))


@pytest.fixture(scope="module")
def names() -> Names:
    return names_of(SHOP)


@pytest.fixture(scope="module")
def new(names: Names) -> str:
    return renamed(SHOP, names)


def test_own_names_go_in_code_and_in_the_texts_that_name_code(names: Names, new: str) -> None:
    gone = {"Basket", "checkout_total", "price_of", "PRICE_LIMIT", "fruit", "discount", "baskets", "tariff", "shop"}
    assert gone <= names.new.keys()
    left = set(re.findall(r"\w+", new.replace('"shop", "prices"', "")))
    assert left & (gone - {"shop"}) == set()
    assert f'__all__ = ["{names.new["Basket"]}", "{names.new["checkout_total"]}"]' in new
    assert f'["{names.new["discount"]}"]' in new
    assert f'"{names.new["shop"]}.{names.new["prices"]}"' in new
    assert f"# see {names.new['checkout_total']}" in new


def test_names_of_others_stay(new: str) -> None:
    for text in (
        "os.path.join(",
        "default_factory=list",
        "groupby(sorted(",
        "key=lambda",
        ".append(",
        "dataclass",
        "self",
    ):
        assert text in new
    assert "def append(self" in new  # lists have it as well


def test_the_same_names_in_one_place_are_the_same_in_all(names: Names, new: str) -> None:
    assert len(set(names.new.values())) == len(names.new)
    assert not set(names.new.values()) & set(re.findall(r"\w+", SHOP))
    assert renamed(new, names) == new
    assert renamed(SHOP, names_of(SHOP)) == new
    assert renamed(SHOP, names_of(SHOP, seed=1)) != new


CORPUS = sorted(Path(ast.__file__).parent.glob("[f-h]*.py"))[:12]


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_only_names_differ(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    names = names_of(text)
    new = renamed(text, names)
    assert shape(text) == shape(new)
    assert tokens(text) == tokens(new)


def shape(text: str) -> str:
    """The syntax tree without names and texts."""
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", "''", ast.dump(ast.parse(text)))


def tokens(text: str) -> list[tuple[int, str]]:
    """The tokens without names and texts."""
    free = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return [
        (token.type, "" if token.type in free or is_name(token) else token.string)
        for token in found
        if token.type not in (tokenize.INDENT, tokenize.DEDENT)
    ]


def is_name(token: tokenize.TokenInfo) -> bool:
    return token.type == tokenize.NAME and not keyword.iskeyword(token.string)


NAME = st.from_regex(r"\A_?(?:[a-z]{1,8}|[A-Z][a-z]{2,6})(?:_?[A-Z]?[a-z]{1,6}){0,2}\Z")


@given(st.sets(NAME, min_size=1, max_size=30), st.integers(0, 5))
def test_new_names_have_the_form_of_the_old_ones_and_are_no_others(old: set[str], seed: int) -> None:
    namer = Namer(seed, old, {"taken", *old})
    made = {name: namer.new(name) for name in old}
    assert len(set(made.values())) == len(old)
    for name, word in made.items():
        assert word.isidentifier()
        assert word.isupper() == name.isupper()
        assert len(words_of(word)) == len(words_of(name))
        assert word.startswith("_") == name.startswith("_")
        assert word == name or word not in old
        assert Namer(seed, old, {"taken", *old}).new(name) == word
