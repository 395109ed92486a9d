"""Every form of a test can be made to fail: a verdict shows that a repair fails where it must, in each runner."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verdict, Verifier, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from support.runner_projects import RUNNERS

CONFIG: Final = SandboxConfig(kind="bubblewrap", pool=1, accept_unverifiable=True)
PACKAGES: Final = {"asynchronous": ("pytest", "anyio"), "hypothesis": ("pytest", "hypothesis")}
"""What a form needs beside the runners."""
pytestmark = pytest.mark.needs("bubblewrap")

BUGGY: Final = """\
def total(prices):
    '''The sum.

    >>> total([2, 3])
    5
    '''
    return sum(prices) - 1


def same(n):
    return n
"""
CLEAN: Final = BUGGY.replace(" - 1", "")
EQUAL: Final = BUGGY.replace("return sum(prices) - 1", "return Equal()") + (
    "\n\nclass Equal(int):\n    def __eq__(self, other):\n        return True\n\n    def __repr__(self):\n"
    "        return '5'\n\n    __hash__ = int.__hash__\n"
)
"""What is returned equals everything, and looks right."""
PYTEST: Final = ("python", "-m", "pytest", "-q")
UNIT: Final = "import unittest\n\nfrom shop import total\n\n\nclass Total(unittest.TestCase):\n"
TEST: Final = "from shop import total\n\n\n"
MADE: Final = """\
import unittest

from shop import total

CASES = {}


def each(*values):
    def keep(test):
        for value in values:
            CASES[f"{test.__name__}_{value}"] = lambda case, value=value: test(case, value)

    return keep


class Total(unittest.TestCase):
    @each(1, 2)
    def test_total(self, n):
        self.assertEqual(total([n]), n)


for name, case in CASES.items():
    setattr(Total, name, case)
