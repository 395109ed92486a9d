"""Which tests count: what cannot be collected is left out, and so is what there is too much of."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.bugs.config import BaselineConfig, HarvestConfig
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.bugs.packages.baseline import Baseline, find_baseline
from gumshoe.env.bugs.projects import Suite
from gumshoe.errors import TaskError
from support.sandboxes.sandbox_backends import CHEAPEST

TESTS = """\
import pytest


@pytest.mark.parametrize("number", range(40))
def test_numbers(number):
    assert number < 40


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_names(name):
    assert name


def test_plain():
    assert True


def test_other():
    assert True


def test_last():
    assert True
"""
SUITE_OF_ANOTHER_KIND = """\
class TestSuite:
    def __init__(self):
        self.tests = []


def test_beside_it():
    assert TestSuite().tests == []
"""


pytestmark = pytest.mark.needs("bubblewrap")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n')
    (folder / "tests" / "test_numbers.py").write_text(TESTS)
    return folder


def baseline_of(project: Path, **limits: int) -> Baseline:
    config = HarvestConfig(baseline=BaselineConfig(runs=2, **limits), sandbox=CHEAPEST)
    return find_baseline(PackageHarvest("small", config, project), project, Suite())


def test_a_class_that_cannot_be_collected_costs_its_file_and_not_the_package(project: Path) -> None:
    (project / "tests" / "test_suites.py").write_text(SUITE_OF_ANOTHER_KIND)
    found = baseline_of(project)
    assert len(found.passing) == 46
    assert found.deselected["tests/test_suites.py"] == "not collected"
    assert "--ignore=tests/test_suites.py" in found.arguments


def test_where_there_are_too_many_tests_the_longest_lists_of_parameters_go(project: Path) -> None:
    found = baseline_of(project, max_tests=10)
    assert len(found.passing) == 6
    assert found.deselected == {"tests/test_numbers.py::test_numbers": "40 tests (baseline.max_tests)"}


def test_a_function_whose_parameters_differ_between_runs_goes_as_a_whole(project: Path) -> None:
    changing = (
        "import pytest, time\n\n\n@pytest.mark.parametrize('at', ['always', time.time_ns()])\ndef test_at(at): ...\n"
    )
    (project / "tests" / "test_changing.py").write_text(f"{changing}\n\ndef test_beside(): ...\n")
    found = baseline_of(project)
    assert found.deselected == {"tests/test_changing.py::test_at": "parameters differ between runs"}
    assert "tests/test_changing.py::test_beside" in found.passing
    assert len(found.passing) == 47


def test_a_test_that_sets_the_clock_is_not_slow(project: Path) -> None:
    clock = "import pytest\n\n\n@pytest.hookimpl(tryfirst=True)\ndef pytest_runtest_logreport(report):\n"
    later = "    if 'test_plain' in report.nodeid and report.when == 'teardown':\n        report.duration = 1.7e9\n"
    (project / "tests" / "conftest.py").write_text(clock + later)
    assert baseline_of(project).deselected == {}


def test_a_test_that_needs_a_host_is_told_from_one_that_fails(project: Path) -> None:
    online = "import urllib.request\n\n\ndef test_online():\n    urllib.request.urlopen('http://example.com')\n"
    (project / "tests" / "test_online.py").write_text(f"{online}\n\ndef test_wrong():\n    assert 1 == 2\n")
    assert baseline_of(project).deselected == {
        "tests/test_online.py::test_online": "needs a network",
        "tests/test_online.py::test_wrong": "fails",
    }


def test_where_too_many_tests_of_a_file_fail_the_file_goes_as_a_whole(project: Path) -> None:
    tests = [f"def test_{number}():\n    assert {number} < 2\n" for number in range(5)]
    (project / "tests" / "test_wrong.py").write_text("\n\n".join(tests))
    found = baseline_of(project, max_deselected=2)
    assert len(found.passing) == 46
    assert found.arguments[-1] == "--ignore=tests/test_wrong.py"
    assert found.deselected["tests/test_wrong.py::test_0"] == "beside too many of these (baseline.max_deselected)"
    assert found.deselected["tests/test_wrong.py::test_4"] == "fails"


def test_a_file_whose_functions_all_go_goes_as_a_whole(project: Path) -> None:
    lists = "import pytest\n\n\n@pytest.mark.parametrize('number', range(50))\ndef test_more(number): ...\n"
    (project / "tests" / "test_more.py").write_text(lists)
    found = baseline_of(project, max_tests=60)
    assert found.deselected == {"tests/test_more.py::test_more": "50 tests (baseline.max_tests)"}
    assert found.arguments[-1] == "--ignore=tests/test_more.py"
    assert len(found.passing) == 46


def test_tests_of_functions_that_go_do_not_count_as_usable(project: Path) -> None:
    with pytest.raises(TaskError, match=r"^6 of its 46 tests are usable, 20 are needed \(baseline.min_tests\)"):
        baseline_of(project, max_tests=10, min_tests=20)


def test_a_refusal_names_the_limit(project: Path) -> None:
    with pytest.raises(TaskError, match=r"46 of its 46 tests are usable, 60 are needed \(baseline.min_tests\)"):
        baseline_of(project, min_tests=60)
