"""Every form of a test can be made to fail: a verdict shows that a repair fails where it must, in each runner."""

import re
from pathlib import Path
from typing import Final

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verdict, Verifier, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.env.verifier.variants import Choice
from gumshoe.records import Limits, Oracle, Task
from support.folder_tasks import PYTEST, folder_task
from support.runner_projects import RUNNERS

PACKAGES: Final = ("pytest", "anyio", "hypothesis")
CONFIG: Final = SandboxConfig(kind="bubblewrap", packages=PACKAGES, accept_unverifiable=True)
pytestmark = pytest.mark.needs("bubblewrap")

BUGGY: Final = (
    "def total(prices):\n    '''The sum.\n\n    >>> total([2, 3])\n    5\n    '''\n    return sum(prices) - 1\n\n\n"
    "def same(n):\n    return n\n"
)
CLEAN: Final = BUGGY.replace(" - 1", "")
EQUAL: Final = BUGGY.replace("return sum(prices) - 1", "return Equal()") + (
    "\n\nclass Equal(int):\n    def __eq__(self, other):\n        return True\n\n    def __repr__(self):\n"
    "        return '5'\n\n    __hash__ = int.__hash__\n"
)
"""What is returned equals everything, and looks right."""
UNIT: Final = "import unittest\n\nfrom shop import total\n\n\nclass Total(unittest.TestCase):\n"
TEST: Final = "from shop import total\n\n\n"
GENERATED: Final = (
    "import unittest\n\nfrom shop import total\n\nCASES = {}\n\n\ndef each(*values):\n    def keep(test):\n"
    "        for value in values:\n"
    "            CASES[f'{test.__name__}_{value}'] = lambda case, value=value: test(case, value)\n    return keep\n\n\n"
    "class Total(unittest.TestCase):\n    @each(1, 2)\n    def test_total(self, n):\n"
    "        self.assertEqual(total([n]), n)\n\n\n"
    "for name, case in CASES.items():\n    setattr(Total, name, case)\n"
)
PYTEST_FORMS: Final = {
    "function": (TEST + "def test_total():\n    assert total([2, 3]) == 5\n", "test_total"),
    "several lines": (
        TEST + "def test_total():\n    assert (\n        total([2, 3])\n        == 5\n    )\n",
        "test_total",
    ),
    "comparison that does not run": (
        TEST + "def test_total():\n    try:\n        assert total([2, 3]) == 5\n    except ZeroDivisionError:\n"
        "        assert total([]) == 0\n",
        "test_total",
    ),
    "class": (
        TEST + "class TestTotal:\n    def test_total(self):\n        assert total([2, 3]) == 5\n",
        "TestTotal::test_total",
    ),
    "parametrized": (
        "import pytest\n\n" + TEST + "@pytest.mark.parametrize('n', [5, 7])\ndef test_total(n):\n"
        "    assert total([2, n - 2]) == n\n",
        "test_total[7]",
    ),
    "fixture": (
        "import pytest\n\n" + TEST + "@pytest.fixture\ndef five():\n    yield 5\n\n\n"
        "def test_total(five):\n    assert total([2, 3]) == five\n",
        "test_total",
    ),
    "asynchronous": (
        "import pytest\n\n" + TEST + "@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n\n\n"
        "@pytest.mark.anyio\nasync def test_total(anyio_backend):\n    assert total([2, 3]) == 5\n",
        "test_total",
    ),
    "hypothesis": (
        "from hypothesis import given, strategies\n\n" + TEST + "@given(strategies.integers())\n"
        "def test_total(n):\n    assert total([n]) == n\n",
        "test_total",
    ),
    "subtests": (
        UNIT + "    def test_total(self):\n        for n in (5, 7):\n            with self.subTest(n=n):\n"
        "                self.assertEqual(total([2, n - 2]), n)\n",
        "Total::test_total",
    ),
    "raises": (
        "import pytest\n\n" + TEST + "def test_total():\n    with pytest.raises(ZeroDivisionError):\n"
        "        1 / (total([2, 3]) - 5)\n",
        "test_total",
    ),
    "generated": (
        TEST + "def made(n):\n    def run():\n        assert total([n]) == n\n    return run\n\n\n"
        "for n in (1, 2):\n    globals()[f'test_total_{n}'] = made(n)\n",
        "test_total_2",
    ),
    "decorated": (GENERATED, "Total::test_total_2"),
}
"""The test file of each form, and the name of its test in it."""
UNITTEST_FORMS: Final = {
    "method": UNIT + "    def test_total(self):\n        self.assertEqual(total([2, 3]), 5)\n",
    "coroutine": UNIT.replace("TestCase", "IsolatedAsyncioTestCase")
    + "    async def test_total(self):\n        self.assertEqual(total([2, 3]), 5)\n",
    "subtests": PYTEST_FORMS["subtests"][0],
    "inherited": UNIT.replace("class Total(unittest.TestCase)", "class Base") + "    def test_total(self):\n"
    "        self.assertEqual(total([2, 3]), 5)\n\n\nclass Total(Base, unittest.TestCase):\n    pass\n",
}
PROJECTS: Final[dict[str, tuple[tuple[str, ...], dict[str, str], dict[str, str]]]] = {
    "pytest": (
        (*PYTEST, "--doctest-modules", "--doctest-glob=*.rst"),
        {
            "shop.rst": "Shop\n====\n\n>>> from shop import total\n>>> total([2, 3])\n5\n",
            **{f"test_{form}.py": text for form, (text, _) in PYTEST_FORMS.items()},
        },
        {
            "doctest": "shop.py::shop.total",
            "doctest in a text": "shop.rst::shop.rst",
            **{form: f"test_{form}.py::{name}" for form, (_, name) in PYTEST_FORMS.items()},
        },
    ),
    "unittest": (
        ("python", "-m", "unittest", "-v", *(f"test_{form}" for form in UNITTEST_FORMS)),
        {f"test_{form}.py": text for form, text in UNITTEST_FORMS.items()},
        {form: f"test_{form}.Total.test_total" for form in UNITTEST_FORMS},
    ),
    "script": (
        ("python", "check.py"),
        {"check.py": TEST + "if total([2, 3]) != 5:\n    raise SystemExit(1)\n"},
        {"script": "check.py"},
    ),
    "script that exits": (
        ("python", "check.py"),
        {"check.py": "import sys\n" + TEST + "sys.exit(total([2, 3]) != 5)\n"},
        {"script": "check.py"},
    ),
    **{name: (argv, files, {"own": failing[0]}) for name, (files, argv, failing, _) in RUNNERS.items()},
}
"""The command of each project, its files, and its tests by their form."""
PLANTED: Final = {"raises", "generated", "decorated", "doctest", "doctest in a text", "script"}
"""Forms without a comparison that can ask for something else: only an assertion that is added shows anything."""


