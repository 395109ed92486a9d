"""Splitting made bugs into training and held out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.synth.bug import Bug
from gumshoe.env.synth.difficulty import difficulty
from gumshoe.env.synth.splits import assign_splits, heldout_names, joined
from gumshoe.env.synth.statement import problem_statement
from gumshoe.env.synth.verify import FailedTest

FUNCTIONS = st.dictionaries(st.text("abc123", min_size=1), st.sampled_from(["f", "g", "h", "k"]), max_size=30)
SHARES = st.floats(0, 0.99)


@given(FUNCTIONS, SHARES, st.integers())
def test_a_function_is_on_one_side_only(functions: dict[str, str], share: float, seed: int) -> None:
    splits = assign_splits(functions, share, seed)
    sides: dict[str, set[str]] = {}
    for bug, split in splits.items():
        sides.setdefault(functions[bug], set()).add(split)
    assert splits.keys() == functions.keys()
    assert all(len(side) == 1 for side in sides.values())
    assert not functions or "train" in splits.values()
    assert splits == assign_splits(functions, share, seed)


def test_the_share_is_met_where_functions_are_small() -> None:
    functions = {f"bug{number}": f"f{number}" for number in range(100)}
    held = [bug for bug, split in assign_splits(functions, 0.2, 3).items() if split == "heldout_bugs"]
    assert len(held) == 20
    assert set(assign_splits(functions, 0.0, 3).values()) == {"train"}


@given(st.dictionaries(st.integers().map(str), st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=3)))
def test_bugs_that_share_a_function_are_joined(functions: dict[str, set[str]]) -> None:
    groups = joined(functions)
    assert groups.keys() == functions.keys()
    for bug, names in functions.items():
        for other, others in functions.items():
            assert groups[bug] == groups[other] or not names & others
    assert joined({"1": {"a", "b"}, "2": {"c"}, "3": {"b", "d"}}) == {"1": "a", "2": "c", "3": "a"}


@given(st.sets(st.text("abc", min_size=1), max_size=9), SHARES, st.integers())
def test_some_projects_are_held_out_and_some_are_not(projects: set[str], share: float, seed: int) -> None:
    held = heldout_names(sorted(projects), share, seed)
    assert held <= projects
    assert held == heldout_names(sorted(projects, reverse=True), share, seed)
    if len(projects) > 1 and share > 0:
        assert 0 < len(held) < len(projects)
    else:
        assert not held


def failure(*frames: tuple[str, int, str], message: str = "AssertionError: assert 1 == 2") -> FailedTest:
    return FailedTest("AssertionError", message, frames)


def test_difficulty_is_the_distance_of_the_nearest_failure() -> None:
    cause = Bug("x", {"a.py": ""}, {"a.py": (1,)}, (("a.py", "A.f"),))
    here, near, far = ("a.py", 3, "f"), ("a.py", 9, "g"), ("tests/test_a.py", 5, "test_f")
    assert difficulty(cause, {"t": failure(far, here)}) == "same_function"
    assert difficulty(cause, {"t": failure(here, near), "u": failure(far)}) == "other_function"
    assert difficulty(cause, {"t": failure(here, far)}) == "other_file"
    assert difficulty(cause, {"t": failure()}) == "other_file"


def test_the_statement_tells_the_failure_and_stays_short() -> None:
    text = problem_statement({"tests/t.py::a": failure()})
    assert text.startswith("tests/t.py::a fails:\n\n    AssertionError: assert 1 == 2\n\nThe tests are right.")
    several = problem_statement({f"t{number}": failure(message="x\n" * 500) for number in range(7)})
    assert "So do 6 other tests." in several
    assert "    ...\n" in several
    assert len(several) < 200
    assert "So does one other test." in problem_statement({"t0": failure(), "t1": failure()})
