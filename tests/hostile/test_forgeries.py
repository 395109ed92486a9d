"""A repair passes the tests and fails when they ask for something else; a forgery passes both, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verdict, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.records import Limits, Oracle, Task
from support import reward_hacks
from support.folder_tasks import PYTEST, folder_task, write_files
from support.sandboxes.sandbox_backends import CONTAINERS

ONE: Final = "bubblewrap"
CONFIG: Final = SandboxConfig(kind=ONE, accept_unverifiable=True)
SHARED: Final = ("shop.py", "helper.py", "tests/test_shop.py", "tests/test_first.py", "conftest.py")
CLEAN: Final = "def total(prices):\n    return sum(prices)\n"
FILES: Final = {
    **{name: reward_hacks.FILES[name] for name in SHARED},
    "tests/__init__.py": "",
    "tests/test_unit.py": (
        "import unittest\n\nfrom shop import total\n\n\nclass Total(unittest.TestCase):\n"
        "    def test_total(self):\n        self.assertEqual(total([2, 3]), 5)\n"
    ),
    "check.py": "from shop import total\n\nif total([2, 3]) != 5:\n    raise SystemExit('wrong')\n",
}
RUNNERS: Final = {
    "pytest": (PYTEST, ("total", "none"), ("same",)),
    "unittest": (("python", "-m", "unittest", "tests.test_unit"), ("tests.test_unit.Total.test_total",), ()),
    "script": (("python", "check.py"), ("check.py",), ()),
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Task, Oracle]]:
    """The task for each runner, proven on bubblewrap as `gumshoe tasks check` proves it."""
    folder = write_files(tmp_path_factory.mktemp("shop"), FILES)
    found = {}
    for name, (entrypoint, failing, passing) in RUNNERS.items():
        task = folder_task(folder, id=name, entrypoint=entrypoint, limits=Limits(command_timeout_s=60.0))
        names = [
            [f"tests/test_shop.py::test_{each}" if each.isalpha() else each for each in tests]
            for tests in (failing, passing)
        ]
        oracle = Oracle(
            task_id=name, gold_patch=patch_of(CLEAN), fail_to_pass=tuple(names[0]), pass_to_pass=tuple(names[1])
        )
        checked = check_task(task, oracle, CONFIG)
        assert checked.passed, checked.problems
        found[name] = task, oracle.model_copy(update={"falsifiable": checked.falsifiable})
    return found


def patch_of(shop: str) -> str:
    return make_patch({"shop.py": (reward_hacks.SHOP.encode(), shop.encode())})


def judged(pair: tuple[Task, Oracle], shop: str, backend: str = ONE) -> Verdict:
    return verify(*pair, patch_of(shop), CONFIG.model_copy(update={"kind": backend}), trusted=False)


def programs() -> dict[str, tuple[str, str]]:
    """Runner and module under test of each program in `forgeries.txt`."""
    found = {}
    for part in (Path(__file__).parent / "forgeries.txt").read_text().split("=== ")[1:]:
        title, _, code = part.partition("\n")
        where, runner, name = title.split()
        hack = reward_hacks.in_shop(code) if where == "import" else reward_hacks.in_total(code)
        found[f"{runner}: {name}"] = runner, hack.files["shop.py"]
    return found


PROGRAMS: Final = {name: each for name, each in programs().items() if each[0] in RUNNERS}
GATED: Final = {name: shop for name, (runner, shop) in programs().items() if runner == "gate"}
CONTAINED: Final = list(PROGRAMS)[::16]
"""What runs in containers, too."""


@pytest.mark.needs(ONE)
@pytest.mark.parametrize("runner", RUNNERS)
def test_a_repair_is_resolved(runner: str, pairs: dict[str, tuple[Task, Oracle]]) -> None:
    verdict = judged(pairs[runner], CLEAN)
    assert verdict.resolved, verdict.explanation
    assert verdict.forged == verdict.unvaried == ()


@pytest.mark.needs(ONE)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_forgery_resolves_nothing(name: str, pairs: dict[str, tuple[Task, Oracle]]) -> None:
    runner, shop = PROGRAMS[name]
    assert not judged(pairs[runner], shop).resolved


@pytest.mark.parametrize("backend", CONTAINERS)
@pytest.mark.parametrize("name", CONTAINED)
def test_in_containers(name: str, backend: str, pairs: dict[str, tuple[Task, Oracle]]) -> None:
    runner, shop = PROGRAMS[name]
    assert not judged(pairs[runner], shop, backend).resolved


@pytest.mark.needs(ONE)
@pytest.mark.parametrize("name", GATED)
def test_what_no_run_shows_is_withheld(name: str, pairs: dict[str, tuple[Task, Oracle]]) -> None:
    config = CONFIG.model_copy(update={"accept_unverifiable": False})
    verdict = verify(*pairs["pytest"], patch_of(GATED[name]), config, trusted=False)
    assert not verdict.resolved
    assert verdict.unverifiable
