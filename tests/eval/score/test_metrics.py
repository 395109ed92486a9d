"""Each metric by hand, what must hold for every pack, and Acc@k."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.packs import lines_overlap
from gumshoe.env.diff import make_patch
from gumshoe.errors import TaskError
from gumshoe.eval.score.buggy_code import BuggyCode
from gumshoe.eval.score.metrics import (
    ACC,
    acc_at,
    adherence,
    conduct_of,
    edited_functions,
    first_right_rank,
    functions_at,
    own_scores,
)
from gumshoe.records import Check, ContextPack, Finding, Location, WorkspaceSpec
from support.eval.made import PATCH, SOURCE, make_oracle, make_pack, make_step, make_task, make_trajectory

CODE = BuggyCode([make_task()])
TOTAL, SIZE, LAST = "cart.py:Cart.total", "cart.py:Cart.size", "cart.py:last"
LOCATIONS = st.lists(
    st.builds(
        lambda path, start, length: Location(path=path, start=start, end=start + length),
        st.sampled_from(["cart.py", "./cart.py", "other.py"]),
        st.integers(1, 30),
        st.integers(0, 10),
    ),
    max_size=6,
)
PLACES = ("file_recall", "function_recall", "line_recall", "line_f1", "reciprocal_rank")


def scores(pack: ContextPack | None, patch: str = PATCH) -> dict[str, float | None]:
    return own_scores(make_trajectory([make_step()], pack), make_oracle(patch=patch), CODE)


def change(*edits: tuple[str, str]) -> str:
    """A patch of cart.py in which each first text becomes the second."""
    text = SOURCE
    for before, after in edits:
        assert before in text
        text = text.replace(before, after, 1)
    return make_patch({"cart.py": (SOURCE.encode(), text.encode())})


def test_localization_by_hand() -> None:
    """Gold: lines 8 and 11 of cart.py. Named: 7 to 9 there (1 of 2 right), and 2 lines of another file."""
    found = scores(make_pack(("other.py", 1, 2), ("./cart.py", 7, 9)))
    assert [found[name] for name in PLACES] == pytest.approx([1, 1 / 2, 1 / 2, 2 / 7, 1 / 2])
    assert found["line_precision"] == pytest.approx(1 / 5)
    nothing = scores(None)
    assert [nothing[name] for name in (*PLACES, "reported")] == [0.0] * 6
    assert [nothing[name] for name in ("line_precision", "grounding")] == [None] * 2
    added = scores(make_pack(("cart.py", 1, 1)), "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n")
    assert [added[name] for name in (*PLACES, "line_precision", "file_acc@1")] == [None] * 7
    # A billion lines cost no more than two.
    found = scores(make_pack(("cart.py", 1, 10**9), ("cart.py", 2, 10**9 + 1)))
    assert (found["line_recall"], found["function_recall"]) == (1.0, 1.0)
    assert found["line_precision"] == pytest.approx(2 / (10**9 + 1))


@given(locations=LOCATIONS)
def test_localization_stays_within_bounds_and_counts_lines_as_sets(locations: list[Location]) -> None:
    gold = {"cart.py": {3, 8, 11}, "other.py": {1}}
    found = lines_overlap(locations, gold)
    named = {(place.path.removeprefix("./"), line) for place in locations for line in place.lines}
    wanted = {(path, line) for path, lines in gold.items() for line in lines}
    assert (found.named, found.gold, found.shared) == (len(named), len(wanted), len(named & wanted))
    assert 0 <= (found.f1 or 0) <= 1
    assert (found.f1 or 0) == pytest.approx(2 * found.shared / (found.named + found.gold))
    shuffled = random.Random(0).sample(locations, len(locations))
    assert lines_overlap(shuffled, gold) == found
    rank = first_right_rank(locations, gold)
    assert (rank is None) == (found.shared == 0)
    assert rank is None or 1 <= rank <= len(locations)


@given(locations=LOCATIONS)
def test_naming_more_never_lowers_recall(locations: list[Location]) -> None:
    fewer, more = (scores(ContextPack(locations=tuple(some))) for some in (locations[:-1], locations))
    for name in ("file_recall", "function_recall", "line_recall"):
        assert 0 <= (fewer[name] or 0.0) <= (more[name] or 0.0) <= 1


def test_sources_are_read_from_overlay_and_folder_and_nowhere_else(tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    repository.mkdir()
    (repository / "a.py").write_text("a = 1\n")
    (tmp_path / "secret.py").write_text("no = 1\n")
    overlay: dict[str, str | None] = {"b.py": "b = 1\n", "gone.py": None}
    spec = WorkspaceSpec(path=str(repository), overlay=overlay)
    code = BuggyCode([make_task().model_copy(update={"workspace": spec})])
    assert (code.text("t", "a.py"), code.text("t", "b.py")) == ("a = 1\n", "b = 1\n")
    for path in ("gone.py", "../secret.py", str(tmp_path / "secret.py"), "missing.py", "a\0b"):
        assert code.text("t", path) is None
    assert code.text("another", "a.py") is None
    assert BuggyCode([make_task()]).text("t", "not_there.py") is None


@pytest.mark.parametrize(
    ("pack", "patch", "expected"),
    [
        (make_pack(("cart.py", 1, 2), ("cart.py", 8, 9)), PATCH, 1.0),
        (make_pack(("cart.py", 1, 2)), PATCH, 0.0),
        (make_pack(("other.py", 1, 99)), PATCH, 0.0),
        (make_pack(("cart.py", 8, 8)), "", None),
        (make_pack(("cart.py", 8, 8)), "no patch", None),
        (make_pack(), PATCH, None),
        (None, PATCH, None),
    ],
)
def test_adherence_needs_a_patch_and_a_place(pack: ContextPack | None, patch: str, expected: float | None) -> None:
    assert adherence(pack, patch) == expected


def test_valid_calls_by_hand() -> None:
    failures = (None, "no_such_file", "bad_arguments", "unknown_tool", "unreadable_call")
    steps = [make_step(index, failure=failure) for index, failure in enumerate(failures)]
    steps += [make_step(5, parse_error="no JSON"), make_step(6, calls=0), make_step(7, calls=2)]
    assert conduct_of(make_trajectory(steps))["valid_calls"] == 3 / 8
    assert conduct_of(make_trajectory())["valid_calls"] is None


def test_grounding_by_hand() -> None:
    """Only what was confirmed and tells something counts; what was never checked has no value."""
    checks = (
        Check(status="confirmed", telling=True),
        Check(status="confirmed", telling=False),
        Check(status="contradicted"),
        Check(status="unchecked"),
    )
    findings = tuple(Finding(claim="", step=0, quote="q", check=check) for check in checks)
    packs = (ContextPack(findings=findings), make_pack(findings=[(0, "q")]), make_pack())
    assert [conduct_of(make_trajectory([], pack))["grounding"] for pack in packs] == [1 / 4, None, None]


def test_conduct_by_hand() -> None:
    steps = [make_step(0), make_step(1), make_step(2, tool="pdb"), make_step(3, parse_error="no JSON")]
    found = conduct_of(make_trajectory(steps, make_pack(("cart.py", 8, 8)), tokens=50))
    assert [found[name] for name in ("steps", "tokens", "seconds", "debugged", "reported")] == [4, 50, 4.0, 1.0, 1.0]
    empty = conduct_of(make_trajectory([make_step(0, confidence=0.5)]))
    assert (empty["tokens"], empty["confidence"]) == (None, None)
    sure = make_trajectory([make_step(0, confidence=0.8)], make_pack(("cart.py", 8, 8)))
    assert conduct_of(sure)["confidence"] == 0.8


def edited(patch: str, source: str = SOURCE) -> tuple[str, ...] | None:
    return edited_functions(patch, {"cart.py": source}.get)


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
    for other in ("def (", "\0", "(" * 5000, "something = 1\n"):
        assert edited(patch, other) is None
    assert edited(make_patch({"notes.md": (b"a\n", b"b\n")})) == ()
    assert edited(make_patch({"new.py": (None, b"def f(): pass\n")})) == ()
    assert edited(make_patch({"cart.py": (SOURCE.encode(), None)})) == (TOTAL, SIZE, LAST)
    with pytest.raises(TaskError):
        edited("nonsense")


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
    patch = change(("tax = 1", "tax = 2"), ("return LIMIT", "return 0"))
    found = scores(make_pack(("other.py", 1, 2), ("cart.py", 15, 16), ("./cart.py", 8, 8), ("cart.py", 19, 20)), patch)
    assert [found[f"{level}_acc@{k}"] for level, k in ACC] == [0, 1, 0, 1]
    outside = scores(make_pack(("cart.py", 3, 3)), change(("LIMIT = 3", "LIMIT = 4")))
    assert [outside[f"{level}_acc@{k}"] for level, k in ACC] == [None] * len(ACC)
    assert (outside["file_recall"], outside["line_recall"]) == (1, 1)


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
