"""Acc@k by hand, and F1 against scikit-learn."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from gumshoe.collect.packs import lines_overlap
from gumshoe.env.diff import make_patch
from gumshoe.errors import TaskError
from gumshoe.eval.score.buggy_code import BuggyCode
from gumshoe.eval.score.metrics import ACC, acc_at, edited_functions, functions_at, own_scores
from gumshoe.records import ContextPack, Location, Oracle
from support.eval.made import SOURCE, make_oracle, make_pack, make_task, make_trajectory

CODE = BuggyCode([make_task()])
TOTAL, SIZE, LAST = "cart.py:Cart.total", "cart.py:Cart.size", "cart.py:last"


def scores(pack: ContextPack, oracle: Oracle) -> dict[str, float | None]:
    return own_scores(make_trajectory(pack=pack), oracle, CODE)


def change(*edits: tuple[str, str], source: str = SOURCE) -> str:
    """A patch of cart.py in which each first text becomes the second."""
    text = source
    for before, after in edits:
        assert before in text
        text = text.replace(before, after, 1)
    return make_patch({"cart.py": (source.encode(), text.encode())})


def edited(patch: str, source: str = SOURCE) -> tuple[str, ...] | None:
    return edited_functions(patch, {"cart.py": source}.get)


# --- what a patch edits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "functions"),
    [
        ([("tax = 1", "tax = 2")], [TOTAL]),
        ([("return tax\n", "return tax + 1\n")], [TOTAL]),  # A nested function belongs to the one around it.
        ([("return LIMIT", "return LIMIT + 1"), ("return 0", "return 1")], [SIZE, LAST]),
        ([("return 0", "self.x = 1\n        return 0")], [SIZE]),  # An added line alone.
        ([("return 0\n", "return 0\n\n    def new(self):\n        return 1\n")], []),  # An added function.
        ([("import math", "import cmath"), ("LIMIT = 3", "LIMIT = 4")], []),  # Outside of any function.
        ([("class Cart:", "class Cart(dict):")], []),
        ([("        tax = 1\n", "        # The tax.\n\n        tax = 1\n")], []),  # A comment and a blank line.
        ([("        tax = 1\n", "        import math\n        tax = 1\n")], []),
    ],
)
def test_functions_that_a_patch_edits(edits: list[tuple[str, str]], functions: list[str]) -> None:
    assert edited(change(*edits)) == tuple(functions)


@pytest.mark.parametrize("drift", ["import os\n" * 7, "X = 1\n"])
def test_a_patch_from_a_commit_some_lines_away_is_followed(drift: str) -> None:
    patch = change(("return LIMIT", "return LIMIT + 1"), ("return 0", "return 1"))
    assert edited(patch, drift + SOURCE) == (SIZE, LAST)


def test_a_patch_that_cannot_be_followed_is_unscored() -> None:
    patch = change(("tax = 1", "tax = 2"))
    assert edited_functions(patch, lambda path: None) is None
    assert edited(patch, "def (") is None
    assert edited(patch, "something = 1\n") is None
    assert edited(make_patch({"notes.md": (b"a\n", b"b\n")})) == ()
    assert edited(make_patch({"new.py": (None, b"def f(): pass\n")})) == ()
    assert edited(make_patch({"cart.py": (SOURCE.encode(), None)})) == (TOTAL, SIZE, LAST)
    with pytest.raises(TaskError):
        edited("nonsense")


# --- Acc@k --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "gold", "k", "value"),
    [
        ("ab", "a", 1, 1),
        ("ba", "a", 1, 0),
        ("ba", "a", 3, 1),
        ("abc", "ac", 2, 0),
        ("abc", "ac", 3, 1),
        ("ab", "abc", 2, 1),  # More to be found than k: all of the first k have to be right.
        ("ab", "abc", 3, 0),
        ("aab", "ab", 2, 1),  # A name given twice counts once.
        ("", "a", 5, 0),
    ],
)
def test_acc_at_k_by_hand(named: str, gold: str, k: int, value: float) -> None:
    assert acc_at(named, gold, k) == value


def test_ranks_of_locations_by_hand() -> None:
    """The fix is in Cart.total and last. Named: another file, the method size, a line of total, the whole of last."""
    oracle = make_oracle(patch=change(("tax = 1", "tax = 2"), ("return LIMIT", "return 0")))
    found = scores(make_pack(("other.py", 1, 2), ("cart.py", 15, 16), ("./cart.py", 8, 8), ("cart.py", 19, 20)), oracle)
    assert [found[f"{level}_acc@{k}"] for level, k in ACC] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ((6, 16), ["cart.py:Cart"]),
        ((7, 16), [TOTAL, SIZE]),
        ((10, 11), [TOTAL]),
        ((1, 6), ["cart.py:Cart"]),
        ((1, 3), []),
        ((1, 10**9), [TOTAL, SIZE, LAST]),
    ],
)
def test_a_location_of_a_class_is_that_class_and_one_across_functions_is_each_of_them(
    lines: tuple[int, int], names: list[str]
) -> None:
    assert functions_at(Location(path="./cart.py", start=lines[0], end=lines[1]), "t", CODE) == names


def test_a_fix_outside_of_functions_is_no_row_of_acc_but_one_of_lines() -> None:
    found = scores(make_pack(("cart.py", 3, 3)), make_oracle(patch=change(("LIMIT = 3", "LIMIT = 4"))))
    assert [found[f"{level}_acc@{k}"] for level, k in ACC] == [None] * len(ACC)
    assert (found["file_recall"], found["line_recall"]) == (1, 1)


# --- against scikit-learn -----------------------------------------------------------------------------------------


def scikit_learns(named: Collection[object], gold: Collection[object], universe: Iterable[object]) -> list[float]:
    """Precision, recall and F1; 0 where they are undefined."""
    rows = [(one in gold, one in named) for one in universe]
    options: dict[str, Any] = {"average": "binary", "zero_division": 0.0}
    return list(precision_recall_fscore_support(*zip(*rows, strict=True), **options)[:3])


@given(named=st.sets(st.integers(1, 30)), gold=st.sets(st.integers(1, 30), min_size=1))
def test_f1_of_lines_is_scikit_learns(named: set[int], gold: set[int]) -> None:
    found = lines_overlap([Location(path="a.py", start=line, end=line) for line in named], {"a.py": gold})
    lines = range(1, 31)
    theirs = scikit_learns(named, gold, lines)
    assert (found.precision or 0.0, found.recall, found.f1) == pytest.approx(theirs)
