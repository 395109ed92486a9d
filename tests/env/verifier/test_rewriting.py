"""How tests are rewritten for a verdict, in this process: the texts of both variants, and where they must fail."""

import base64
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.inside.verdict.definitions import Definitions
from gumshoe.env.inside.verdict.variants import Rewriting
from support.folder_tasks import write_files

ASSERT = "def test_total():\n    assert total([2, 3]) == 5\n"


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
    try:
        exec(compile(text, "rewritten.py", "exec"), names)
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


IN_CASE = (
    "import unittest\n\n\nclass Totals(unittest.TestCase):\n    def test_total(self):\n"
    "        self.assertEqual(total([2, 3]), 5)\n"
)
FORMS: dict[str, tuple[str, str, str, Callable[[dict[str, Any]], object]]] = {
    "assert": (ASSERT, "test_a.py::test_total", "test_a.py::test_total", by_function),
    "one line": (ASSERT.replace("\n    ", " "), "test_a.py::test_total", "test_a.py::test_total", by_function),
    "unittest": (IN_CASE, "test_a.Totals.test_total", "test_a.py::Totals.test_total", by_case),
}
"""A test file, the id of a test in it, its definition, and how it is run."""


@pytest.mark.parametrize("seed", "01234567")
@pytest.mark.parametrize("form", FORMS)
def test_each_variant_is_true_or_false(form: str, seed: str) -> None:
    path, (text, test, name, run) = "test_a.py", FORMS[form]
    answer = rewrite({path: text}, test, seed, proven={name: [0]})
    fact = answer["definitions"][name]
    assert (answer["tests"], answer["strict"], fact["path"]) == ({test: [name]}, [test], path)
    assert [[*contents] for contents in answer["contents"]] == [[path], [path]]
    both = texts(answer, path)
    assert len(both[0]) == len(both[1])

    lines = dict(enumerate(both[0].split("\n"), 1))
    first = next(number for number, line in lines.items() if "total([2, 3])" in line)
    last = next(number for number, line in lines.items() if "assert len(" in line)
    assert fact["comparisons"] == [0]
    assert sorted([*fact["fails_at"], *fact["asks_at"]]) == sorted([[first, first], [last, last]])

    false, true = both[fact["false_in"]], both[1 - fact["false_in"]]
    assert failing_lines(true, sum, run) == []
    assert failing_lines(false, sum, run)[0] == fact["fails_at"][0][0]
    assert failing_lines(true, lambda numbers: 7, run)[0] == first
    assert failing_lines(false, lambda numbers: Anything(), run)[0] == fact["asks_at"][0][0]


def test_what_is_not_proven_fails_at_its_end_only() -> None:
    answer = rewrite({"test_a.py": ASSERT}, "test_a.py::test_total", draw=False)
    fact = {"path": "test_a.py", "false_in": 1, "comparisons": [], "fails_at": [[3, 3]], "asks_at": []}
    assert answer["definitions"] == {"test_a.py::test_total": fact}
    for text, fails in zip(texts(answer, "test_a.py"), ([], [3]), strict=True):
        assert text.startswith(ASSERT)
        assert failing_lines(text, sum, by_function) == fails


def test_a_script_fails_at_its_end_or_says_so_when_it_leaves() -> None:
    script = "import sys\n\nassert total([2, 3]) == 5\nsys.exit(0)\n"
    answer = rewrite({"check.py": script}, "check.py", script="check.py", draw=False)
    assert answer["definitions"]["check.py::"]["fails_at"] == [[6, 6]]
    for text, exit_code in zip(texts(answer, "check.py"), (0, 1), strict=True):
        with pytest.raises(SystemExit) as left:
            exec(text, {"total": sum})
        assert left.value.code == exit_code
        assert failing_lines(text.replace("sys.exit", "str"), sum, str) == [6] * exit_code


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


NAMED = {
    "a/test_b.py": (
        "class TestC:\n    def test_d(self):\n        '''It adds up\n\n        without an error.\n        '''\n"
        "        assert 1 == 1\n\ndef test_e():\n    assert 2 == 2\n\n"
        "def make():\n    def made():\n        assert 3 == 3\n    return made\n"
    ),
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
