"""The check of a set, and how hard its bugs are to find: in real sandboxes, on bugs whose tags are known by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.bugs.packages.check import check_package, difficulty_of, rate_package
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Oracle, Task, WorkspaceSpec
from support.folder_tasks import folder_task, write_files
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

FILES = {
    "rates.py": """\
TABLE = {"a": 2, "b": 3}


def rate(name):
    return TABLE[name]


def unused(name):
    return name
""",
    "shop.py": """\
from rates import rate


def price(name, count):
    return check(rate(name) * count)


def check(value):
    if value > 20:
        raise ValueError("value is too large")
    return value
""",
    "tests/test_shop.py": """\
from shop import check, price


def test_price():
    assert price("a", 3) == 6


def test_other():
    assert price("b", 2) == 6


def test_check():
    assert check(1) == 1
""",
}


IN_CHEAPEST = HarvestConfig(sandbox=CHEAPEST)
BOTH = ("tests/test_shop.py::test_price", "tests/test_shop.py::test_other")


def bug(repo: Path, path: str, good: str, bad: str, failing: tuple[str, ...] = BOTH) -> tuple[Task, Oracle]:
    write_files(repo, FILES)
    buggy = FILES[path].replace(good, bad)
    assert buggy != FILES[path]
    workspace = WorkspaceSpec(path=str(repo), overlay={path: buggy})
    task = folder_task(repo, id=f"shop/{bad}", workspace=workspace, tags={"project": "shop"})
    gold = make_patch({path: (buggy.encode(), FILES[path].encode())})
    return task, Oracle(task_id=task.id, gold_patch=gold, fail_to_pass=failing)


def test_a_bug_that_fails_elsewhere(tmp_path: Path) -> None:
    found = difficulty_of(*bug(tmp_path, "rates.py", "TABLE[name]", "TABLE[name] * 10"), CHEAPEST)
    assert found["failing_tests"] == "2"
    assert (found["module"], found["traceback"], found["named"]) == ("other", "wrong", "no")
    # Both failing tests run `price` and `rate`; the passing one runs neither of them.
    assert (found["suspect"], found["rank"]) == ("tied", "3"), "two functions are nearer to the failure"
    assert int(found["distance"]) >= 1


def test_a_bug_that_fails_where_it_is_and_says_so(tmp_path: Path) -> None:
    found = difficulty_of(*bug(tmp_path, "rates.py", "return TABLE[name]", "return rate.table[name]"), CHEAPEST)
    assert (found["module"], found["traceback"], found["distance"]) == ("same", "right", "0")
    assert found["named"] == "no", "'function' object has no attribute 'table' does not name it"
    found = difficulty_of(*bug(tmp_path, "rates.py", "def rate(name):", "def rate(name, rest):"), CHEAPEST)
    assert (found["named"], found["module"]) == ("yes", "other"), "rate() is missing an argument, says its caller"


def test_a_change_outside_of_functions_has_no_culprit(tmp_path: Path) -> None:
    found = difficulty_of(*bug(tmp_path, "rates.py", '"a": 2', '"a": 4', BOTH[:1]), CHEAPEST)
    assert found == {"failing_tests": "1"}


def test_a_test_that_fails_only_because_it_is_followed_does_not_count(tmp_path: Path) -> None:
    pair = bug(tmp_path, "rates.py", "return TABLE[name]", "return rate.table[name]")
    watched = "import sys\n\n\ndef test_watched():\n    assert sys.gettrace() is None\n"
    (tmp_path / "tests" / "test_watched.py").write_text(watched)
    found = difficulty_of(*pair, CHEAPEST)
    assert (found["failing_tests"], found["module"], found["traceback"]) == ("2", "same", "right")


def test_a_test_that_fails_in_the_check_alone_is_left_out_of_all_tasks(tmp_path: Path) -> None:
    folder, odd = tmp_path / "set", "tests/test_odd.py::test_odd"
    pairs = [
        bug(folder / "repo", "shop.py", "value > 20", "value > 2"),
        bug(folder / "repo", "rates.py", "TABLE[name]", "TABLE[name] * 10"),
    ]
    (folder / "repo/tests/test_odd.py").write_text("def test_odd():\n    assert False\n")
    passing = ("tests/test_shop.py::test_check", odd)
    write_taskset(
        folder,
        [
            (
                task.model_copy(update={"workspace": task.workspace.model_copy(update={"path": "repo"})}),
                oracle.model_copy(update={"pass_to_pass": passing}),
            )
            for task, oracle in pairs
        ],
    )
    assert check_package(PackageHarvest("shop", IN_CHEAPEST, folder)) == (2, {})
    for task, oracle in load_tasks(str(folder)):
        assert oracle.pass_to_pass == passing[:1]
        assert task.entrypoint[-1] == f"--deselect={odd}"


def test_a_set_keeps_its_tags_and_its_journal(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    pair = bug(folder / "repo", "shop.py", "value > 20", "value > 2")
    task = pair[0].model_copy(update={"workspace": pair[0].workspace.model_copy(update={"path": "repo"})})
    write_taskset(folder, [(task, pair[1])])
    said: list[str] = []
    package = PackageHarvest("shop", IN_CHEAPEST, folder, said.append)
    rate_package(package)
    ((rated, _),) = load_tasks(str(folder), tags={"traceback": "right", "project": "shop"})
    assert (rated.tags["suspect"], rated.tags["module"], rated.tags["distance"]) == ("tied", "same", "0")
    assert said == ["1 of 1"]
    journal = (folder / "difficulty.jsonl").read_bytes()
    rate_package(package)
    assert (folder / "difficulty.jsonl").read_bytes() == journal, "nothing is measured twice"
