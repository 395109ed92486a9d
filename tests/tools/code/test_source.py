"""Reading and changing the lines of a file without touching anything else."""

from __future__ import annotations

import encodings.aliases

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.errors import ToolFailure
from gumshoe.text import clean, cut, cut_line, plain_text, plural
from gumshoe.tools.code.functions import Span, spans
from gumshoe.tools.code.source import SourceFile, read_source, split_lines

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


def test_coding_comments_that_python_does_not_know_are_utf8() -> None:
    assert read_source("# coding: klingon\n").encoding == "utf-8"
    assert read_source("x\ny\n# coding: latin-1\n").encoding == "utf-8"
    assert read_source("#!/bin/sh\n# vim: set fileencoding=latin-1 :\n").encoding == "iso8859-1"


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
    assert plural(1, "line") + plural(2, "line") == "1 line2 lines"


def test_functions_are_found_in_syntax_that_is_newer_than_this_python() -> None:
    newer = "type P = int\n\nclass Box[T]:\n    @staticmethod\n    def get(x: T) -> str:\n        return f'{f'{x}'}'\n"
    found = (Span("Box", 3, 6, is_class=True), Span("Box.get", 4, 6))
    assert spans(newer) == found
    assert spans(newer.replace("type P", "P").replace("[T]", "").replace("f'{x}'", "x")) == found
    assert spans("type P = int\nprint(P)\n") is None
    assert spans("(" * 100_000 + "\ndef f(): pass\n") == (Span("f", 2, 2),)
