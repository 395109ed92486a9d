"""Verdicts with the runners of Django and sympy, whose tests go by docstrings and bare functions.

The official parser reads the same output: where it sees a test pass, so does the verifier.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from swebench.harness.log_parsers import python as official

from gumshoe.env import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verdict, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.records import Oracle, Task, WorkspaceSpec

LOCAL = SandboxConfig(kind="local", unsafe=True)
BUGGY = b"def total(prices):\n    return sum(prices) - 1\n\n\ndef same(n):\n    return n\n"
CLEAN = BUGGY.replace(b" - 1", b"")
BROKEN = CLEAN.replace(b"return n", b"return -n")
SKIPS = b"import unittest\n\n\ndef total(prices):\n    raise unittest.SkipTest('no')\n\n\ndef same(n):\n    return n\n"
LEAVES = b"import os\n\n\ndef total(prices):\n    os._exit(0)\n\n\ndef same(n):\n    return n\n"
RUNTESTS = """\
#!/usr/bin/env python
import argparse
import os
import sys
import unittest

folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(folder), folder]
parser = argparse.ArgumentParser()
parser.add_argument("--verbosity", type=int)
parser.add_argument("--settings")
parser.add_argument("--parallel", type=int)
parser.add_argument("modules", nargs="*")
options = parser.parse_args()
suite = unittest.defaultTestLoader.loadTestsFromNames(options.modules)
print("Testing against a copy")
result = unittest.TextTestRunner(verbosity=options.verbosity).run(suite)
sys.exit(bool(result.failures or result.errors))
"""
DJANGO_TESTS = '''\
from unittest import TestCase, skip

from shop import same, total


class Prices(TestCase):
    def test_total(self):
        """The total of a list is its sum (#123)."""
        self.assertEqual(total([2, 3]), 5)

    def test_none(self):
        self.assertEqual(total([]), 0)

    def test_same(self):
        """
        What comes back is what was given.
        """
        self.assertEqual(same(2), 2)

    @skip("later")
    def test_later(self):
        """Is done later."""
'''
BIN_TEST = """\
#!/usr/bin/env python
import sys

sys.path.insert(0, ".")
from sympy.testing.runtests import run

sys.exit(not run([word for word in sys.argv[1:] if not word.startswith("-")]))
"""
SYMPY_RUNNER = """\
import sys


class PyTestReporter:
    def __init__(self):
        self.failed = 0

    def entering_test(self, f):
        print(f.__name__, end=" ")

    def test_pass(self, char="."):
        print("ok")

    def test_fail(self, exc_info):
        self.failed += 1
        print("F")

    def test_exception(self, exc_info):
        self.failed += 1
        print("E")

    def test_skip(self, v):
        print("s")


def run(paths):
    reporter = PyTestReporter()
    for path in paths:
        names = {"__name__": "test"}
        with open(path) as file:
            exec(compile(file.read(), path, "exec"), names)
        for name, test in names.items():
            if name.startswith("test_"):
                reporter.entering_test(test)
                try:
                    test()
                except AssertionError:
                    reporter.test_fail(sys.exc_info())
                except Exception:
                    reporter.test_exception(sys.exc_info())
                else:
                    reporter.test_pass()
    return not reporter.failed
"""
SYMPY_TESTS = """\
from shop import same, total


def test_total():
    assert total([2, 3]) == 5


def test_none():
    assert total([]) == 0


def test_same():
    assert same(2) == 2
"""
DJANGO = {"tests/runtests.py": RUNTESTS, "tests/prices/__init__.py": "", "tests/prices/tests.py": DJANGO_TESTS}
SYMPY = {
    "bin/test": BIN_TEST,
    "sympy/__init__.py": "",
    "sympy/testing/__init__.py": "",
    "sympy/testing/runtests.py": SYMPY_RUNNER,
    "sympy/core/tests/test_shop.py": SYMPY_TESTS,
}
RUNNERS: dict[str, Any] = {
    "django": (
        DJANGO,
        ("./tests/runtests.py", "--verbosity", "2", "--settings=test_sqlite", "--parallel", "1", "prices.tests"),
        ("The total of a list is its sum (#123).", "test_none (prices.tests.Prices.test_none)"),
        ("What comes back is what was given.",),
    ),
    "sympy": (
        SYMPY,
        ("bin/test", "-C", "--verbose", "sympy/core/tests/test_shop.py"),
        ("test_total", "test_none"),
        ("test_same",),
    ),
}
PARSERS = cast(
    dict[str, Callable[[str, Any], dict[str, str]]],
    {"django": official.parse_log_django, "sympy": official.parse_log_sympy},
)


@pytest.fixture(params=RUNNERS)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Task, Oracle]:
    files, entrypoint, failing, passing = RUNNERS[request.param]
    for name, text in {**files, "shop.py": BUGGY.decode()}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    task = Task(
        id="shop",
        source="test",
        problem_statement="",
        workspace=WorkspaceSpec(path=str(tmp_path)),
        entrypoint=entrypoint,
    )
    gold = make_patch({"shop.py": (BUGGY, CLEAN)})
    return request.param, task, Oracle(task_id="shop", gold_patch=gold, fail_to_pass=failing, pass_to_pass=passing)


def judged(case: tuple[str, Task, Oracle], after: bytes) -> tuple[Verdict, dict[str, str]]:
    """Our verdict, and what the official parser reads from the same output."""
    name, task, oracle = case
    verdict = verify(task, oracle, make_patch({"shop.py": (BUGGY, after)}), LOCAL, trusted=True)
    return verdict, PARSERS[name](verdict.run.result.output, None)


def test_a_task_is_proven(case: tuple[str, Task, Oracle]) -> None:
    assert check_task(case[1], case[2], LOCAL).problems == ()


@pytest.mark.parametrize("after", [CLEAN, BROKEN], ids=["gold", "breaks another"])
def test_the_official_parser_sees_the_same(case: tuple[str, Task, Oracle], after: bytes) -> None:
    verdict, official_map = judged(case, after)
    oracle = case[2]
    for test in (*oracle.fail_to_pass, *oracle.pass_to_pass):
        failing = test in (*verdict.failing_fail_to_pass, *verdict.failing_pass_to_pass)
        assert (official_map.get(test) == "PASSED") is not failing
    assert verdict.resolved is (after == CLEAN)


@pytest.mark.parametrize("after", [SKIPS, LEAVES], ids=["skips", "leaves"])
def test_code_under_test_cannot_leave_its_tests(case: tuple[str, Task, Oracle], after: bytes) -> None:
    assert not judged(case, after)[0].resolved


def test_a_patch_of_the_runner_is_put_back(case: tuple[str, Task, Oracle]) -> None:
    _, task, oracle = case
    script = task.entrypoint[0].removeprefix("./")
    before = (Path(str(task.workspace.path)) / script).read_bytes()
    easy = b"#!/usr/bin/env python\nprint('test_total ok')\n"
    patch = make_patch({script: (before, easy), "shop.py": (BUGGY, CLEAN)})
    assert verify(task, oracle, patch, LOCAL, trusted=True).resolved
    assert not verify(task, oracle, make_patch({script: (before, easy)}), LOCAL, trusted=True).resolved
