"""A change of `whatif` as code: what the file would say."""

from __future__ import annotations

import ast

import pytest

from gumshoe.tools.code.small_changes import changes_at
from gumshoe.tools.code.statements import statements_in, with_change

CODE = """\
def price(items, limit):
    total = 0
    for item in items[1:]:
        if item > limit:
            continue
        elif item == limit:
            total -= item
        else:
            total += (
                item
            )
    while total < 0:
        total = abs(total)
    return total
""".splitlines()


def changed(line: int, do: str, first: int = 1, last: int = len(CODE)) -> list[str] | None:
    return with_change("shop.py", {n: CODE[n - 1] for n in range(first, last + 1)}, line, do)


@pytest.mark.parametrize(
    ("line", "do", "new"),
    [
        (2, "replace total = 1", ["    total = 1"]),
        (2, "skip", ["    pass"]),
        (3, "iterate items", ["    for item in items:"]),
        (4, "condition item >= limit", ["        if item >= limit:"]),
        (4, "true", ["        if True:"]),
        (5, "replace break", ["            break"]),
        (6, "False", ["        elif False:"]),
        (7, "continue", ["            continue"]),
        (12, "condition not total < 0", ["    while not total < 0:"]),
        (14, "return total + 1", ["    return total + 1"]),
        (14, "replace print(total)\nreturn total", ["    print(total)", "    return total"]),
    ],
)
def test_the_line_says_what_was_tried(line: int, do: str, new: list[str]) -> None:
    assert changed(line, do) == [*CODE[: line - 1], *new, *CODE[line:]]


def test_a_statement_of_several_lines_gives_way_as_a_whole() -> None:
    assert changed(9, "replace total += item") == [*CODE[:8], "            total += item", *CODE[11:]]


@pytest.mark.parametrize(
    ("line", "do"),
    [(3, "skip"), (2, "true"), (2, "iterate items"), (4, "replace pass"), (14, "total = 3"), (8, "skip"), (99, "skip")],
)
def test_what_is_no_other_statement_is_left_out(line: int, do: str) -> None:
    assert changed(line, do) is None


def test_a_part_that_begins_in_the_middle_of_a_block_can_be_changed() -> None:
    assert changed(7, "replace total += item", first=5, last=8) == [*CODE[4:6], "            total += item", CODE[7]]
    lines = {1: "        )", 2: "    if ready:", 3: "        go()"}
    assert with_change("x.py", lines, 2, "false") == ["        )", "    if False:", "        go()"]


def test_lines_with_several_statements_or_a_block_are_left_out() -> None:
    assert with_change("x.py", {1: "a = 1; b = 2"}, 1, "skip") is None
    match = {1: "match a:", 2: "    case 1:", 3: "        b = 2"}
    assert with_change("x.py", match, 1, "skip") is None


def test_what_vary_tries_becomes_code_that_parses() -> None:
    lines = dict(enumerate(CODE, start=1))
    tried = [change for each in statements_in("shop.py", lines, 2, len(CODE)) for change in changes_at(each)]
    made = [with_change("shop.py", lines, change.line, change.do) for change in tried]
    left_out = {change.do for change, code in zip(tried, made, strict=True) if code is None}
    assert len(tried) > 40
    assert left_out <= {"break", "continue"}, "before a statement with a block"
    for code in filter(None, made):
        assert ast.dump(ast.parse("\n".join(code))) != ast.dump(ast.parse("\n".join(CODE)))
