"""Verdicts on tests with subtests, which pytest reports before the test that holds them has returned."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verifier, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.records import Oracle, Task, WorkspaceSpec
from support.sandboxes.sandbox_backends import WARM

pytestmark = pytest.mark.needs("bubblewrap")

BUGGY = b"def double(n):\n    return n + 2\n"
CLEAN = b"def double(n):\n    return n * 2\n"
# Leaves in the midst of the test, after a report of its own making that the test has passed.
FORGED = b"""def double(n):
    import gc, os
    from _pytest.main import Session
    from _pytest.reports import TestReport
    session, = (each for each in gc.get_objects() if isinstance(each, Session))
    item, = (each for each in session.items if "test_double" in each.nodeid)
    report = TestReport(item.nodeid, item.location, {}, "passed", None, "call")
    item.ihook.pytest_runtest_logreport(report=report)
    report = TestReport(item.nodeid, item.location, {}, "passed", None, "teardown")
    item.ihook.pytest_runtest_logreport(report=report)
    os._exit(0)
"""
TESTS = """\
import unittest

from shop import double


class Doubled(unittest.TestCase):
    def test_double(self):
        for number in (2, 3, 4):
            with self.subTest(number=number):
                self.assertEqual(double(number), 2 * number)
        self.assertEqual(double(0), 0)
"""
NAME = "test_shop.py::Doubled::test_double"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "shop.py").write_bytes(BUGGY)
    (tmp_path / "test_shop.py").write_text(TESTS)
    return Task(
        id="shop/1",
        source="synth",
        problem_statement="double is wrong.",
        workspace=WorkspaceSpec(path=str(tmp_path)),
        entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        readonly=("test_shop.py",),
    )


def patch(after: bytes) -> str:
    return make_patch({"shop.py": (BUGGY, after)})


def test_subtests_that_pass_are_no_tampering(task: Task) -> None:
    oracle = Oracle(task_id=task.id, gold_patch=patch(CLEAN), fail_to_pass=(NAME,))
    assert check_task(task, oracle, WARM).problems == ()
    verdict = verify(task, oracle, patch(CLEAN), WARM, trusted=True)
    assert verdict.resolved
    assert verdict.tampering == ()


def test_a_subtest_that_fails_fails_the_test(task: Task) -> None:
    oracle = Oracle(task_id=task.id, gold_patch=patch(CLEAN), fail_to_pass=(NAME,))
    verdict = verify(task, oracle, patch(b"def double(n):\n    return 9 if n == 3 else n * 2\n"), WARM, trusted=True)
    assert verdict.failing_fail_to_pass == (NAME,)


@pytest.mark.parametrize(
    ("argv", "name"),
    [(("python", "-m", "pytest", "-q"), NAME), (("python", "-m", "unittest"), "test_shop.Doubled.test_double")],
    ids=["pytest", "unittest"],
)
def test_the_first_failure_counts(task: Task, argv: tuple[str, ...], name: str) -> None:
    (Path(str(task.workspace.path)) / "test_shop.py").write_text(TESTS.replace("double(0), 0", "double(0), 1"))
    oracle = Oracle(task_id=task.id, gold_patch=patch(CLEAN), fail_to_pass=(name,))
    with Verifier(task.model_copy(update={"entrypoint": argv}), oracle, WARM, trusted=True) as verifier:
        run, _ = verifier.observe(patch(b"def double(n):\n    return 9 if n == 3 else n * 2\n"))
    (outcome,) = run.outcomes
    assert outcome.outcome == "failed"
    assert outcome.frames[0].code == "self.assertEqual(double(number), 2 * number)"


def test_a_report_that_the_code_under_test_makes_is_not_taken(task: Task) -> None:
    oracle = Oracle(task_id=task.id, gold_patch=patch(CLEAN), fail_to_pass=(NAME,))
    assert not verify(task, oracle, patch(FORGED), WARM, trusted=True).resolved
