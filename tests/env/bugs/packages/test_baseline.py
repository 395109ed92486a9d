"""Which tests count: what cannot be collected is left out, and so is what there is too much of.

Then packages whose tasks are run by unittest, or by their doctests alone.
"""

from pathlib import Path

import pytest

from gumshoe.env.bugs.config import BaselineConfig, HarvestConfig, SynthConfig
from gumshoe.env.bugs.make import make_bugs
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.bugs.packages.baseline import Baseline, find_baseline
from gumshoe.env.bugs.packages.bugs import commands, unittest_suite
from gumshoe.env.bugs.packages.environment import DOCTEST_WAYS
from gumshoe.env.bugs.projects import Project, Suite
from gumshoe.env.verifier.check import check_tasks
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import CHEAPEST
from support.small_projects import DOCTESTED_CART

pytestmark = pytest.mark.needs("bubblewrap")
LISTS = "import pytest\n\n@pytest.mark.parametrize('number', range({}))\ndef test_{}(number): ...\n"
PLAIN = "\n".join(f"def test_{name}(): ..." for name in ("one", "two", "three", "four", "five", "six"))
BAD_FILES = {
    # pytest warns that it cannot collect a class with a constructor, and here that is an error.
    "tests/test_suites.py": "class TestSuite:\n    def __init__(self): ...\n\ndef test_beside_it(): ...\n",
    "tests/test_changing.py": """\
import time

import pytest

@pytest.mark.parametrize("at", ["always", time.time_ns()])
def test_at(at): ...

def test_beside(): ...
""",
    "tests/test_bad.py": """\
import urllib.request

def test_online():
    urllib.request.urlopen("http://example.com")

def test_wrong():
    assert 1 == 2
""",
    # A test that sets the clock is not slow.
    "tests/conftest.py": """\
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report):
    if "test_two" in report.nodeid and report.when == "teardown":
        report.duration = 1.7e9
""",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with 46 tests."""
    files = {
        "pyproject.toml": '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n',
        "tests/test_numbers.py": LISTS.format(40, "numbers") + PLAIN,
    }
    return write_files(tmp_path / "project", files)


def config_with(**limits: int) -> HarvestConfig:
    return HarvestConfig(sandbox=CHEAPEST, baseline=BaselineConfig(runs=2, **limits))


def baseline_of(project: Path, **limits: int) -> Baseline:
    return find_baseline(PackageHarvest("small", config_with(**limits), project), project, Suite())


def test_tests_that_no_verdict_can_rest_on_go_each_for_its_reason(project: Path) -> None:
    found = baseline_of(write_files(project, BAD_FILES))
    assert found.deselected == {
        "tests/test_suites.py::TestSuite": "fails without the others",  # although it is deselected
        "tests/test_suites.py": "not collected",
        "tests/test_changing.py::test_at": "parameters differ between runs",
        "tests/test_bad.py::test_online": "needs a network",
        "tests/test_bad.py::test_wrong": "fails",
    }
    assert "--ignore=tests/test_suites.py" in found.arguments
    assert len(found.passing) == 47
    assert "tests/test_changing.py::test_beside" in found.passing


def test_where_too_many_tests_of_a_file_fail_the_file_goes_as_a_whole(project: Path) -> None:
    tests = [f"def test_{number}():\n    assert {number} < 2\n" for number in range(5)]
    found = baseline_of(write_files(project, {"tests/test_wrong.py": "\n\n".join(tests)}), max_deselected=2)
    assert len(found.passing) == 46
    assert found.arguments[-1] == "--ignore=tests/test_wrong.py"
    assert found.deselected["tests/test_wrong.py::test_0"] == "beside too many of these (baseline.max_deselected)"
    assert found.deselected["tests/test_wrong.py::test_4"] == "fails"


def test_where_there_are_too_many_tests_the_longest_lists_of_parameters_go(project: Path) -> None:
    found = baseline_of(write_files(project, {"tests/test_more.py": LISTS.format(50, "more")}), max_tests=10)
    assert len(found.passing) == 6
    assert found.deselected == {
        "tests/test_more.py::test_more": "50 tests (baseline.max_tests)",
        "tests/test_numbers.py::test_numbers": "40 tests (baseline.max_tests)",
    }
    assert found.arguments == ("--ignore=tests/test_more.py", "--deselect=tests/test_numbers.py::test_numbers")


@pytest.mark.parametrize(
    ("limits", "usable"), [({"max_tests": 10, "min_tests": 20}, "6 of its 46"), ({"min_tests": 60}, "46 of its 46")]
)
def test_a_refusal_names_the_limit(project: Path, limits: dict[str, int], usable: str) -> None:
    needed = limits["min_tests"]
    with pytest.raises(TaskError, match=rf"^{usable} tests are usable, {needed} are needed \(baseline.min_tests\)"):
        baseline_of(project, **limits)


CASES = """\
import unittest

from shop.cart import cheapest, total
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
                self.assertEqual(cheapest([number, 9]), number)

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
        "shop/cart.py": DOCTESTED_CART,
        "tests/helper.py": "NUMBERS = [1, 2, 3]\n",
        "tests/test_cart.py": cases,
        "README.rst": "Use it\n======\n\n>>> from shop.cart import total\n>>> total([2, 2])\n4\n",
    }
    return write_files(folder / "shop-1.0", files)


def under_unittest(project: Path, config: HarvestConfig) -> Suite:
    package = PackageHarvest("shop", config, project)
    baseline = find_baseline(package, project, Suite())
    return unittest_suite(package, project, Suite(None, baseline.arguments), baseline)


def bugs_of(project: Path, suite: Suite) -> list[tuple[Task, Oracle]]:
    config = SynthConfig(per_project=2, exclude=("tests/",), sandbox=CHEAPEST)
    return make_bugs(config, projects=[Project("shop", project, str(project), suite)]).tasks


def test_tasks_are_run_by_unittest(tmp_path: Path) -> None:
    project = shop(tmp_path, CASES)
    suite = under_unittest(project, config_with())
    assert suite.command == ("python", "-m", "unittest", "discover", "-v", "-s", "tests")
    tasks = bugs_of(project, suite)
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


def test_doctests_alone_give_tasks(tmp_path: Path) -> None:
    project = shop(tmp_path, CASES)
    suite = Suite(None, DOCTEST_WAYS[0])
    baseline = find_baseline(PackageHarvest("shop", config_with(min_tests=3), project), project, suite)
    names = ("cart.total", "cart.cheapest")
    assert set(baseline.passing) == {*(f"shop/cart.py::shop.{name}" for name in names), "README.rst::README.rst"}
    tasks = bugs_of(project, Suite(None, baseline.arguments))
    assert [result.problems for result in check_tasks(tasks, CHEAPEST)] == [()] * 2


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["test_a.py"], "-s . -t ."),
        (["tests/a_test.py", "tests/unit/b_test.py"], "-s tests -t . -p *_test.py"),
        (["x/testing_a.py", "x/b_test.py"], "-s x -t . -p *test*.py"),
    ],
)
def test_discovery_begins_where_the_files_are(files: list[str], expected: str) -> None:
    first = next(commands([f"{file}::A::test_x" for file in files]))
    assert " ".join(first) == f"python -m unittest discover -v {expected}"
