"""Candidates: what they tell of a change; which proven bugs are held out, and what a task says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.bugs.candidates import candidates, project_candidates
from gumshoe.env.bugs.judging import FailedTest
from gumshoe.env.bugs.splits import assign_splits, families, heldout_names, heldout_packages
from gumshoe.env.bugs.tasks import nearness, problem_statement

FUNCTIONS = st.dictionaries(st.text("abc123", min_size=1), st.sampled_from(["f", "g", "h", "k"]), max_size=30)
SHARES = st.floats(0, 0.99)


def test_docstrings_annotations_imports_and_decorators_stay() -> None:
    source = '"""1 < 2"""\nfrom a import b\n\n@dec(1)\ndef f(x: T[1]) -> U[2]:\n    "3 and 4"\n    return x\n'
    for candidate in candidates(source, 0):
        changed = [line for line in candidate.text.splitlines() if line not in source.splitlines()]
        assert len(changed) == 1
        assert changed[0].strip() == "x"


def test_a_candidate_names_its_function_and_the_statement_it_is_in() -> None:
    source = "class A:\n    def f(self):\n        return (\n            1 +\n            2\n        )\n"
    (candidate,) = candidates(source, 0, path="a.py", operators=["arithmetic"])
    assert (candidate.path, candidate.symbol, candidate.lines) == ("a.py", "A.f", (3, 4))


def test_a_change_in_a_condition_belongs_to_all_that_is_evaluated_before_it() -> None:
    source = "def f(a, b):\n    if (\n        a\n        or b\n    ):\n        return 1\n    return 2\n"
    (candidate,) = candidates(source, 0, operators=["boolean_operator"])
    assert candidate.lines == (2, 3, 4)


@pytest.mark.parametrize("line", ['a = f"{f"{a}"}"', "type P = int", "try: f()\n    except A, B: raise", 't"{a}"'])
def test_syntax_newer_than_this_python_gets_bugs(line: str) -> None:
    source = f"def f(a, b):\n    {line}\n    return a + b\n\n\nclass Box[T]: ...\n"
    (candidate,) = candidates(source, 0, operators=["arithmetic"])
    assert candidate.text == source.replace("a + b", "a - b")


def test_a_file_that_is_not_python_gets_none() -> None:
    files = {"bad.py": "async = 1\n", "good.py": "def f(a, b):\n    return a + b\n"}
    assert {one.path for one in project_candidates(files, 0)} == {"good.py"}
    with pytest.raises(ValueError, match=r"bad.py:1 is not Python"):
        project_candidates({"bad.py": "async = 1\n"}, 0)


def test_line_ends_and_indentation_are_kept() -> None:
    source = "def f(a, b):\r\n\tif a < b:\r\n\t\treturn a\r\n\treturn b\r\n"
    for candidate in candidates(source, 0):
        assert "\n" not in candidate.text.replace("\r\n", "")
        assert "    " not in candidate.text


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


@given(st.sets(st.text("abc", min_size=1), max_size=9), SHARES, st.integers())
def test_some_projects_are_held_out_and_some_are_not(projects: set[str], share: float, seed: int) -> None:
    held = heldout_names(sorted(projects), share, seed)
    assert held <= projects
    assert held == heldout_names(sorted(projects, reverse=True), share, seed)
    if len(projects) > 1 and share > 0:
        assert 0 < len(held) < len(projects)
    else:
        assert not held


def failed_test(*frames: tuple[str, int, str], message: str = "AssertionError: assert 1 == 2") -> FailedTest:
    return FailedTest("AssertionError", message, frames)


def test_difficulty_is_the_distance_of_the_nearest_failed_test() -> None:
    cause = [("a.py", "A.f")]
    here, near, far = ("a.py", 3, "f"), ("a.py", 9, "g"), ("tests/test_a.py", 5, "test_f")
    assert nearness(cause, {"t": failed_test(far, here)}) == "same_function"
    assert nearness(cause, {"t": failed_test(here, near), "u": failed_test(far)}) == "other_function"
    assert nearness(cause, {"t": failed_test(here, far)}) == "other_file"
    assert nearness(cause, {"t": failed_test()}) == "other_file"
    assert nearness((), {"t": failed_test(here)}) == "other_file"


def test_the_statement_tells_the_failure_and_stays_short() -> None:
    text = problem_statement({"tests/t.py::a": failed_test()})
    assert text.startswith("tests/t.py::a fails:\n\n    AssertionError: assert 1 == 2\n\nThe tests are right.")
    several = problem_statement({f"t{number}": failed_test(message="x\n" * 500) for number in range(7)})
    assert "So do 6 other tests." in several
    assert "    ...\n" in several
    assert len(several) < 200
    assert "So does one other test." in problem_statement({"t0": failed_test(), "t1": failed_test()})


def code(name: str) -> str:
    return "\n".join(f"def function_{number}_of_{name}(): return {number}" for number in range(30))


def test_near_duplicates_are_held_out_together() -> None:
    sources = {
        "one": code("one"),
        "fork": code("one") + "\nx = 'something of its own, long enough'",
        "two": code("two"),
    }
    assert families(sources) == [["fork", "one"], ["two"]]
    held = [heldout_packages(sources, 0.4, seed) for seed in range(20)]
    assert {frozenset(names) for names in held} == {frozenset({"fork", "one"}), frozenset({"two"})}


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.text(max_size=80), min_size=1), st.integers(0, 5))
def test_every_package_is_in_one_family(sources: dict[str, str], seed: int) -> None:
    assert sorted(name for group in families(sources) for name in group) == sorted(sources)
    assert heldout_packages(sources, 0.3, seed) < set(sources)
