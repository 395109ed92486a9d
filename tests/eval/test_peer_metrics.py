"""Other explorers' measures: each by hand, then F1 and nDCG against scikit-learn."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import dcg_score, ndcg_score, precision_recall_fscore_support

from gumshoe.env.diff import make_patch
from gumshoe.errors import TaskError
from gumshoe.eval.scorers import make_scorers
from gumshoe.eval.scorers.budget import ndcg_within, within
from gumshoe.eval.scorers.edited import edited_functions
from gumshoe.eval.scorers.localization import MEASURES, lines_overlap
from gumshoe.eval.scorers.ranking import ACC, Edited, Ranked, Rankings, acc_at
from gumshoe.eval.scorers.sources import Sources
from gumshoe.records import ContextPack, Location, Oracle
from support.eval.made import PATCH, SOURCE, make_oracle, make_pack, make_task, make_trajectory

SOURCES = Sources([make_task()])
TOTAL, SIZE, LAST = "cart.py:Cart.total", "cart.py:Cart.size", "cart.py:last"


def scores(pack: ContextPack | None, oracle: Oracle, given: Ranked | None = None) -> dict[str, float | None]:
    scorers = make_scorers(SOURCES, {} if given is None else {"t": given})
    found = (scorer.score(make_trajectory(pack=pack), oracle) for scorer in scorers)
    return {score.name: score.value for score in found}


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


# --- Acc@k and sets -----------------------------------------------------------------------------------------------


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
    assert [found[f"file_acc@{k}"] for k in (1, 3, 5)] == [0, 1, 1]
    assert [found[f"module_acc@{k}"] for k in (5, 10)] == [1, 1]
    assert [found[f"function_acc@{k}"] for k in (5, 10)] == [1, 1]
    assert [found[f"{what}_named"] for what in ("files", "modules", "functions", "lines")] == [2, 2, 3, 7]
    assert [found[f"edited_module_{measure}"] for measure in MEASURES] == [1, 1, 1]
    assert [found[f"edited_function_{measure}"] for measure in MEASURES] == pytest.approx([2 / 3, 1, 4 / 5])


def test_a_location_of_a_class_is_that_class_and_one_across_functions_is_each_of_them() -> None:
    rankings = Rankings(SOURCES)
    for place, names in (
        (("cart.py", 6, 16), ("cart.py:Cart",)),
        (("cart.py", 7, 16), (TOTAL, SIZE)),
        (("cart.py", 10, 11), (TOTAL,)),
        (("cart.py", 1, 6), ("cart.py:Cart",)),
        (("cart.py", 1, 3), ()),
        (("cart.py", 1, 10**9), (TOTAL, SIZE, LAST)),
    ):
        assert rankings.named(make_trajectory(pack=make_pack(place))).function == names


def test_rankings_that_an_explorer_gives_go_before_the_order_of_locations() -> None:
    ranked = Ranked(("other.py", "cart.py"), ("cart.py:Cart",), (*(f"cart.py:f{n}" for n in range(5)), TOTAL))
    pack = make_pack(("cart.py", 8, 8))
    found = scores(pack, make_oracle(), ranked)
    assert [found[f"{level}_acc@{k}"] for level, k in ACC] == [0, 1, 1, 1, 1, 0, 0, 1]
    assert (found["functions_named"], found["lines_named"]) == (6, 1)
    assert scores(pack, make_oracle())["file_acc@1"] == 1


def test_an_answer_without_a_pack_found_nothing() -> None:
    found = scores(None, make_oracle())
    assert [found[f"{level}_acc@{k}"] for level, k in ACC] == [0] * len(ACC)
    assert [found["edited_function_f1"], found["ndcg@100"], found["recall@100"], found["files_named"]] == [0] * 4
    assert [found["edited_function_precision"], found["efficiency@100"]] == [None] * 2


def test_a_fix_outside_of_functions_is_no_row_of_acc_but_one_of_lines() -> None:
    found = scores(make_pack(("cart.py", 3, 3)), make_oracle(patch=change(("LIMIT = 3", "LIMIT = 4"))))
    assert [found[f"{level}_acc@{k}"] for level, k in ACC] == [None] * len(ACC)
    assert (found["edited_function_f1"], found["file_recall"], found["recall@100"]) == (None, 1, 1)


# --- line budgets -------------------------------------------------------------------------------------------------


def test_line_budgets_by_hand() -> None:
    """Gold: lines 8 and 11 of cart.py. Named: 90 lines of another file, then 1 to 20 there."""
    found = scores(make_pack(("other.py", 1, 90), ("cart.py", 1, 20)), make_oracle(patch=PATCH))
    assert found["recall@100"] == 1 / 2  # Line 10 of cart.py is the hundredth.
    assert found["recall@300"] == 1
    assert found["efficiency@100"] == 1 / 100
    assert found["efficiency@300"] == 2 / 110
    assert found["ndcg@100"] == 0  # cart.py does not fit as a whole behind the 90 lines.
    assert found["ndcg@300"] == pytest.approx(0.6309, abs=1e-4)  # 2 / log2(3), instead of 2 / log2(2).
    assert found["lines_named"] == 110


def test_the_first_location_counts_however_long_it_is_and_costs_nothing() -> None:
    long = Location(path="cart.py", start=1, end=10**9)
    assert ndcg_within([long], {"cart.py": {8}}, 100) == 1
    assert within([long, long], 100) == [Location(path="cart.py", start=1, end=100)]
    assert ndcg_within([], {"cart.py": {8}}, 100) == 0


# --- against scikit-learn -----------------------------------------------------------------------------------------

NAMES = [f"cart.py:f{number}" for number in range(8)]
SUBSETS = st.lists(st.sampled_from(NAMES), unique=True)


def scikit_learns(named: Collection[object], gold: Collection[object], universe: Iterable[object]) -> list[float]:
    """Precision, recall and F1; 0 where they are undefined."""
    rows = [(one in gold, one in named) for one in universe]
    options: dict[str, Any] = {"average": "binary", "zero_division": 0.0}
    return list(precision_recall_fscore_support(*zip(*rows, strict=True), **options)[:3])


@given(named=SUBSETS, gold=SUBSETS.filter(len))
def test_f1_of_functions_is_scikit_learns(named: list[str], gold: list[str]) -> None:
    source = "".join(f"def f{number}():\n    return 0\n" for number in range(8))
    text = source
    for name in gold:
        text = text.replace(f"{name.partition(':')[2]}():\n    return 0", f"{name.partition(':')[2]}():\n    return 1")
    oracle = make_oracle(patch=make_patch({"cart.py": (source.encode(), text.encode())}))
    rankings = Rankings(Sources([make_task(source=source)]))
    lines = [2 * NAMES.index(name) + 2 for name in named]
    trajectory = make_trajectory(pack=make_pack(*(("cart.py", line, line) for line in lines)))
    found = [Edited("function", measure, rankings).score(trajectory, oracle).value for measure in MEASURES]
    theirs = scikit_learns(named, gold, NAMES)
    assert found == [
        None if not named and measure == "precision" else pytest.approx(value)
        for measure, value in zip(MEASURES, theirs, strict=True)
    ]


@given(named=st.sets(st.integers(1, 30)), gold=st.sets(st.integers(1, 30), min_size=1))
def test_f1_of_lines_is_scikit_learns(named: set[int], gold: set[int]) -> None:
    found = lines_overlap([Location(path="a.py", start=line, end=line) for line in named], {"a.py": gold})
    lines = range(1, 31)
    theirs = scikit_learns(named, gold, lines)
    assert (found.precision or 0.0, found.recall, found.f1) == pytest.approx(theirs)


@given(data=st.data(), budget=st.integers(1, 120))
def test_ndcg_of_equal_locations_is_scikit_learns(data: st.DataObject, budget: int) -> None:
    """Ten lines each, so that as many fit as go into the budget, and the best order is that of their gains."""
    gains = data.draw(st.lists(st.integers(0, 10), min_size=2, max_size=10))
    locations = [Location(path="a.py", start=10 * at + 1, end=10 * at + 10) for at in range(len(gains))]
    gold = {"a.py": {10 * at + 1 + line for at, gain in enumerate(gains) for line in range(gain)}}
    ranks = [list(range(len(gains), 0, -1))]
    theirs = ndcg_score([gains], ranks, k=max(1, budget // 10))
    assert ndcg_within(locations, gold, budget) == pytest.approx(theirs)


@given(sizes=st.lists(st.tuples(st.integers(0, 10), st.integers(10, 20)), min_size=2, max_size=8))
def test_ndcg_of_unequal_locations_is_scikit_learns_gain_over_that_of_the_densest_first(
    sizes: list[tuple[int, int]],
) -> None:
    locations = [Location(path="a.py", start=100 * at + 1, end=100 * at + lines) for at, (_, lines) in enumerate(sizes)]
    gold = {"a.py": {100 * at + 1 + line for at, (gain, _) in enumerate(sizes) for line in range(gain)}}
    ranks = [list(range(len(sizes), 0, -1))]
    best = [gain for gain, _ in sorted(sizes, key=lambda size: -size[0] / size[1])]
    ideal = dcg_score([best], ranks)
    theirs = min(dcg_score([[gain for gain, _ in sizes]], ranks) / ideal, 1.0) if ideal else 0.0
    assert ndcg_within(locations, gold, 10**6) == pytest.approx(theirs)
