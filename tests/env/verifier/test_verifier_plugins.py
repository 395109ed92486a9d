"""Verdicts on tests that are not run plainly: by a plugin, in subtests, or beside an importer of the project."""

from pathlib import Path

import pytest

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.verifier import Verifier, verify
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
import asyncio, functools, pytest

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    test = pyfuncitem.obj
    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))
    if asyncio.iscoroutinefunction(test):
        pyfuncitem.obj = run
"""
TESTS = (
    "from shop import double\n\n\nasync def test_a_first_look():\n    assert await double(1) < 9\n\n\n"
    "async def test_double():\n    assert await double(2) == 4\n"
)
NAME = "test_shop.py::test_double"


@pytest.mark.parametrize("after", [CLEAN, EMPTY, FAKED], ids=["repair", "empty", "other variables"])
def test_a_plugin_may_run_a_test_through_its_own_function_and_code_under_test_may_not(
    tmp_path: Path, after: bytes
) -> None:
    files = {"shop.py": BUGGY, "conftest.py": CONFTEST, "test_shop.py": TESTS}
    task = folder_task(tmp_path, files, readonly=("test_shop.py", "conftest.py"))
    oracle = Oracle(task_id=task.id, gold_patch=make_patch({"shop.py": (BUGGY, CLEAN)}), fail_to_pass=(NAME,))
    verdict = verify(task, oracle, make_patch({"shop.py": (BUGGY, after)}), CHEAPEST, trusted=True)
    assert verdict.resolved is (after == CLEAN)
    assert verdict.tampering == () or after != CLEAN


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


def test_a_test_passes_if_all_of_its_subtests_do_and_no_report_of_the_code_under_test_is_taken(task: Task) -> None:
    with Verifier(task, answer(), CHEAPEST, trusted=True) as verifier:
        for after, failing in ((RIGHT, ()), (WRONG_ONCE, (SUBTESTED,))):
            verdict = verifier.verify(patch(after))
            assert verdict.resolved is not bool(failing)
            assert (verdict.failing_fail_to_pass, verdict.tampering) == (failing, ())
        assert not verifier.verify(patch(REPORTED)).resolved


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


# --- an importer of the project itself, and a patch of the file that it is in

BUILDER = """\
import importlib.abc, sys, other

class Builder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return None

sys.meta_path.insert(0, Builder())

def total(prices):
    return sum(prices)
"""
BROKEN = BUILDER.replace("sum(prices)", "max(prices)")
SHOP_TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"


def test_a_bug_beside_the_projects_own_importer_is_a_task_and_a_repair_in_other_words_counts(tmp_path: Path) -> None:
    write_files(tmp_path, {"shop.py": BUILDER, "other.py": "", "tests/test_shop.py": SHOP_TESTS})
    workspace = workspace_from_folder(tmp_path, {"shop.py": BROKEN})
    task = folder_task(tmp_path, workspace=workspace, readonly=("/tests/",))
    other = BUILDER.replace("sum(prices)", "sum(list(prices))")
    gold, repair = (make_patch({"shop.py": (BROKEN.encode(), text.encode())}) for text in (BUILDER, other))
    oracle = Oracle(task_id="shop", gold_patch=gold, fail_to_pass=("tests/test_shop.py::test_total",))
    assert check_task(task, oracle, CHEAPEST).problems == ()
    verdict = verify(task, oracle, repair, CHEAPEST, trusted=False)
    assert (verdict.resolved, verdict.tampering) == (True, ())
