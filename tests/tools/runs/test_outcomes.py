"""The pytest plugin that writes outcomes, under every interpreter at hand, and what is read of what programs print."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.tools.runs.outcomes import parse_unittest, read_outcomes
from gumshoe.tools.runs.tracebacks import describe_frame, exception_text, printed_frames
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


ERRORS_AT_IMPORT = {
    "import no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
    "from json import nothing": "ImportError: cannot import name 'nothing'",
    "1 / 0": "ZeroDivisionError: division by zero",
}


def test_every_outcome(python: str, tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(SUITE)
    for number, source in enumerate(ERRORS_AT_IMPORT):
        (tmp_path / f"part_{number}.py").write_text(f"\n{source}\n")
        (tmp_path / f"test_part_{number}.py").write_text(f"import part_{number}\n")
    found = outcomes(python, tmp_path, "--continue-on-collection-errors")
    assert {name.rpartition("::")[2]: outcome for name, (outcome, _, _) in found.items()} == {
        **{f"test_part_{number}.py": "error" for number in range(len(ERRORS_AT_IMPORT))},
        "test_setup": "error",
        "test_teardown": "error",
        "test_xfail": "xfailed",
        "test_xpass": "xpassed",
        "test_strict": "failed",
        "test_skip": "skipped",
        **dict.fromkeys(("test_deep", "test_sub", "test_long", "test_object", "test_shortened", "test_loud"), "failed"),
    }
    for number, message in enumerate(ERRORS_AT_IMPORT.values()):
        _, said, frames = found[f"test_part_{number}.py"]
        assert (said[: len(message)], frames) == (message, [f"test_part_{number}.py", f"part_{number}.py"])
    messages = {test.rpartition("::")[2]: message for test, (_, message, _) in found.items()}
    assert messages["test_deep"].startswith("AttributeError: 'object' object has no attribute 'nothing'")
    assert found["test_all.py::test_deep"][2] == ["test_all.py"] * 4
    assert "because" in messages["test_skip"]
    assert "XPASS" in messages["test_strict"]
    assert len(messages["test_long"]) < 900
    assert " at 0x" not in messages["test_object"]
    assert not re.search("[0-9a-f]{8}", messages["test_shortened"])
    assert "Loud" in messages["test_loud"]


def test_messages_of_unittest_are_without_addresses(python: str, tmp_path: Path) -> None:
    method = "    def test(self):\n        self.assertIsNone(object())\n"
    (tmp_path / "test_case.py").write_text(f"import unittest\n\nclass Case(unittest.TestCase):\n{method}")
    record = tmp_path / "record"
    argv = [python, *program("runs.unittest_runs"), "--", "-m", "unittest", "test_case"]
    subprocess.run(argv, cwd=tmp_path, env={**os.environ, "GUMSHOE_OUTCOMES": str(record)}, check=False)
    messages = [json.loads(line).get("message") for line in record.read_text().splitlines()]
    assert messages[-1] == "AssertionError: <object object> is not None"


def test_of_a_test_that_is_run_again_the_last_attempt_counts(tmp_path: Path) -> None:
    flaky = "RUNS = []\n\ndef test_flaky():\n    RUNS.append(1)\n    assert len(RUNS) > 1\n"
    (tmp_path / "test_again.py").write_text(f"{flaky}\ndef test_bad():\n    assert 0\n")
    found = outcomes(sys.executable, tmp_path, "-p", "pytest_rerunfailures", "--reruns", "2")
    assert {test: outcome for test, (outcome, *_) in found.items()} == {
        "test_again.py::test_flaky": "passed",
        "test_again.py::test_bad": "failed",
    }
    lines = [json.loads(line) for line in (tmp_path / "outcomes.jsonl").read_text().splitlines()]
    assert [line["outcome"] for line in lines[:4]] == ["not_run", "not_run", "crashed", "rerun"]


UNITTEST_SUITE = '''
import sys
import unittest

class Case(unittest.TestCase):
    def test_good(self):
        print("printed on the way")
    def test_noisy(self):
        """A docstring."""
        sys.stderr.write("no newline at the end")
    def test_wrong(self):
        """Says what it is."""
        self.assertEqual(1, 2)
    def test_broken(self):
        raise RuntimeError("boom")
    @unittest.skip("not today")
    def test_skipped(self):
        pass
    @unittest.expectedFailure
    def test_known(self):
        self.fail()
    @unittest.expectedFailure
    def test_surprise(self):
        pass
    def test_parts(self):
        for part in (1, 2):
            with self.subTest(part=part):
                self.assertEqual(part, 1)

class NoSetup(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("no setup")
    def test_never(self):
        pass
'''


def test_unittest_as_this_python_prints_it(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(UNITTEST_SUITE)
    argv = [sys.executable, "-m", "unittest", "-v", "test_suite"]
    done = subprocess.run(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = {outcome.id.removeprefix("test_suite."): outcome for outcome in parse_unittest(done.stdout, 1)}
    assert {name: outcome.outcome for name, outcome in found.items()} == {
        "Case.test_good": "passed",
        "Case.test_noisy": "passed",
        "Case.test_wrong": "failed",
        "Case.test_broken": "error",
        "Case.test_skipped": "skipped",
        "Case.test_known": "xfailed",
        "Case.test_surprise": "xpassed",
        "Case.test_parts": "failed",
        "NoSetup.setUpClass": "error",
    }
    assert found["Case.test_wrong"].message.endswith("AssertionError: 1 != 2")
    assert "boom" in found["Case.test_broken"].message
    assert found["Case.test_good"].message == ""


def test_unittest_before_python_3_11() -> None:
    """A test whose subtests fail has no verdict there; a docstring stands on a line of its own."""
    rule, line = "=" * 70, "-" * 70
    text = (
        "test_a (mod.Case) ... ok\ntest_b (mod.Case) ... test_c (mod.Case) ... ok\n"
        "test_d (mod.Case)\nSays what. ... test_e (mod.Case)\nSays more. ... ok\n"
        "test_f (mod.Case)\nA docstring ... FAIL\n\n"
        f"{rule}\nFAIL: test_b (mod.Case) (value=1)\n{line}\nAssertionError: 1 != 2\n\n"
        f"{rule}\nFAIL: test_d (mod.Case) (value=1)\nSays what.\n{line}\nAssertionError: 3 != 4\n\n"
    )
    outcomes = parse_unittest(text, 1)
    assert [one.title for one in outcomes if one.title] == ["Says what.", "Says more.", "A docstring"]
    assert {one.id.removeprefix("mod.Case.test_"): one.outcome for one in outcomes} == {
        "a": "passed",
        "b": "failed",
        "c": "passed",
        "d": "failed",
        "e": "passed",
        "f": "failed",
    }


def test_what_is_not_unittest_has_no_outcomes() -> None:
    assert parse_unittest("", 1) == ()
    assert parse_unittest("ok\nFAIL\nhello (world)\n====\n", 1) == ()


def test_lines_that_were_cut_off_are_passed_over() -> None:
    good = json.dumps({"id": "t::a", "outcome": "passed", "message": ""})
    again = json.dumps({"id": "t::a", "outcome": "passed", "message": "late"})
    data = f'{good}\nnonsense\n[]\n{{"id": 1}}\n{again}\n{good[:20]}'.encode()
    assert [(outcome.outcome, outcome.message) for outcome in read_outcomes(data, 1)] == [("passed", "late")]


@given(st.lists(st.sampled_from(["passed", "failed", "skipped"]), min_size=1))
def test_a_test_with_different_outcomes_is_an_error(outcomes: list[str]) -> None:
    data = "\n".join(json.dumps({"id": "t::a", "outcome": each}) for each in outcomes)
    (read,) = read_outcomes(data.encode(), 1)
    assert read.outcome == (outcomes[0] if len(set(outcomes)) == 1 else "error")


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
    assert [describe_frame(frame) for frame in frames] == ["check.py:9 in <module>: main()", "pkg/a.py:3 in load"]


def test_the_exception_is_what_stands_below_the_last_frame() -> None:
    assert exception_text(PRINTED) == "ValueError: no such\n  key"
    assert exception_text(" just words \n") == "just words"
    assert exception_text('  File "a.py", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax') == (
        "SyntaxError: invalid syntax"
    )


def test_the_common_layouts_of_tests_are_known() -> None:
    tests = ["testing/python/approx.py", "shop/tests/carts.py", "test_shop.py", "conftest.py"]
    assert [path for path in [*tests, "shop/testing/carts.py", "shop/contest.py"] if holds_tests(path)] == tests