def patch_of(shop: str) -> str:
    return make_patch({"shop.py": (BUGGY.encode(), shop.encode())})


def make_task(folder: Path, files: dict[str, str], entrypoint: tuple[str, ...]) -> Task:
    """The task of a folder with the buggy shop and these files."""
    task = folder_task(
        folder, {"shop.py": BUGGY, **files}, entrypoint=entrypoint, limits=Limits(command_timeout_s=120.0)
    )
    for place in files:
        (folder / place).chmod(0o755)
    return task


@pytest.mark.parametrize("project", PROJECTS)
def test_a_repair_fails_where_it_must_and_nothing_else_is_one(project: str, tmp_path: Path) -> None:
    entrypoint, files, forms = PROJECTS[project]
    task = make_task(tmp_path, files, entrypoint)
    oracle = Oracle(task_id="shop", gold_patch=patch_of(CLEAN), fail_to_pass=tuple(forms.values()))
    checked = check_task(task, oracle, CONFIG)
    assert checked.problems == ()
    oracle = oracle.model_copy(update={"falsifiable": checked.falsifiable})

    def judged(shop: str) -> Verdict:
        return verify(task, oracle, patch_of(shop), CONFIG, trusted=False)

    repaired = judged(CLEAN)
    assert repaired.resolved, repaired.explanation
    assert repaired.unvaried == ()
    assert set(judged(BUGGY + "\n").failing) == set(forms.values())
    compared = {test for form, test in forms.items() if form not in PLANTED}
    assert sum(map(bool, (checked.falsifiable or {}).values())) == len(compared)
    assert not compared or compared <= set(judged(EQUAL).forged)


def test_the_variants_of_a_file_have_the_same_size_lines_and_age(tmp_path: Path) -> None:
    facts = "facts = os.stat(__file__)\nprint('FACTS', facts.st_size, facts.st_mtime_ns, len(list(open(__file__))))"
    text = f"import os\n\n{facts}\n\n\ndef test_two():\n    assert 1 + 1 == 2\n"
    task = folder_task(tmp_path, {"test_shop.py": text}, entrypoint=(*PYTEST, "-s"))
    test = "test_shop.py::test_two"
    oracle = Oracle(task_id="shop", gold_patch="", fail_to_pass=(test,))
    with Verifier(task, oracle, CONFIG, trusted=False) as verifier:
        made = verifier.make_variants(Choice((test,), {"test_shop.py::test_two": (0,)}))
        runs, variants, _ = verifier.run_variants("", made, (0, 1))
    seen = [re.findall("FACTS.*", run.result.output) for run in runs]
    assert seen[0] == seen[1] != []
    assert variants.contents[0]["test_shop.py"] != variants.contents[1]["test_shop.py"]
    assert [run.outcomes[0].outcome for run in runs].count("failed") == 1


def test_a_test_that_calls_others_may_fail_because_they_are_false(tmp_path: Path) -> None:
    names = ("test_one", "test_two", "test_both")
    text = TEST + "".join(f"def {name}():\n    assert total([{n}]) == {n}\n\n\n" for n, name in enumerate(names[:2], 1))
    text += "def test_both():\n    test_one()\n    test_two()\n"
    task, gold = make_task(tmp_path, {"test_shop.py": text}, PYTEST), patch_of(CLEAN)
    oracle = Oracle(task_id="shop", gold_patch=gold, fail_to_pass=tuple(f"test_shop.py::{name}" for name in names))
    for _ in range(6):  # Which of them is false where is up to chance.
        verdict = verify(task, oracle, gold, CONFIG, trusted=False)
        assert verdict.resolved, verdict.explanation
    assert not verify(task, oracle, "", CONFIG, trusted=False).resolved