"""
FORMS: Final[dict[str, tuple[tuple[str, ...], str, str, str]]] = {
    "function": (PYTEST, "test_shop.py", TEST + "def test_total():\n    assert total([2, 3]) == 5\n", "::test_total"),
    "class": (
        PYTEST,
        "test_shop.py",
        TEST + "class TestTotal:\n    def test_total(self):\n        assert total([2, 3]) == 5\n",
        "::TestTotal::test_total",
    ),
    "parametrized": (
        PYTEST,
        "test_shop.py",
        "import pytest\n\n" + TEST + "@pytest.mark.parametrize('n', [5, 7])\ndef test_total(n):\n"
        "    assert total([2, n - 2]) == n\n",
        "::test_total[7]",
    ),
    "fixture": (
        PYTEST,
        "test_shop.py",
        "import pytest\n\n" + TEST + "@pytest.fixture\ndef five():\n    yield 5\n\n\n"
        "def test_total(five):\n    assert total([2, 3]) == five\n",
        "::test_total",
    ),
    "asynchronous": (
        PYTEST,
        "test_shop.py",
        "import pytest\n\n" + TEST + "@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n\n\n"
        "@pytest.mark.anyio\nasync def test_total(anyio_backend):\n    assert total([2, 3]) == 5\n",
        "::test_total",
    ),
    "hypothesis": (
        PYTEST,
        "test_shop.py",
        "from hypothesis import given, strategies\n\n" + TEST + "@given(strategies.integers())\n"
        "def test_total(n):\n    assert total([n]) == n\n",
        "::test_total",
    ),
    "subtests": (
        PYTEST,
        "test_shop.py",
        UNIT + "    def test_total(self):\n        for n in (5, 7):\n            with self.subTest(n=n):\n"
        "                self.assertEqual(total([2, n - 2]), n)\n",
        "::Total::test_total",
    ),
    "raises": (
        PYTEST,
        "test_shop.py",
        "import pytest\n\n" + TEST + "def test_total():\n    with pytest.raises(ZeroDivisionError):\n"
        "        1 / (total([2, 3]) - 5)\n",
        "::test_total",
    ),
    "made at run time": (
        PYTEST,
        "test_shop.py",
        TEST + "def made(n):\n    def run():\n        assert total([n]) == n\n    return run\n\n\n"
        "for n in (1, 2):\n    globals()[f'test_total_{n}'] = made(n)\n",
        "::test_total_2",
    ),
    "made from a decorated one": (
        PYTEST,
        "test_shop.py",
        MADE,
        "::Total::test_total_2",
    ),
    "doctest": ((*PYTEST, "--doctest-modules", "shop.py"), "test_other.py", "", "shop.py::shop.total"),
    "doctest in a text": (
        (*PYTEST, "shop.rst"),
        "shop.rst",
        "Shop\n====\n\n>>> from shop import total\n>>> total([2, 3])\n5\n",
        "::shop.rst",
    ),
    "unittest": (
        ("python", "-m", "unittest", "-v", "test_shop"),
        "test_shop.py",
        UNIT + "    def test_total(self):\n        self.assertEqual(total([2, 3]), 5)\n",
        "test_shop.Total.test_total",
    ),
    "asynchronous unittest": (
        ("python", "-m", "unittest", "-v", "test_shop"),
        "test_shop.py",
        UNIT.replace("TestCase", "IsolatedAsyncioTestCase")
        + "    async def test_total(self):\n        self.assertEqual(total([2, 3]), 5)\n",
        "test_shop.Total.test_total",
    ),
    "subtests of unittest": (
        ("python", "-m", "unittest", "-v", "test_shop"),
        "test_shop.py",
        UNIT + "    def test_total(self):\n        for n in (5, 7):\n            with self.subTest(n=n):\n"
        "                self.assertEqual(total([2, n - 2]), n)\n",
        "test_shop.Total.test_total",
    ),
    "inherited": (
        ("python", "-m", "unittest", "-v", "test_shop"),
        "test_shop.py",
        UNIT.replace("class Total(unittest.TestCase)", "class Base") + "    def test_total(self):\n"
        "        self.assertEqual(total([2, 3]), 5)\n\n\nclass Total(Base, unittest.TestCase):\n    pass\n",
        "test_shop.Total.test_total",
    ),
    "script": (
        ("python", "check.py"),
        "check.py",
        TEST + "if total([2, 3]) != 5:\n    raise SystemExit(1)\n",
        "check.py",
    ),
    "script that exits": (
        ("python", "check.py"),
        "check.py",
        "import sys\n" + TEST + "sys.exit(total([2, 3]) != 5)\n",
        "check.py",
    ),
    "Django's runner": (RUNNERS["django"][1], "", "", RUNNERS["django"][2][0]),
    "sympy's runner": (RUNNERS["sympy"][1], "", "", RUNNERS["sympy"][2][0]),
}
PLANTED: Final = {
    "raises",
    "made at run time",
    "made from a decorated one",
    "doctest",
    "doctest in a text",
    "script",
    "script that exits",
}
"""Forms without a comparison that can ask for something else: only an assertion that is added shows anything."""


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Task, Oracle]:
    """The task, and what `gumshoe tasks check` proves of it."""
    entrypoint, path, text, name = FORMS[request.param]
    files = {
        "shop.py": BUGGY,
        "test_same.py": "def test_same():\n    assert 2 == 2\n",
        **({path: text} if path else {}),
    }
    for key, runner in RUNNERS.items():
        if request.param.startswith(key.capitalize()) or request.param.startswith(key):
            files |= runner[0]
    for place, source in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(source)
        (tmp_path / place).chmod(0o755)
    task = Task(
        id="shop",
        source="test",
        problem_statement="",
        workspace=WorkspaceSpec(path=str(tmp_path)),
        entrypoint=entrypoint,
        limits=Limits(command_timeout_s=120.0),
    )
    test = f"{path}{name}" if name.startswith("::") else name
    oracle = Oracle(task_id="shop", gold_patch=patch_of(CLEAN), fail_to_pass=(test,))
    checked = check_task(task, oracle, config_of(request.param))
    assert checked.problems == ()
    return request.param, task, oracle.model_copy(update={"falsifiable": checked.falsifiable})


def config_of(form: str) -> SandboxConfig:
    return CONFIG.model_copy(update={"packages": PACKAGES.get(form, CONFIG.packages)})


def patch_of(shop: str) -> str:
    return make_patch({"shop.py": (BUGGY.encode(), shop.encode())})


def judged(form: tuple[str, Task, Oracle], shop: str) -> Verdict:
    return verify(form[1], form[2], patch_of(shop), config_of(form[0]), trusted=False)


def test_a_repair_fails_where_it_must_and_nothing_else_is_one(form: tuple[str, Task, Oracle]) -> None:
    verdict = judged(form, CLEAN)
    assert verdict.resolved, verdict.explanation
    assert verdict.unvaried == ()
    assert not judged(form, BUGGY + "\n").resolved
    has_comparison = any((form[2].falsifiable or {}).values())
    assert has_comparison is (form[0] not in PLANTED)
    if has_comparison:
        assert not judged(form, EQUAL).resolved


def test_the_variants_of_a_file_have_the_same_size_lines_and_age(tmp_path: Path) -> None:
    facts = (
        "facts = os.stat(__file__)\nprint('FACTS', facts.st_size, facts.st_mtime_ns, len(open(__file__).readlines()))"
    )
    (tmp_path / "test_shop.py").write_text(f"import os\n\n{facts}\n\n\ndef test_two():\n    assert 1 + 1 == 2\n")
    task = Task(
        id="shop",
        source="test",
        problem_statement="",
        workspace=WorkspaceSpec(path=str(tmp_path)),
        entrypoint=(*PYTEST, "-s"),
    )
    test = "test_shop.py::test_two"
    oracle = Oracle(task_id="shop", gold_patch="", fail_to_pass=(test,))
    with Verifier(task, oracle, CONFIG, trusted=False) as verifier:
        made = verifier.make_variants((test,), {"test_shop.py::test_two": (0,)})
        runs, variants = verifier.run_variants("", made, (0, 1))
    seen = [re.findall("FACTS.*", run.result.output) for run in runs]
    assert seen[0] == seen[1] != []
    assert variants.files(0)["test_shop.py"] != variants.files(1)["test_shop.py"]
    assert [run.outcomes[0].outcome for run in runs].count("failed") == 1
