"""The pytest plugin that writes outcomes, under every interpreter at hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from support.tools.inside import SUPPORT, program

SUITE = """\
import unittest

import pytest


@pytest.fixture
def bad():
    raise ValueError("no")


@pytest.fixture
def late():
    yield
    1 / 0


def test_setup(bad):
    pass


def test_teardown(late):
    pass


@pytest.mark.xfail
def test_xfail():
    assert 0


@pytest.mark.xfail
def test_xpass():
    pass


@pytest.mark.xfail(strict=True)
def test_strict():
    pass


def test_skip():
    pytest.skip("because")


def test_deep():
    def again(n):
        return again(n - 1) if n else object().nothing

    again(9)


class Unittest(unittest.TestCase):
    def test_sub(self):
        with self.subTest(i=1):
            self.assertEqual(1, 2)
"""


def outcomes(python: str, folder: Path, *arguments: str) -> dict[str, tuple[str, str, list[str]]]:
    """Runs pytest in a folder with the plugin; id to outcome, message and the paths of its frames."""
    record = folder / "outcomes.jsonl"
    record.unlink(missing_ok=True)
    environment = {**os.environ, "GUMSHOE_OUTCOMES": str(record), "PYTHONPATH": str(SUPPORT)}
    argv = [python, "-m", "pytest", "-q", "-p", "gumshoe_inside.runs.outcomes", "-p", "no:cacheprovider", *arguments]
    subprocess.run(argv, cwd=folder, env=environment, check=False, capture_output=True, timeout=240)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    last = {line["id"]: line for line in lines}
    return {
        test: (line["outcome"], line["message"], [each["path"] for each in line["frames"]])
        for test, line in last.items()
    }


def test_every_outcome(python: str, tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(SUITE)
    (tmp_path / "test_broken.py").write_text("import no_such_module\n")
    found = outcomes(python, tmp_path, "--continue-on-collection-errors")
    assert {name.rpartition("::")[2]: outcome for name, (outcome, _, _) in found.items()} == {
        "test_broken.py": "error",
        "test_setup": "error",
        "test_teardown": "error",
        "test_xfail": "xfailed",
        "test_xpass": "xpassed",
        "test_strict": "failed",
        "test_skip": "skipped",
        "test_deep": "failed",
        "test_sub": "failed",
    }
    assert found["test_broken.py"][1].startswith("ModuleNotFoundError: No module named 'no_such_module'")
    _, deep, frames = found["test_all.py::test_deep"]
    assert deep.startswith("AttributeError: 'object' object has no attribute 'nothing'")
    assert frames == ["test_all.py"] * 4
    assert "because" in found["test_all.py::test_skip"][1]
    assert "XPASS" in found["test_all.py::test_strict"][1]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("from json import nothing", "ImportError: cannot import name 'nothing'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_at_import_has_its_frames(python: str, tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "part.py").write_text(f"\n{source}\n")
    (tmp_path / "test_part.py").write_text("import part\n")
    ((outcome, said, frames),) = outcomes(python, tmp_path).values()
    assert (outcome, frames) == ("error", ["test_part.py", "part.py"])
    assert said.startswith(message)


def test_messages_are_short_and_without_addresses(python: str, tmp_path: Path) -> None:
    text = """\
        class Thing:
            pass

        class Loud(Exception):
            def __str__(self):
                raise RuntimeError

        def test_long():
            raise ValueError("line\\n" * 100 + "x" * 10000)

        def test_object():
            assert Thing() == 1

        def test_shortened():
            assert [Thing()] == [1]

        def test_loud():
            raise Loud
    """
    (tmp_path / "test_long.py").write_text(dedent(text))
    found = outcomes(python, tmp_path)
    assert len(found["test_long.py::test_long"][1]) < 900
    assert " at 0x" not in found["test_long.py::test_object"][1]
    assert not re.search("[0-9a-f]{8}", found["test_long.py::test_shortened"][1])
    assert "Loud" in found["test_long.py::test_loud"][1]


def test_messages_of_unittest_are_without_addresses(python: str, tmp_path: Path) -> None:
    case = (
        "import unittest\n\nclass Case(unittest.TestCase):\n    def test(self):\n        self.assertIsNone(object())\n"
    )
    (tmp_path / "test_case.py").write_text(case)
    record = tmp_path / "record"
    argv = [python, *program("runs.unittest_runs"), "--", "-m", "unittest", "test_case"]
    subprocess.run(argv, cwd=tmp_path, env={**os.environ, "GUMSHOE_OUTCOMES": str(record)}, check=False)
    messages = [json.loads(line).get("message") for line in record.read_text().splitlines()]
    assert messages[-1] == "AssertionError: <object object> is not None"


def test_of_a_test_that_is_run_again_the_last_attempt_counts(python: str, tmp_path: Path) -> None:
    """As pytest-rerunfailures runs it."""
    (tmp_path / "conftest.py").write_text(
        dedent("""\
        from _pytest.runner import runtestprotocol

        def pytest_runtest_protocol(item, nextitem):
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            for attempt in range(3):
                reports = runtestprotocol(item, nextitem=nextitem, log=False)
                for report in reports:
                    if report.failed and attempt < 2:
                        report.outcome = "rerun"
                    item.ihook.pytest_runtest_logreport(report=report)
                if not any(report.outcome == "rerun" for report in reports):
                    break
                item._initrequest()
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            return True
        """)
    )
    flaky = "RUNS = []\n\ndef test_flaky():\n    RUNS.append(1)\n    assert len(RUNS) > 1\n"
    (tmp_path / "test_again.py").write_text(f"{flaky}\ndef test_bad():\n    assert 0\n")
    found = outcomes(python, tmp_path)
    assert {test: outcome for test, (outcome, *_) in found.items()} == {
        "test_again.py::test_flaky": "passed",
        "test_again.py::test_bad": "failed",
    }
    lines = [json.loads(line) for line in (tmp_path / "outcomes.jsonl").read_text().splitlines()]
    assert [line["outcome"] for line in lines] == ["not_run", "not_run", "crashed", "passed", "crashed", "failed"]
