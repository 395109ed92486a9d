"""Which tests count: what cannot be collected is left out, and so is what there is too much of."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.harvest.baseline import Baseline, find_baseline
from gumshoe.env.harvest.config import BaselineConfig
from gumshoe.env.synth.suite import Suite

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


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n')
    (folder / "tests" / "test_numbers.py").write_text(TESTS)
    return folder


def baseline_of(project: Path, **limits: int) -> Baseline:
    config = BaselineConfig(runs=2, **limits)
    return find_baseline("small", project, Suite(), config, SandboxConfig(kind="bubblewrap"), lambda text: None)


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
