"""Each metric by hand, and what must hold for every pack."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.packs import lines_overlap
from gumshoe.eval.score.buggy_code import BuggyCode
from gumshoe.eval.score.metrics import conduct_of, first_right_rank, own_scores
from gumshoe.records import Check, ContextPack, Finding, Location, Oracle, Trajectory, WorkspaceSpec
from gumshoe.tools.code.functions import spans
from support.eval.made import make_oracle, make_pack, make_step, make_task, make_trajectory

CODE = BuggyCode([make_task()])
LOCATIONS = st.lists(
    st.builds(
        lambda path, start, length: Location(path=path, start=start, end=start + length),
        st.sampled_from(["cart.py", "./cart.py", "other.py"]),
        st.integers(1, 30),
        st.integers(0, 10),
    ),
    max_size=6,
)


def scores(trajectory: Trajectory, oracle: Oracle | None = None) -> dict[str, float | None]:
    return own_scores(trajectory, oracle or make_oracle(), CODE)


# --- localization -------------------------------------------------------------------------------------------------


def test_localization_by_hand() -> None:
    """Gold: lines 8 and 11 of cart.py. Named: 7 to 9 there (1 of 2 right), and 2 lines of another file."""
    found = scores(make_trajectory(pack=make_pack(("other.py", 1, 2), ("./cart.py", 7, 9))))
    assert found["line_precision"] == pytest.approx(1 / 5)
    assert found["line_recall"] == pytest.approx(1 / 2)
    assert found["line_f1"] == pytest.approx(2 / 7)
    assert found["file_recall"] == 1.0
    assert found["reciprocal_rank"] == 1 / 2
    assert found["function_recall"] == 1 / 2


def test_an_episode_without_a_report_found_nothing_and_claimed_nothing() -> None:
    found = scores(make_trajectory([make_step()]))
    assert [
        found[name] for name in ("line_recall", "file_recall", "function_recall", "line_f1", "reciprocal_rank")
    ] == [0.0] * 5
    assert [found[name] for name in ("line_precision", "grounding")] == [None] * 2
    assert found["reported"] == 0.0


def test_a_patch_that_only_adds_files_leaves_localization_unscored() -> None:
    added = make_oracle(patch="--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n")
    found = scores(make_trajectory([make_step(0, confidence=0.5)], make_pack(("cart.py", 1, 1))), added)
    places = ("file_recall", "function_recall", "line_precision", "line_recall", "line_f1", "reciprocal_rank")
    assert [found[name] for name in (*places, "file_acc@1")] == [None] * 7


def test_a_billion_lines_cost_no_more_than_two() -> None:
    found = scores(make_trajectory(pack=make_pack(("cart.py", 1, 10**9), ("cart.py", 2, 10**9 + 1))))
    assert found["line_recall"] == 1.0
    assert found["line_precision"] == pytest.approx(2 / (10**9 + 1))
    assert found["function_recall"] == 1.0


@given(locations=LOCATIONS)
def test_localization_stays_within_bounds_and_counts_lines_as_sets(locations: list[Location]) -> None:
    gold = {"cart.py": {3, 8, 11}, "other.py": {1}}
    found = lines_overlap(locations, gold)
    named = {(place.path.removeprefix("./"), line) for place in locations for line in place.lines}
    wanted = {(path, line) for path, lines in gold.items() for line in lines}
    assert (found.named, found.gold, found.shared) == (len(named), len(wanted), len(named & wanted))
    for value in (found.precision, found.recall, found.f1):
        assert value is None or 0 <= value <= 1
    shuffled = random.Random(0).sample(locations, len(locations))
    assert lines_overlap(shuffled, gold) == found
    rank = first_right_rank(locations, gold)
    assert (rank is None) == (found.shared == 0)
    assert rank is None or 1 <= rank <= len(locations)


@given(locations=LOCATIONS)
def test_naming_more_never_lowers_recall(locations: list[Location]) -> None:
    fewer, more = (
        scores(make_trajectory(pack=ContextPack(locations=tuple(some)))) for some in (locations[:-1], locations)
    )
    for name in ("file_recall", "function_recall", "line_recall"):
        before, after = fewer[name], more[name]
        assert before is not None
        assert after is not None
        assert 0 <= before <= after <= 1


@pytest.mark.parametrize("source", ["def (", "\0", "(" * 5000])
def test_what_is_no_python_has_no_functions(source: str) -> None:
    assert spans(source) is None


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


# --- the rest -----------------------------------------------------------------------------------------------------


def test_valid_calls_by_hand() -> None:
    steps = [
        make_step(0),
        make_step(1, failure="no_such_file"),
        make_step(2, failure="bad_arguments"),
        make_step(3, failure="unknown_tool"),
        make_step(4, parse_error="no JSON"),
        make_step(5, calls=0),
        make_step(6, calls=2),
        make_step(7, failure="unreadable_call"),
    ]
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
    trajectory = make_trajectory(steps, make_pack(("cart.py", 8, 8)), tokens=50)
    found = conduct_of(trajectory)
    assert [found[name] for name in ("steps", "tokens", "seconds")] == [4, 50, 4.0]
    assert (found["reported"], found["confidence"]) == (1.0, None)
    empty = conduct_of(make_trajectory([make_step(0, confidence=0.5)]))
    assert (empty["tokens"], empty["confidence"]) == (None, None)
    sure = make_trajectory([make_step(0, confidence=0.8)], make_pack(("cart.py", 8, 8)))
    assert conduct_of(sure)["confidence"] == 0.8
