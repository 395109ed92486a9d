"""Packages whose tasks are run by unittest, or by their doctests alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.bugs.config import BaselineConfig, HarvestConfig, SynthConfig
from gumshoe.env.bugs.make import make_bugs
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.bugs.packages.baseline import find_baseline
from gumshoe.env.bugs.packages.bugs import commands, dotted, is_method, shortest, unittest_suite
from gumshoe.env.bugs.packages.environment import DOCTEST_WAYS
from gumshoe.env.bugs.projects import Project, Suite
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.env.verifier.check import check_tasks
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from support.doctested_cart import CART
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import CHEAPEST

HALF = '''

def half(number):
    """Half of it.

    >>> half(4)
    2.0
    """
    return number / 2
'''
CASES = """\
import unittest

from shop.cart import cheapest, half, total
from helper import NUMBERS

READY = []


def setUpModule():
    READY.append(1)


class Totals(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total(NUMBERS), 6)

    def test_discount(self):
        self.assertEqual(total(NUMBERS, 1), 5)

    def test_ready(self):
        self.assertEqual(READY, [1])

    def test_each(self):
        for number in NUMBERS:
            with self.subTest(number=number):
                self.assertEqual(half(2 * number), number)


class Lowest(unittest.TestCase):
    def test_cheapest(self):
        self.assertEqual(cheapest([3, 1, 2]), 1)

    def test_nothing(self):
        self.assertIsNone(cheapest([]))


def test_of_pytest():
    assert total([]) == 0
"""


def shop(folder: Path, cases: str) -> Path:
    files = {
        "shop/__init__.py": "",
        "shop/cart.py": CART + HALF,
        "tests/helper.py": "NUMBERS = [1, 2, 3]\n",
        "tests/test_cart.py": cases,
        "README.rst": "Use it\n======\n\n>>> from shop.cart import total\n>>> total([2, 2])\n4\n",
    }
    return write_files(folder / "shop-1.0", files)


def config_with(**limits: int) -> HarvestConfig:
    return HarvestConfig(sandbox=CHEAPEST, baseline=BaselineConfig(runs=2, **limits))


def under_unittest(project: Path, config: HarvestConfig) -> Suite:
    package = PackageHarvest("shop", config, project)
    baseline = find_baseline(package, project, Suite())
    return unittest_suite(package, project, Suite(None, baseline.arguments), baseline)


def bugs_of(project: Path, suite: Suite, exclude: tuple[str, ...]) -> list[tuple[Task, Oracle]]:
    config = SynthConfig(projects=(str(project),), per_project=2, exclude=exclude, sandbox=CHEAPEST)
    made = make_bugs(config, projects=[Project("shop", project, str(project), suite)])
    return made.tasks


@pytest.mark.needs("bubblewrap")
def test_tasks_are_run_by_unittest(tmp_path: Path) -> None:
    project = shop(tmp_path, CASES)
    suite = under_unittest(project, config_with())
    assert suite.command == ("python", "-m", "unittest", "discover", "-v", "-s", "tests")
    tasks = bugs_of(project, suite, ("tests/",))
    assert len(tasks) == 2
    for task, oracle in tasks:
        assert task.entrypoint == suite.command
        named = {*oracle.fail_to_pass, *oracle.pass_to_pass}
        assert named == {
            *(f"test_cart.Totals.{name}" for name in ("test_total", "test_discount", "test_ready", "test_each")),
            *(f"test_cart.Lowest.{name}" for name in ("test_cheapest", "test_nothing")),
        }
        assert task.problem_statement.startswith("test_cart.")
    assert [result.problems for result in check_tasks(tasks, CHEAPEST)] == [()] * 2


@pytest.mark.needs("bubblewrap")
def test_a_failing_test_is_left_out_by_naming_the_others(tmp_path: Path) -> None:
    cases = CASES.replace("from helper import NUMBERS", "NUMBERS = [1, 2, 3]")
    broken = "\n    def test_broken(self):\n        self.fail()\n\n\ndef test_of_pytest"
    project = shop(tmp_path, cases.replace("\n\ndef test_of_pytest", broken))
    suite = under_unittest(project, config_with())
    assert suite.command[:4] == ("python", "-m", "unittest", "-v")
    assert set(suite.command[4:]) == {
        "tests.test_cart.Totals",
        "tests.test_cart.Lowest.test_cheapest",
        "tests.test_cart.Lowest.test_nothing",
    }
    with pytest.raises(TaskError, match=r"6 of its tests are methods of classes, 7 are needed \(baseline.min_tests\)"):
        under_unittest(project, config_with(min_tests=7))


@pytest.mark.needs("bubblewrap")
def test_doctests_alone_give_tasks(tmp_path: Path) -> None:
    project = shop(tmp_path, CASES)
    suite = Suite(None, DOCTEST_WAYS[0])
    baseline = find_baseline(PackageHarvest("shop", config_with(min_tests=4), project), project, suite)
    names = ("cart.total", "cart.cheapest", "cart.half")
    assert set(baseline.passing) == {*(f"shop/cart.py::shop.{name}" for name in names), "README.rst::README.rst"}
    tasks = bugs_of(project, Suite(None, baseline.arguments), ("tests/",))
    assert len(tasks) == 2
    write_taskset(tmp_path / "set", tasks)
    assert [result.problems for result in check_tasks(tasks, CHEAPEST)] == [()] * 2


def test_names_of_tests() -> None:
    assert is_method("tests/test_a.py::A::test_b")
    assert not is_method("tests/test_a.py::test_b")
    assert not is_method("tests/test_a.py::A::test_b[1]")
    assert not is_method("README.rst::README.rst")
    assert dotted("tests/unit/test_a.py::A::test_b") == "tests.unit.test_a.A.test_b"


def test_whole_files_and_classes_are_named_as_such() -> None:
    known = ["a.py::A::x", "a.py::A::y", "b.py::A::x", "b.py::B::x", "b.py::B::y"]
    names = {test: test for test in known if test != "b.py::B::y"}
    assert shortest(names, known) == ["a", "b.A", "b.B.x"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["test_a.py"], [["discover", "-v", "-s", ".", "-t", "."]]),
        (
            ["tests/a_test.py", "tests/unit/b_test.py"],
            [
                ["discover", "-v", "-s", "tests", "-t", ".", "-p", "*_test.py"],
                ["discover", "-v", "-s", "tests", "-p", "*_test.py"],
            ],
        ),
        (["x/testing_a.py", "x/b_test.py"], [["-p", "*test*.py"], ["-p", "*test*.py"]]),
    ],
)
def test_discovery_begins_where_the_files_are(files: list[str], expected: list[list[str]]) -> None:
    found = [list(command) for command in commands([f"{file}::A::test_x" for file in files])]
    assert [command[-len(words) :] for command, words in zip(found, expected, strict=True)] == expected
