"""Fixes in the history of a git repository, taken back from today's code and proven by today's tests."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from gumshoe.env.bugs.candidates import Bug
from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.history import history_bugs, offered_names, unknown_names
from gumshoe.env.bugs.packages.baseline import Baseline
from gumshoe.env.bugs.packages.package import harvest_bugs
from gumshoe.env.bugs.projects import Suite
from gumshoe.env.host_git import run_git
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_task
from support.sandboxes.sandbox_backends import WARM

START = '''\
"""Prices."""


def total(prices):
    result = 0
    for price in prices:
        result += price
    return result


def discount(price, percent):
    return price - price * percent / 100


def label(price):
    return "%s EUR" % price
'''
TESTS = """\
from prices import discount, label, total


def test_total():
    assert total([1, 2]) == 3


def test_discount():
    assert discount(10, 50) == 5


def test_label():
    assert label(3) == "3 EUR"
"""


class Repository:
    """A repository with code and tests, and what is done to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tests").mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (root / "prices.py").write_text(START)
        (root / "tests/test_prices.py").write_text(TESTS)
        self.commit("start")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *who, *words], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")[:12]

    def change(self, old: str, new: str) -> None:
        text = (self.root / "prices.py").read_text()
        assert text.count(old) == 1
        (self.root / "prices.py").write_text(text.replace(old, new))

    def test(self, name: str, line: str) -> None:
        path = self.root / "tests/test_prices.py"
        path.write_text(f"{path.read_text()}\n\ndef test_{name}():\n    {line}\n")

    def bugs(self, commits: int = 50) -> list[Bug]:
        return history_bugs(self.root / ".git", {"prices.py": (self.root / "prices.py").read_text()}, commits)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "prices")


def fix(repository: Repository) -> str:
    """A guard and its test, with a later commit above it that moves its lines."""
    repository.change("    return price - ", "    if percent > 100:\n        percent = 100\n    return price - ")
    repository.test("no_negative_price", "assert discount(10, 150) == 0")
    name = repository.commit("No negative prices")
    repository.change('"""Prices."""\n', '"""Prices."""\n\nCURRENCY = "EUR"\n')
    repository.commit("Name the currency")
    return name


def test_a_fix_is_taken_back_where_its_lines_are_today(repository: Repository) -> None:
    name = fix(repository)
    (bug,) = repository.bugs()
    clean = (repository.root / "prices.py").read_text()
    assert bug.files == {"prices.py": clean.replace("    if percent > 100:\n        percent = 100\n", "")}
    assert (bug.operator, bug.places, bug.tags) == ("history", (("prices.py", "discount"),), {"commit": name})
    assert repository.bugs(commits=1) == []


def test_a_fix_that_only_removed_lines_is_found_by_the_lines_around_them(repository: Repository) -> None:
    repository.change("        result += price\n", "        result += price\n        break\n")
    repository.commit("break it")
    repository.change("        break\n", "")
    repository.test("three", "assert total([1, 2, 3]) == 6")
    repository.commit("Count them all")
    (bug,) = repository.bugs()
    assert bug.places == (("prices.py", "total"),)
    assert {7, 8} <= set(bug.lines["prices.py"])


def test_a_merge_is_one_fix(repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "side")
    repository.change('"%s EUR"', '"%.2f EUR"')
    repository.commit("Cents")
    path = repository.root / "tests/test_prices.py"
    path.write_text(path.read_text().replace('"3 EUR"', '"3.00 EUR"'))
    repository.commit("Test of cents")
    repository.git("switch", "-q", "main")
    (repository.root / "README.md").write_text("Prices\n")
    repository.commit("A readme")
    repository.git("merge", "-q", "--no-ff", "side", "-m", "Merge side")
    (bug,) = repository.bugs()
    assert bug.tags == {"commit": repository.git("rev-parse", "HEAD")[:12]}
    assert bug.places == (("prices.py", "label"),)


def test_what_is_no_fix_or_cannot_be_taken_back_is_left_out(repository: Repository) -> None:
    repository.change("result = 0", "result = 0.0")
    repository.commit("No test")
    repository.test("more", "assert total([]) == 0")
    repository.commit("Only a test")
    repository.change("def label", "def half(price):\n    return price / 2\n\n\ndef label")
    repository.test("half", "from prices import half; assert half(2) == 1")
    repository.commit("A feature")
    repository.change("def label(price):", "def label(price, digits=0):")
    repository.test("digits", "assert label(3, digits=0) == '3 EUR'")
    repository.commit("A feature of a function")
    repository.change("result += price", "result = result + price")
    repository.test("again", "assert total([2]) == 2")
    repository.commit("Overwritten later")
    repository.change("result = result + price", "result = sum([result, price])")
    repository.commit("No test either")
    assert repository.bugs() == []


def test_code_that_would_miss_a_name_is_left_out(repository: Repository) -> None:
    """What the fix no longer needs may be gone for another reason, such as an import."""
    repository.change("def total", "from math import fsum\n\n\ndef total")
    repository.change("    return result", "    return fsum([result])")
    repository.commit("no test")
    repository.change("    return fsum([result])", "    return result")
    repository.test("whole", "assert isinstance(total([1]), int)")
    repository.commit("Whole numbers stay whole")
    (bug,) = repository.bugs()
    assert "fsum([result])" in bug.files["prices.py"]
    repository.change("from math import fsum\n\n\n", "")
    repository.commit("no longer needed")
    assert repository.bugs() == []


def test_names_that_a_file_offers_and_misses() -> None:
    text = """\
import a.b as c, d.e
from f import g
SIZE = SIZE2 = _hidden = 1
class A(B):
    kind: str = "x"
    def __init__(self, n): self.n = n
    def _private(self, m): ...
    def method(self, *args, **options):
        try: return [c(i, d, g) for i in lost]
        except E as error: raise error
def _f(p): ...
"""
    tree = ast.parse(text)
    names = ["SIZE", "SIZE2", "A", "A.kind", "A.__init__", "A.method", "A.__init__(self)", "A.__init__(n)"]
    assert offered_names(tree) == {*names, "A.method(self)", "A.method(args)", "A.method(options)"}
    assert unknown_names(tree) == {"B", "lost", "E"}
    assert unknown_names(ast.parse("from a import *\nb()\n")) == set()


@pytest.mark.needs("bubblewrap")
def test_a_fix_becomes_a_proven_task_of_the_set(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    name = fix(repository)
    clone, out = tmp_path / "clone.git", tmp_path / "set"
    run_git("clone", "--bare", "--no-local", str(repository.root), str(clone))
    passing = tuple(
        f"tests/test_prices.py::test_{test}" for test in ("total", "discount", "label", "no_negative_price")
    )
    config = HarvestConfig(per_package=3, pairs=0, operators=("arithmetic",), sandbox=WARM)
    baseline = Baseline((), passing, {}, 0.5)
    counts = harvest_bugs("prices", repository.root, Suite(), baseline, config, out, clone, lambda text: None)
    assert counts["kept"] == 3
    ((task, oracle),) = load_tasks(str(out), tags={"operator": "history"})
    assert task.tags["commit"] == name
    assert name not in task.problem_statement
    assert oracle.fail_to_pass == ("tests/test_prices.py::test_no_negative_price",)
    assert check_task(task, oracle, WARM).problems == ()
    assert not any(path.name == ".git" for path in out.rglob("*"))
