"""Which proven bugs are paired, and what the pair is."""

from __future__ import annotations

from gumshoe.env.synth.bug import Bug
from gumshoe.env.synth.pairs import BugPair, pairs_of
from gumshoe.env.synth.verify import CandidateVerdict, FailedTest

CLEAN = "def f():\n    return 1\ndef g():\n    return 2\n"
FAILURE = FailedTest("AssertionError", "assert 0", ())


def proven(symbol: str, old: str, *failing: str, path: str = "a.py") -> tuple[Bug, CandidateVerdict]:
    lines = (CLEAN[: CLEAN.index(old)].count("\n") + 1,)
    bug = Bug("x", {path: CLEAN.replace(old, "return 0")}, {path: lines}, ((path, symbol),))
    return bug, CandidateVerdict("killed", (), dict.fromkeys(failing, FAILURE))


def paired(*found: tuple[Bug, CandidateVerdict], splits: dict[str, str] | None = None) -> list[BugPair]:
    same = {bug.digest: "train" for bug, _ in found}
    return list(pairs_of(found, {**same, **(splits or {})}, {"a.py": CLEAN, "b.py": CLEAN}, seed=0))


def test_the_variant_has_both_changes() -> None:
    (pair,) = paired(proven("f", "return 1", "t1"), proven("g", "return 2", "t2"))
    assert pair.both.files == {"a.py": CLEAN.replace("return 1", "return 0").replace("return 2", "return 0")}
    assert pair.both.lines == {"a.py": (2, 4)}
    assert set(pair.both.places) == {("a.py", "f"), ("a.py", "g")}
    (pair,) = paired(proven("f", "return 1", "t1"), proven("f", "return 1", "t1", path="b.py"))
    assert pair.both.files.keys() == {"a.py", "b.py"}


def test_a_function_is_not_paired_with_itself_nor_with_its_class_nor_with_the_module() -> None:
    for one, other in (("f", "f"), ("A", "A.f"), ("f", ""), ("", "")):
        assert paired(proven(one, "return 1", "t"), proven(other, "return 2", "t")) == []


def test_bugs_of_two_splits_are_not_paired() -> None:
    first, second = proven("f", "return 1", "t"), proven("g", "return 2", "t")
    assert paired(first, second, splits={second[0].digest: "heldout_bugs"}) == []


def test_bugs_that_fail_a_test_in_common_are_paired_first() -> None:
    far, near = proven("f", "return 1", "t1", path="b.py"), proven("g", "return 2", "t2", "t3")
    (pair,) = paired(far, near, proven("f", "return 1", "t3"))
    assert set(pair.both.places) == {("a.py", "f"), ("a.py", "g")}


def test_a_half_whose_tests_the_task_does_not_name_is_noticed() -> None:
    (pair,) = paired(proven("f", "return 1", "t1"), proven("g", "return 2", "t2"))
    assert pair.needs_both(CandidateVerdict("killed", ("t2",), {"t1": FAILURE}))
    assert not pair.needs_both(CandidateVerdict("killed", ("t3",), {"t1": FAILURE}))
