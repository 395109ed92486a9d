"""Candidates: what they tell of a change, and what they leave as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.synth.candidates import candidates


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


def test_a_file_that_is_not_python_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bad.py:1 is not Python"):
        candidates("def (:\n", 0, path="bad.py")


def test_line_ends_and_indentation_are_kept(tmp_path: Path) -> None:
    source = "def f(a, b):\r\n\tif a < b:\r\n\t\treturn a\r\n\treturn b\r\n"
    for candidate in candidates(source, 0):
        assert "\n" not in candidate.text.replace("\r\n", "")
        assert "    " not in candidate.text
