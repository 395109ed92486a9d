"""Outcomes of single tests, as pytest and unittest tell them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gumshoe.tools.runs.outcomes import parse_unittest, read_outcomes

SUITE = '''
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
    (tmp_path / "test_suite.py").write_text(SUITE)
    argv = [sys.executable, "-m", "unittest", "-v", "test_suite"]
    output = subprocess.run(
        argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    ).stdout
    found = {outcome.id.removeprefix("test_suite."): outcome for outcome in parse_unittest(output, 1)}
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
    outcomes = parse_unittest("test_a (mod.Case) ... ok\ntest_b (mod.Case)\nA docstring ... FAIL\n", 1)
    assert [(outcome.id, outcome.outcome) for outcome in outcomes] == [
        ("mod.Case.test_a", "passed"),
        ("mod.Case.test_b", "failed"),
    ]


def test_a_test_whose_subtests_fail_has_no_verdict_before_python_3_11() -> None:
    rule, line = "=" * 70, "-" * 70
    text = (
        "test_a (mod.Case) ... ok\ntest_b (mod.Case) ... test_c (mod.Case) ... ok\n"
        "test_d (mod.Case)\nSays what. ... test_e (mod.Case)\nSays more. ... ok\n\n"
        f"{rule}\nFAIL: test_b (mod.Case) (value=1)\n{line}\nAssertionError: 1 != 2\n\n"
        f"{rule}\nFAIL: test_d (mod.Case) (value=1)\nSays what.\n{line}\nAssertionError: 3 != 4\n\n"
    )
    outcomes = parse_unittest(text, 1)
    assert [one.title for one in outcomes if one.title] == ["Says what.", "Says more."]
    assert {one.id: one.outcome for one in outcomes} == {
        "mod.Case.test_a": "passed",
        "mod.Case.test_b": "failed",
        "mod.Case.test_c": "passed",
        "mod.Case.test_d": "failed",
        "mod.Case.test_e": "passed",
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


@given(st.binary() | st.text().map(str.encode))
def test_no_output_breaks_the_parsers(data: bytes) -> None:
    read_outcomes(data, 1)
    parse_unittest(data.decode("utf-8", "replace"), 1)
