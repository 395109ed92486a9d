"""Edits in answers of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.eval.arms.solvers.code_answers import CodeEdit, Shown, edits_in

CODE = """\
def price(count):
    cost = count * 3
    if count >= 10:
        cost = cost - 5
    return cost
"""
SHOP = Shown("shop.py", 11, tuple(CODE.splitlines()))
OTHER = Shown("src/other.py", 1, ("import shop", "", "NAMES = ('a', 'b')"))


def fenced(*lines: str, language: str = "python") -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def applied(edits: tuple[CodeEdit, ...], shown: Shown) -> list[str]:
    """The shown lines after the edits."""
    lines = list(shown.lines)
    for edit in edits:
        lines[edit.start - shown.start : edit.end - shown.start + 1] = edit.code.splitlines()
    return lines


@pytest.mark.parametrize(
    "block",
    [
        ("# shop.py:11-15", *CODE.replace(">= 10", "> 10").splitlines()),
        tuple(CODE.replace(">= 10", "> 10").splitlines()),
        ("# shop.py:1-3", "    cost = count * 3", "    if count > 10:", "        cost = cost - 5"),
        (" 12     cost = count * 3", " 13     if count > 10:"),
        ("cost = count * 3", "if count > 10:", "    cost = cost - 5"),
        ("        if count > 10:",),
        ("# ./shop.py:13", "    if count > 10:"),
    ],
    ids=["whole", "without a place", "wrong numbers", "copied numbers", "dedented", "one line", "one line, placed"],
)
def test_a_block_is_laid_over_the_code_that_it_is_like(block: tuple[str, ...]) -> None:
    found = edits_in(f"The bound is wrong.\n\n{fenced(*block)}\n", [SHOP, OTHER])
    assert applied(found, SHOP) == CODE.replace(">= 10", "> 10").splitlines()
    assert {edit.path for edit in found} == {"shop.py"}


def test_a_line_may_be_added_and_one_left_out() -> None:
    added = edits_in(fenced("    cost = count * 3", "    cost += 1", "    if count >= 10:"), [SHOP])
    assert applied(added, SHOP) == CODE.replace("* 3\n", "* 3\n    cost += 1\n").splitlines()
    left = edits_in(fenced("    if count >= 10:", "    return cost"), [SHOP])
    assert applied(left, SHOP) == CODE.replace("        cost = cost - 5\n", "").splitlines()


def test_places_nobody_was_shown_are_taken_as_they_are_said() -> None:
    text = fenced("# lib/a.py:7-8", "x = 1") + "\n" + fenced("# lib/a.py:20", "y = 2", language="")
    assert edits_in(text, []) == (CodeEdit("lib/a.py", 20, 20, "y = 2"), CodeEdit("lib/a.py", 7, 8, "x = 1"))


@pytest.mark.parametrize(
    "text",
    [
        "The bound is wrong.",
        fenced(),
        fenced("# shop.py:11-15"),
        fenced(*CODE.splitlines()),
        fenced("print('hello')"),
        fenced("first", "second"),
    ],
    ids=["no block", "empty", "only a place", "unchanged", "nothing like it", "several lines that match nothing"],
)
def test_what_changes_nothing_is_no_edit(text: str) -> None:
    assert edits_in(text, [SHOP]) == ()


def test_blocks_that_overlap_count_once() -> None:
    block = fenced(*CODE.replace(">= 10", "> 10").splitlines())
    assert len(edits_in(f"{block}\n{block}", [SHOP])) == 1


@given(st.text(alphabet="`#\n ab:.-12py\\\"'", max_size=200))
def test_any_text_is_read(text: str) -> None:
    for edit in edits_in(text, [SHOP, OTHER]):
        assert 1 <= edit.start <= edit.end


@given(st.data())
def test_a_run_of_lines_with_one_changed_comes_back_in_its_place(data: st.DataObject) -> None:
    lines = [f"{' ' * (number % 3 * 4)}value_{number} = {number}" for number in range(12)]
    start = data.draw(st.integers(0, 9))
    end = data.draw(st.integers(start + 2, 12))
    changed = data.draw(st.integers(start, end - 1))
    after = [*lines]
    after[changed] = after[changed].replace(" = ", " = 100 + ")
    shown = Shown("values.py", 31, tuple(lines))
    assert applied(edits_in(fenced(*after[start:end]), [shown]), shown) == after
