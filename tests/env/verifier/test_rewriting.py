"""How tests are rewritten for a verdict, in this process: the texts of both variants, and where they must fail."""

from __future__ import annotations

import base64
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.inside.verdict.definitions import Definitions
from gumshoe.env.inside.verdict.source import OTHER, WRONG, Piece, Site, SiteChange, write_variant
from gumshoe.env.inside.verdict.variants import Rewriting
from support.folder_tasks import write_files

ASSERT = "def test_total():\n    assert total([2, 3]) == 5\n"
EITHER = r"(\(\(5\), \d{5}\)\[(0|1)\]|\(\d{5}, \(5\)\)\[(0|1)\])"
"""5, or another number."""
ORDER = r'"\w{4}" < "\w{4}"'
HOLDS = r'assert len\("\w+"\) == \d'
COMPARED = rf"assert \(not total\(\[2, 3\]\) == {EITHER}\) == \({ORDER}\)"


class Anything:
    """Equals everything."""

    def __eq__(self, other: object) -> bool:
        return True


def rewrite(files: dict[str, str], test: str, seed: str = "0", **request: Any) -> dict[str, Any]:
    """The answer where one test is varied and nothing is proven, unless the request says otherwise."""
    write_files(Path(), files)
    default = {"proven": None, "files": [*files], "script": None, "draw": True, "all": False}
    return Rewriting({"tests": [test], "vary": [test], "seed": seed, **default, **request}).answer()


def texts(answer: dict[str, Any], path: str) -> list[str]:
    """A file in both variants."""
    return [base64.b64decode(contents[path]).decode() for contents in answer["contents"]]


def failing_lines(text: str, total: Callable[[list[int]], Any], run: Callable[[dict[str, Any]], object]) -> list[int]:
    """The lines of the text at which a test fails with this `total`; none if it passes."""
    names: dict[str, Any] = {"total": total}
    exec(compile(text, "rewritten.py", "exec"), names)
    try:
        run(names)
    except AssertionError as error:
        frames = traceback.extract_tb(error.__traceback__)
        return [frame.lineno or 0 for frame in frames if frame.filename == "rewritten.py"]
    return []


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def by_function(names: dict[str, Any]) -> object:
    return names["test_total"]()


def by_case(names: dict[str, Any]) -> object:
    return names["Totals"]("test_total").debug()


def by_class(names: dict[str, Any]) -> object:
    return names["Checks"]().test_total()


FORMS: dict[str, tuple[dict[str, str], str, str, Callable[[dict[str, Any]], object], list[str]]] = {
    "assert": (
        {"test_a.py": ASSERT},
        "test_a.py::test_total",
        "test_a.py::test_total",
        by_function,
        ["def test_total\\(\\):", f"    {COMPARED}", f"    {HOLDS}"],
    ),
    "unittest": (
        {
            "test_a.py": "import unittest\n\n\nclass Totals(unittest.TestCase):\n    def test_total(self):\n"
            "        self.assertEqual(total([2, 3]), 5)\n"
        },
        "test_a.Totals.test_total",
        "test_a.py::Totals.test_total",
        by_case,
        [
            "import unittest", "", "", r"class Totals\(unittest.TestCase\):", r"    def test_total\(self\):",
            rf"        _\w{{5}}\({ORDER}, self.assertEqual, total\(\[2, 3\]\), {EITHER}\)",
            rf'        {HOLDS}; self.assertEqual\(len\("\w+"\), \d\)',
            "", r"def _\w{5}\(wrong, check, \*values, \*\*options\):", *[".*"] * 9,
        ],
    ),
    "one line": (
        {"test_a.py": ASSERT.replace("\n    ", " ")},
        "test_a.py::test_total",
        "test_a.py::test_total",
        by_function,
        [rf"def test_total\(\): {COMPARED}; {HOLDS}"],
    ),
    "base class": (
        {
            "test_base.py": "class Checks:\n    def test_total(self):\n        assert total([2, 3]) == 5\n",
            "test_a.py": "from test_base import Checks\n\n\nclass TestTotals(Checks):\n    pass\n",
        },
        "test_a.py::TestTotals::test_total",
        "test_base.py::Checks.test_total",
        by_class,
        ["class Checks:", r"    def test_total\(self\):", f"        {COMPARED}", f"        {HOLDS}"],
    ),
}  # fmt: skip
"""Files, the id of a test in them, its definition, how it is run, and patterns of the lines that it is rewritten to."""


@pytest.mark.parametrize("seed", "01234567")
@pytest.mark.parametrize("form", FORMS)
def test_each_variant_is_true_or_false(form: str, seed: str) -> None:
    files, test, name, run, lines = FORMS[form]
    answer = rewrite(files, test, seed, proven={name: [0]})
    path = name.partition("::")[0]
    fact = answer["definitions"][name]
    assert (answer["tests"], answer["strict"], fact["path"]) == ({test: [name]}, [test], path)
    assert [[*contents] for contents in answer["contents"]] == [[path], [path]]
    both = texts(answer, path)
    for text in both:
        assert len(text) == len(both[0])
        for line, pattern in zip(text.rstrip("\n").split("\n"), lines, strict=True):
            assert re.fullmatch(pattern, line)

    first = next(number for number, pattern in enumerate(lines, 1) if "total\\(\\[2" in pattern)
    last = next(number for number, pattern in enumerate(lines, 1) if HOLDS in pattern)
    assert fact["comparisons"] == [0]
    assert sorted([*fact["fails_at"], *fact["asks_at"]]) == sorted([[first, first], [last, last]])

    false, true = both[fact["false_in"]], both[1 - fact["false_in"]]
    assert failing_lines(true, sum, run) == []
    assert failing_lines(false, sum, run)[0] == fact["fails_at"][0][0]
    assert failing_lines(true, lambda numbers: 7, run)[0] == first
    assert failing_lines(false, lambda numbers: Anything(), run)[0] == fact["asks_at"][0][0]


