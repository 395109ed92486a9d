"""The check of a set, and how hard its bugs are to find: in real sandboxes, on bugs whose tags are known by hand."""

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
FINE = "tests/test_shop.py::test_check"
BOTH = ("tests/test_shop.py::test_price", "tests/test_shop.py::test_other")


def bug(
    repo: Path, path: str, good: str, bad: str, failing: tuple[str, ...] = BOTH, passing: tuple[str, ...] = ()
) -> tuple[Task, Oracle]:
    buggy = FILES[path].replace(good, bad)
    assert buggy != FILES[path]
    workspace = WorkspaceSpec(path=str(write_files(repo, FILES)), overlay={path: buggy})
    task = folder_task(repo, id=f"shop/{bad}", workspace=workspace, tags={"project": "shop"})
    gold = make_patch({path: (buggy.encode(), FILES[path].encode())})
    return task, Oracle(task_id=task.id, gold_patch=gold, fail_to_pass=failing, pass_to_pass=passing)


@pytest.mark.parametrize(
    ("good", "bad", "expected"),
    [
        # Of all functions that failing tests alone run, two are nearer to the failure.
        ("TABLE[name]", "TABLE[name] * 10", "module=other traceback=wrong named=no suspect=tied rank=3"),
        # "'function' object has no attribute 'table'" does not name the function.
        ("TABLE[name]", "rate.table[name]", "module=same traceback=right named=no distance=0"),
        # "rate() missing 1 required positional argument", says its caller.
        ("def rate(name):", "def rate(name, rest):", "module=other named=yes"),
    ],
)
def test_the_tags_tell_where_and_how_a_bug_fails(good: str, bad: str, expected: str, tmp_path: Path) -> None:
    found = difficulty_of(*bug(tmp_path, "rates.py", good, bad), CHEAPEST)
    assert {*expected.split(), "failing_tests=2"} <= {f"{name}={value}" for name, value in found.items()}


def test_a_change_outside_of_functions_has_no_culprit(tmp_path: Path) -> None:
    found = difficulty_of(*bug(tmp_path, "rates.py", '"a": 2', '"a": 4', BOTH[:1]), CHEAPEST)
    assert found == {"failing_tests": "1"}


def test_a_test_that_fails_only_because_it_is_followed_does_not_count(tmp_path: Path) -> None:
    pair = bug(tmp_path, "rates.py", "return TABLE[name]", "return rate.table[name]")
    watched = "import sys\n\n\ndef test_watched():\n    assert sys.gettrace() is None\n"
    (tmp_path / "tests" / "test_watched.py").write_text(watched)
    found = difficulty_of(*pair, CHEAPEST)
    assert (found["failing_tests"], found["module"], found["traceback"]) == ("2", "same", "right")


def write_bugs(folder: Path, *pairs: tuple[Task, Oracle]) -> PackageHarvest:
    """Writes a set of bugs of the project in its folder `repo`."""
    placed = [task.workspace.model_copy(update={"path": "repo"}) for task, _ in pairs]
    write_taskset(
        folder,
        [
            (task.model_copy(update={"workspace": workspace}), oracle)
            for workspace, (task, oracle) in zip(placed, pairs, strict=True)
        ],
    )
    return PackageHarvest("shop", HarvestConfig(sandbox=CHEAPEST), folder)


def test_a_test_that_fails_in_the_check_alone_is_left_out_of_all_tasks(tmp_path: Path) -> None:
    repo, odd = tmp_path / "repo", "tests/test_odd.py::test_odd"
    package = write_bugs(
        tmp_path,
        bug(repo, "shop.py", "value > 20", "value > 2", passing=(FINE, odd)),
        bug(repo, "rates.py", "TABLE[name]", "TABLE[name] * 10", passing=(FINE, odd)),
    )
    write_files(repo, {"tests/test_odd.py": "def test_odd():\n    assert False\n"})
    assert check_package(package) == (2, {})
    for task, oracle in load_tasks(str(tmp_path)):
        assert oracle.pass_to_pass == (FINE,)
        assert task.entrypoint[-1] == f"--deselect={odd}"


def test_a_set_keeps_its_tags_and_its_journal(tmp_path: Path) -> None:
    package = write_bugs(tmp_path, bug(tmp_path / "repo", "shop.py", "value > 20", "value > 2"))
    rate_package(package)
    ((rated, _),) = load_tasks(str(tmp_path), tags={"traceback": "right", "project": "shop"})
    assert (rated.tags["suspect"], rated.tags["module"], rated.tags["distance"]) == ("tied", "same", "0")
    journal = (tmp_path / "difficulty.jsonl").read_bytes()
    rate_package(package)
    assert (tmp_path / "difficulty.jsonl").read_bytes() == journal, "nothing is measured twice"
