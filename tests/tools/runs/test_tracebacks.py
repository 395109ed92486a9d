"""Frames read from what programs print."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.tools.runs.tracebacks import describe_frame, exception_text, printed_frames

PRINTED = """\
Traceback (most recent call last):
  File "/workspace/check.py", line 9, in <module>
    main()
    ~~~~^^
  File "pkg/a.py", line 3, in load
  File "/usr/lib/python3.12/json/__init__.py", line 5, in loads
    raise
  File "/workspace/.venv/lib/site-packages/x.py", line 5, in x
    raise
  File "<string>", line 1, in <module>
ValueError: no such
  key
"""


def test_frames_of_the_project_in_order() -> None:
    frames = printed_frames(PRINTED, "/workspace")
    assert [(frame.path, frame.line, frame.function, frame.code) for frame in frames] == [
        ("check.py", 9, "<module>", "main()"),
        ("pkg/a.py", 3, "load", ""),
    ]
    assert [describe_frame(frame) for frame in frames] == [
        "check.py:9 in <module>: main()",
        "pkg/a.py:3 in load",
    ]


def test_the_exception_is_what_stands_below_the_last_frame() -> None:
    assert exception_text(PRINTED) == "ValueError: no such\n  key"
    assert exception_text(" just words \n") == "just words"
    assert exception_text('  File "a.py", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax') == (
        "SyntaxError: invalid syntax"
    )


@given(st.text(), st.text())
def test_any_text_is_read_without_an_error(printed: str, path: str) -> None:
    for text in (printed, f'File "{path}", line 1, in f\n    {printed}'):
        assert isinstance(exception_text(text), str)
        assert all(not frame.path.startswith(("/", "..")) for frame in printed_frames(text, "/workspace"))


def test_the_common_layouts_of_tests_are_known() -> None:
    tests = ["testing/python/approx.py", "shop/tests/carts.py", "test_shop.py", "conftest.py"]
    assert [path for path in [*tests, "shop/testing/carts.py", "shop/contest.py"] if holds_tests(path)] == tests
