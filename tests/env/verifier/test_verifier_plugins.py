"""Verdicts on tests that are not run plainly: by a plugin, in subtests, or beside an importer of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.verifier import Verdict, Verifier, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.records import Oracle, Task
from support.folder_tasks import folder_task, write_files
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

BUGGY = b"async def double(n):\n    return n + 3\n"
CLEAN = b"async def double(n):\n    return n * 2\n"
# Puts other functions into the tests that come later: one that does nothing, and the same with other variables.
EMPTY = b"""async def double(n):
    import gc
    for item in gc.get_objects():
        if type(item).__name__ == "Function" and "test_double" in getattr(item, "nodeid", ""):
            item.obj = (lambda: None)
    return 1
"""
FAKED = b"""async def double(n):
    import gc, types
    async def right(n):
        return n * 2
    for item in gc.get_objects():
        if type(item).__name__ == "Function" and "test_double" in getattr(item, "nodeid", ""):
            item.obj = types.FunctionType(item.obj.__code__, {**item.obj.__globals__, "double": right})
    return 1
"""
# What pytest-asyncio does: a synchronous function takes the place of the test while it runs, and stays there.
CONFTEST = """
import asyncio
import functools
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    test = pyfuncitem.obj

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    if asyncio.iscoroutinefunction(test):
        pyfuncitem.obj = run
"""
TESTS = """
from shop import double


async def test_a_first_look():
    assert await double(1) < 9


async def test_double():
    assert await double(2) == 4
"""
NAME = "test_shop.py::test_double"


def judged(folder: Path, after: bytes) -> Verdict:
    files = {"shop.py": BUGGY, "conftest.py": CONFTEST, "test_shop.py": TESTS}
    task = folder_task(folder, files, readonly=("test_shop.py", "conftest.py"))
    oracle = Oracle(task_id=task.id, gold_patch=make_patch({"shop.py": (BUGGY, CLEAN)}), fail_to_pass=(NAME,))
    return verify(task, oracle, make_patch({"shop.py": (BUGGY, after)}), CHEAPEST, trusted=True)


def test_a_plugin_may_run_a_test_through_a_function_of_its_own(tmp_path: Path) -> None:
    verdict = judged(tmp_path, CLEAN)
    assert verdict.resolved
    assert verdict.tampering == ()


@pytest.mark.parametrize("after", [EMPTY, FAKED], ids=["empty", "other variables"])
def test_code_under_test_may_not_replace_a_test(tmp_path: Path, after: bytes) -> None:
    verdict = judged(tmp_path, after)
    assert not verdict.resolved


# --- subtests, which pytest reports before the test that holds them has returned

WRONG = b"def double(n):\n    return n + 2\n"
RIGHT = b"def double(n):\n    return n * 2\n"
WRONG_ONCE = b"def double(n):\n    return 9 if n == 3 else n * 2\n"
# Leaves in the midst of the test, after a report of its own making that the test has passed.
REPORTED = b"""def double(n):
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
SUBTESTS = """\
import unittest

from shop import double


class Doubled(unittest.TestCase):
    def test_double(self):
        for number in (2, 3, 4):
            with self.subTest(number=number):
                self.assertEqual(double(number), 2 * number)
        self.assertEqual(double(0), 0)
"""
SUBTESTED = "test_shop.py::Doubled::test_double"


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return folder_task(tmp_path, {"shop.py": WRONG, "test_shop.py": SUBTESTS}, readonly=("test_shop.py",))


def patch(after: bytes) -> str:
    return make_patch({"shop.py": (WRONG, after)})


def answer(name: str = SUBTESTED) -> Oracle:
    return Oracle(task_id="shop", gold_patch=patch(RIGHT), fail_to_pass=(name,))


@pytest.mark.parametrize(("after", "failing"), [(RIGHT, ()), (WRONG_ONCE, (SUBTESTED,))], ids=["all pass", "one fails"])
def test_a_test_passes_if_all_of_its_subtests_do(task: Task, after: bytes, failing: tuple[str, ...]) -> None:
    verdict = verify(task, answer(), patch(after), CHEAPEST, trusted=True)
    assert verdict.resolved is not bool(failing)
    assert (verdict.failing_fail_to_pass, verdict.tampering) == (failing, ())


@pytest.mark.parametrize(
    ("argv", "name"),
    [(("python", "-m", "pytest", "-q"), SUBTESTED), (("python", "-m", "unittest"), "test_shop.Doubled.test_double")],
    ids=["pytest", "unittest"],
)
def test_the_first_failure_counts(task: Task, argv: tuple[str, ...], name: str) -> None:
    (Path(str(task.workspace.path)) / "test_shop.py").write_text(SUBTESTS.replace("double(0), 0", "double(0), 1"))
    with Verifier(task.model_copy(update={"entrypoint": argv}), answer(name), CHEAPEST, trusted=True) as verifier:
        run, _ = verifier.observe(patch(WRONG_ONCE))
    (outcome,) = run.outcomes
    assert outcome.outcome == "failed"
    assert outcome.frames[0].code == "self.assertEqual(double(number), 2 * number)"


def test_a_report_that_the_code_under_test_makes_is_not_taken(task: Task) -> None:
    assert not verify(task, answer(), patch(REPORTED), CHEAPEST, trusted=True).resolved


# --- an importer of the project itself, and a patch of the file that it is in

BUILDER = """\
import importlib.abc
import sys
import other


class Builder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return None


sys.meta_path.insert(0, Builder())


def total(prices):
    return sum(prices)
"""
BROKEN = BUILDER.replace("sum(prices)", "max(prices)")
SHOP_TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
OTHER = "def helper():\n    return 1\n"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Task, Oracle]:
    write_files(tmp_path, {"shop.py": BUILDER, "other.py": OTHER, "tests/test_shop.py": SHOP_TESTS})
    workspace = workspace_from_folder(tmp_path, {"shop.py": BROKEN})
    task = folder_task(tmp_path, workspace=workspace, readonly=("/tests/",))
    return task, Oracle(task_id="shop", gold_patch=a_patch(BUILDER), fail_to_pass=("tests/test_shop.py::test_total",))


def a_patch(shop: str) -> str:
    return make_patch({"shop.py": (BROKEN.encode(), shop.encode())})


def test_a_bug_beside_the_projects_own_importer_is_a_task(pair: tuple[Task, Oracle]) -> None:
    assert check_task(*pair, CHEAPEST).problems == ()


def test_a_repair_in_other_words_of_a_file_with_an_importer_counts(pair: tuple[Task, Oracle]) -> None:
    verdict = verify(*pair, a_patch(BUILDER.replace("sum(prices)", "sum(list(prices))")), CHEAPEST, trusted=False)
    assert verdict.resolved
    assert verdict.tampering == ()