def test_what_is_not_proven_fails_at_its_end_only() -> None:
    answer = rewrite({"test_a.py": ASSERT}, "test_a.py::test_total", draw=False)
    assert answer["definitions"]["test_a.py::test_total"] == {
        "path": "test_a.py",
        "false_in": 1,
        "comparisons": [],
        "fails_at": [[3, 3]],
        "asks_at": [],
    }
    for text, fails in zip(texts(answer, "test_a.py"), ([], [3]), strict=True):
        assert re.fullmatch(f"{re.escape(ASSERT)}    {HOLDS}\n", text)
        assert failing_lines(text, sum, by_function) == fails


def test_a_script_fails_at_its_end_or_says_so_when_it_leaves() -> None:
    script = "import sys\n\nassert total([2, 3]) == 5\nsys.exit(0)\n"
    answer = rewrite({"check.py": script}, "check.py", script="check.py", draw=False)
    assert answer["definitions"]["check.py::"]["fails_at"] == [[6, 6]]
    for text, exit_code in zip(texts(answer, "check.py"), (0, 1), strict=True):
        written = script.replace("exit(0)", f"exit(((0), 1)[{exit_code}])")
        assert re.fullmatch(f"{re.escape(written)}\n{HOLDS}\n", text)


def test_all_tests_that_a_function_makes_are_false_together() -> None:
    text = "def make():\n    def made():\n        assert total([2, 3]) == 5\n    return made\n\n\ntest_one = make()\n"
    answer = rewrite({"test_a.py": text}, "test_a.py::test_one", draw=False, all=True)
    assert answer["definitions"]["test_a.py::<made>"]["fails_at"] == [[4, 4]]
    for written, fails in zip(texts(answer, "test_a.py"), ([], [4]), strict=True):
        assert failing_lines(written, sum, lambda names: names["test_one"]()) == fails


def test_a_test_that_may_expect_failure_is_not_strict() -> None:
    text = f"import pytest\n\n\n@pytest.mark.xfail\n{ASSERT}"
    answer = rewrite({"test_a.py": text}, "test_a.py::test_total", draw=False)
    assert answer == {"contents": [{}, {}], "tests": {"test_a.py::test_total": []}, "definitions": {}, "strict": []}


def test_a_variant_is_written_piece_by_piece() -> None:
    site = Site([Piece(20, 21, "3", "7")])
    end = Site([Piece(21, 21, "\nassert True\n", "\nassert  Yes\n", "\nassert Nope\n")])
    changes = [SiteChange(site, WRONG, 1), SiteChange(end, OTHER, 0)]
    assert write_variant("assert add(1, 2) == 3", changes[:1], 0) == ("assert add(1, 2) == 3", {site: [1, 1]})
    both = {site: [1, 1], end: [2, 2]}
    assert write_variant("assert add(1, 2) == 3", changes, 0) == ("assert add(1, 2) == 3\nassert  Yes\n", both)
    assert write_variant("assert add(1, 2) == 3", changes, 1) == ("assert add(1, 2) == 7\nassert True\n", both)


NAMED = {
    "a/test_b.py": """\
class TestC:
    def test_d(self):
        '''It adds up

        without an error.
        '''
        assert 1 == 1

def test_e():
    assert 2 == 2

def make():
    def made():
        assert 3 == 3
    return made
""",
    "check.py": "class TestF:\n    def test_g(self):\n        assert 4 == 4\n",
}


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("check.py", ["check.py::"]),
        ("a/test_b.py", ["a/test_b.py::TestC.test_d", "a/test_b.py::test_e"]),
        ("It adds up", ["a/test_b.py::TestC.test_d"]),
        ("a/test_b.py::TestC::test_d[1]", ["a/test_b.py::TestC.test_d"]),
        ("test_b.py::TestC::test_d", ["a/test_b.py::TestC.test_d"]),
        ("a.test_b.TestC.test_d", ["a/test_b.py::TestC.test_d"]),
        ("test_d (a.test_b.TestC)", ["a/test_b.py::TestC.test_d"]),
        ("test_d (a.test_b.TestC.test_d)", ["a/test_b.py::TestC.test_d"]),
        ("__main__.TestF.test_g", ["check.py::TestF.test_g"]),
        ("test_e", ["a/test_b.py::test_e"]),
        ("a/test_b.py::made[0]", ["a/test_b.py::<made>"]),
        ("gone.py::test_d", []),
    ],
)
def test_a_definition_is_found_by_each_form_of_id(test: str, names: list[str]) -> None:
    write_files(Path(), NAMED)
    found = Definitions(NAMED, "check.py", [test]).of(test)
    assert [each.name for each in found] == names
    assert [each.makes_tests for each in found] == [name.endswith("<made>") for name in names]
