"""Source: lines that are read and changed without touching anything else, functions, and the changes of `whatif`."""

import ast
import encodings.aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.errors import ToolFailure
from gumshoe.text import clean, cut, cut_line, plain_text
from gumshoe.tools.code.functions import Span, spans
from gumshoe.tools.code.small_changes import changes_at
from gumshoe.tools.code.source import SourceFile, read_source, split_lines
from gumshoe.tools.code.statements import statements_in, with_change

TEXT = st.text(st.sampled_from("ab \t\x0c\u2028é\n\r"), max_size=40)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(TEXT)
def test_reading_loses_nothing(text: str) -> None:
    assert "".join(split_lines(text)) == text
    assert read_source(text).to_text() == text
    assert all("\n" not in line.rstrip("\r\n") for line in split_lines(text))


@given(st.lists(st.text("ab ", max_size=5), min_size=1), ENDS, st.booleans(), st.data())
def test_replacing_lines_changes_only_them(lines: list[str], end: str, ended: bool, data: st.DataObject) -> None:
    text = end.join(lines) + (end if ended else "")
    source = read_source(text)
    total = len(source.lines)
    start = data.draw(st.integers(1, total + 1))
    last = data.draw(st.integers(start - 1, total))
    new = data.draw(st.lists(st.text("xy", min_size=1, max_size=3), max_size=3))
    changed = source.replace(start, last, "\n".join(new))
    assert changed.shown == source.shown[: start - 1] + new + source.shown[last:]
    if source.lines and last < total:
        assert changed.lines[-1] == source.lines[-1]
    if len(set(split_lines(text))) and end in text and ended:
        assert all(line.endswith(end) for line in changed.lines)


CODECS = st.sampled_from(sorted({*encodings.aliases.aliases.values(), "klingon"}))


@given(CODECS, st.binary(max_size=30).filter(lambda data: b"\0" not in data))
def test_a_coding_comment_may_name_any_codec(name: str, data: bytes) -> None:
    text = (f"# coding: {name}\n".encode() + data).decode("utf-8", "surrogateescape")
    source = read_source(text)
    assert source.lines[0] == f"# coding: {name}\n"
    assert read_source(source.to_text()) == source
    assert source.replace(1, 1, "").lines == source.lines[1:]
    if source.encoding == "iso8859-1":
        assert source.to_text() == text


def test_a_new_coding_comment_decides_how_the_text_is_written() -> None:
    source = read_source("# coding: latin-1\nx = '\udce9'\n")
    assert source.shown[1] == "x = 'é'"
    assert source.replace(1, 1, "# coding: utf-8").to_text() == "# coding: utf-8\nx = 'é'\n"
    made = SourceFile(()).replace(1, 0, "# coding: latin-1\nx = 'é'\n")
    assert read_source("#!/bin/sh\n# vim: set fileencoding=latin-1 :\n").encoding == "iso8859-1"
    assert made.to_text().encode("utf-8", "surrogateescape") == b"# coding: latin-1\nx = '\xe9'\n"


def test_binary_files_are_refused() -> None:
    with pytest.raises(ToolFailure, match="binary"):
        read_source("a\0b")


@given(st.text(max_size=300), st.integers(10, 100))
def test_cut_keeps_head_and_tail(text: str, limit: int) -> None:
    shown, truncated = cut(text, limit)
    assert truncated == (len(text) > limit)
    assert shown.startswith(text[: limit // 2])
    assert shown.endswith(text[-(limit // 2) :])
    assert len(shown) <= limit + 40
    assert len(cut_line(text, limit)) <= limit


@given(st.text(st.characters(codec=None), max_size=50))
def test_cleaned_text_can_be_written(text: str) -> None:
    assert clean(text).encode().decode() == clean(text)


def test_terminal_text_is_made_plain() -> None:
    assert plain_text("\x1b]0;title\x07\x1b[1;31mred\x1b[0m\r\n10%\r20%\rdone \nbell\x07") == "red\ndone\nbell"


def test_functions_are_found_in_syntax_that_is_newer_than_this_python() -> None:
    newer = "type P = int\n\nclass Box[T]:\n    @staticmethod\n    def get(x: T) -> str:\n        return f'{f'{x}'}'\n"
    found = (Span("Box", 3, 6, is_class=True), Span("Box.get", 4, 6))
    assert spans(newer) == found
    assert spans(newer.replace("type P", "P").replace("[T]", "").replace("f'{x}'", "x")) == found
    assert spans("type P = int\nprint(P)\n") is None
    assert spans("(" * 100_000 + "\ndef f(): pass\n") == (Span("f", 2, 2),)


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
    ("line", "do", "new", "after"),
    [
        (2, "replace total = 1", ["    total = 1"], 3),
        (2, "skip", ["    pass"], 3),
        (3, "iterate items", ["    for item in items:"], 4),
        (4, "condition item >= limit", ["        if item >= limit:"], 5),
        (4, "true", ["        if True:"], 5),
        (5, "replace break", ["            break"], 6),
        (6, "False", ["        elif False:"], 7),
        (7, "continue", ["            continue"], 8),
        (9, "replace total += item", ["            total += item"], 12),
        (12, "condition not total < 0", ["    while not total < 0:"], 13),
        (14, "return total + 1", ["    return total + 1"], 15),
        (14, "replace print(total)\nreturn total", ["    print(total)", "    return total"], 15),
    ],
)
def test_a_change_as_the_file_would_say_it(line: int, do: str, new: list[str], after: int) -> None:
    assert changed(line, do) == [*CODE[: line - 1], *new, *CODE[after - 1 :]]


def test_lines_with_several_statements_or_a_block_are_left_out() -> None:
    for lines in (["a = 1; b = 2"], ["match a:", "    case 1:", "        b = 2"]):
        assert with_change("x.py", dict(enumerate(lines, start=1)), 1, "skip") is None


def test_a_part_that_begins_in_the_middle_of_a_block_can_be_changed() -> None:
    assert changed(7, "replace total += item", first=5, last=8) == [*CODE[4:6], "            total += item", CODE[7]]
    lines = {1: "        )", 2: "    if ready:", 3: "        go()"}
    assert with_change("x.py", lines, 2, "false") == ["        )", "    if False:", "        go()"]


@pytest.mark.parametrize(
    ("line", "do"),
    [(3, "skip"), (2, "true"), (2, "iterate items"), (4, "replace pass"), (14, "total = 3"), (8, "skip"), (99, "skip")],
)
def test_what_is_no_other_statement_is_left_out(line: int, do: str) -> None:
    assert changed(line, do) is None


def test_what_vary_tries_becomes_code_that_parses() -> None:
    lines = dict(enumerate(CODE, start=1))
    tried = [change for each in statements_in("shop.py", lines, 2, len(CODE)) for change in changes_at(each)]
    made = [with_change("shop.py", lines, change.line, change.do) for change in tried]
    left_out = {change.do for change, code in zip(tried, made, strict=True) if code is None}
    assert len(tried) > 40
    assert left_out <= {"break", "continue"}, "before a statement with a block"
    for code in filter(None, made):
        assert ast.dump(ast.parse("\n".join(code))) != ast.dump(ast.parse("\n".join(CODE)))
