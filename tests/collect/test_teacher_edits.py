"""The edits that a teacher makes of a gold patch."""

from __future__ import annotations

import pytest

from gumshoe.collect.policies.gold import LineChange, read_gold
from gumshoe.env.diff import make_patch
from gumshoe.errors import TaskError
from gumshoe.records import Oracle


def patch(before: str | None, after: str | None) -> Oracle:
    texts = tuple(text.encode() if text is not None else None for text in (before, after))
    return Oracle(task_id="t", gold_patch=make_patch({"a.py": (texts[0], texts[1])}))


LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.mark.parametrize(
    "after",
    [
        LINES.replace("line 3\n", "new\n"),
        LINES.replace("line 3\n", ""),
        LINES.replace("line 3\n", "line 3\nnew\nnewer\n"),
        LINES.replace("line 3\n", "a\nb\n").replace("line 5\n", "").replace("line 18\n", "z\nline 18\n"),
        "top\n" + LINES,
        LINES + "bottom\n",
        LINES.replace("line 1\n", ""),
    ],
)
def test_changes_make_exactly_the_gold_patch(after: str) -> None:
    lines = LINES.splitlines(keepends=True)
    for change in read_gold(patch(LINES, after)).changes:
        assert change.start is not None
        assert change.end is not None
        lines[change.start - 1 : change.end] = change.code.splitlines(keepends=True)
    assert "".join(lines) == after


def test_a_new_file_is_one_change() -> None:
    assert read_gold(patch(None, "x = 1\n")).changes == (LineChange("a.py", None, None, "x = 1\n"),)


def test_patches_that_edits_cannot_make_are_refused() -> None:
    with pytest.raises(TaskError, match="removes"):
        read_gold(patch("x\n", None))
    with pytest.raises(TaskError, match="empty gold patch"):
        read_gold(Oracle(task_id="t", gold_patch=""))
