"""Bugs that people repaired, found in the history of a git repository and proven by the tests of their fixes."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from gumshoe.cli import main
from gumshoe.env.bugs.config import NO_SOURCES, HarvestConfig
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.bugs.packages.environment import Built
from gumshoe.env.bugs.packages.fixes import Fix, History, symptom_of
from gumshoe.env.bugs.packages.harvest import read_report
from gumshoe.env.bugs.packages.history import MOST_FAILED_BUILDS, Environments, FailedBuilds, JudgedCommit
from gumshoe.env.diff import apply_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_task
from gumshoe.env.virtualenvs import Lock
from support.folder_tasks import git, write_files
from support.sandboxes.sandbox_backends import CHEAPEST

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
        self.root = write_files(root, {"prices.py": START, "tests/test_prices.py": TESTS})
        git(root, "init", "-q")
        self.commit("start")

    def commit(self, message: str) -> str:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", message)
        return git(self.root, "rev-parse", "HEAD")[:12]

    def change(self, old: str, new: str, path: str = "prices.py") -> None:
        text = (self.root / path).read_text()
        assert text.count(old) == 1
        (self.root / path).write_text(text.replace(old, new))

    def test(self, name: str, line: str) -> None:
        with (self.root / "tests/test_prices.py").open("a") as file:
            file.write(f"\n\ndef test_{name}():\n    {line}\n")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "prices")


def history(repository: Repository) -> History:
    return History(repository.root / ".git")


def fixes(repository: Repository, commits: int = 50) -> list[Fix]:
    return history(repository).fixes(commits, NO_SOURCES)[0]


def fix(repository: Repository) -> str:
    """A guard, its test and a note of it, with a later commit that moves its lines."""
    repository.change("    return price - ", "    if percent > 100:\n        percent = 100\n    return price - ")
    repository.test("no_negative_price", "assert discount(10, 150) == 0")
    (repository.root / "CHANGES").write_text("discount: percent is at most 100\n")
    name = repository.commit("No negative amounts (#12)\n\nA price was below zero.\ndiscount let it.\n\nFixes #11")
    repository.change('"""Prices."""\n', '"""Prices."""\n\nCURRENCY = "EUR"\n')
    repository.commit("Name the currency")
    return name


def test_a_fix_is_found_with_its_code_and_tests(repository: Repository) -> None:
    name = fix(repository)
    (found,) = fixes(repository)
    assert (found.commit[:12], found.code, found.tests) == (name, ("prices.py",), ("tests/test_prices.py",))
    files = history(repository).files(found)
    assert files.places == (("prices.py", "discount"),)
    assert files.tags == {"files": "1", "functions": "1", "change": "adds"}
    assert symptom_of(found.message, files.giveaways) == "No negative amounts\n\nA price was below zero."
    assert fixes(repository, commits=1) == []


def test_the_tree_of_a_bug_is_the_parents_with_the_tests_of_the_fix(repository: Repository, tmp_path: Path) -> None:
    (repository.root / "tests/test_old.py").write_text("")
    (repository.root / ".gitattributes").write_text("tests export-ignore\n")
    repository.commit("Leave the tests out of archives")
    (repository.root / "tests/test_old.py").unlink()
    fix(repository)
    (found,) = fixes(repository)
    tree = history(repository).write_tree(found, tmp_path / "tree")
    names = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    assert names == {".gitattributes", "prices.py", "tests/test_prices.py"}
    assert (tree / "prices.py").read_text() == START
    assert "no_negative_price" in (tree / "tests/test_prices.py").read_text()
    files = history(repository).files(found)
    repaired = apply_patch({"prices.py": START}, files.gold_patch)
    assert repaired == files.overlay
    assert "percent > 100" in str(repaired["prices.py"])


def test_a_merge_is_one_fix(repository: Repository) -> None:
    git(repository.root, "switch", "-q", "-c", "side")
    repository.change('"%s EUR"', '"%.2f EUR"')
    repository.commit("Cents")
    repository.change('"3 EUR"', '"3.00 EUR"', "tests/test_prices.py")
    repository.commit("Test of cents")
    git(repository.root, "switch", "-q", "trunk")
    write_files(repository.root, {"README.md": "Prices\n"})
    repository.commit("A readme")
    git(repository.root, "merge", "-q", "--no-ff", "side", "-m", "Merge side")
    (found,) = fixes(repository)
    assert found.commit == git(repository.root, "rev-parse", "HEAD")
    assert history(repository).files(found).places == (("prices.py", "label"),)


def test_commits_that_cannot_be_fixes_are_counted_by_their_reason(repository: Repository) -> None:
    repository.change("result = 0", "result = 0.0")
    repository.commit("No test")
    repository.test("more", "assert total([]) == 0")
    repository.commit("Only a test")
    repository.change("def label", "\n".join(f"SIZE_{number} = {number}" for number in range(201)) + "\n\n\ndef label")
    repository.test("sizes", "import prices; assert prices.SIZE_7 == 7")
    repository.commit("Many sizes")
    (repository.root / "setup.py").write_text("")
    repository.test("nothing", "pass")
    repository.commit("Not part of the code")
    found, others = history(repository).fixes(50, NO_SOURCES)
    assert found == []
    assert others == {"no tests": 1, "no code": 2, "over 200 lines": 1, "first commit": 1}


def test_several_files_and_new_ones_are_one_fix(repository: Repository) -> None:
    (repository.root / "rates.py").write_text("RATE = 2\n")
    repository.change('return "%s EUR" % price', 'import rates\n    return "%s EUR" % (price * rates.RATE)')
    repository.change("        result += price", "        result = result + price")
    repository.test("rate", "assert label(3) == '6 EUR'")
    repository.commit("Rates")
    (found,) = fixes(repository)
    files = history(repository).files(found)
    assert files.places == (("prices.py", "total"), ("prices.py", "label"))
    assert files.tags == {"files": "2", "functions": "2", "change": "changes"}
    assert files.changes["rates.py"][0] is None


def test_a_harvest_that_was_stopped_goes_on_with_the_environments_that_it_had(
    repository: Repository, tmp_path: Path
) -> None:
    fix(repository)
    (found,) = fixes(repository)
    package, rows = PackageHarvest("prices", HarvestConfig(), tmp_path), TypeAdapter(JudgedCommit)
    first, older = (Built(Lock(python, "machine", (), {}), tmp_path) for python in ("3.12", "3.9"))
    stopped, resumed = Environments(package, first), Environments(package, first)
    stopped.accept(older)
    for _ in range(MOST_FAILED_BUILDS):
        stopped.reject()
    for kept in (
        JudgedCommit("no test notices", older, failed_builds=FailedBuilds()),
        JudgedCommit("no environment", failed_builds=stopped.failed),
        JudgedCommit("no tests", failed_builds=stopped.failed),
    ):
        resumed.remember(rows.validate_json(rows.dump_json(kept)))
    assert (resumed.current, resumed.failed) == (stopped.current, stopped.failed)
    assert resumed.build(found, tmp_path) is None
    assert resumed.failed == FailedBuilds(MOST_FAILED_BUILDS, commits_since=1)


@pytest.mark.needs("bubblewrap")
def test_a_fix_becomes_a_proven_task_of_the_set(repository: Repository, tmp_path: Path) -> None:
    """Other commits stay out: one whose tests pass before it, too, and one whose tests cannot be loaded before it."""
    name = fix(repository)
    repository.change("result += price", "result = result + price")
    repository.test("again", "assert total([2]) == 2")
    repository.commit("Spelled out")
    repository.change("def label", "def half(price):\n    return price / 2\n\n\ndef label")
    repository.change("import discount,", "import half, discount,", "tests/test_prices.py")
    repository.test("half", "assert half(2) == 1")
    repository.commit("A feature")
    out = tmp_path / "set"
    options = ["-p", "per_package=0", "-p", "difficulty=false", "-p", "history=50"]
    for _ in range(2):
        assert main(["harvest", str(repository.root), "--out", str(out), *options]) == 0
        ((task, oracle),) = load_tasks(str(out))
        assert task.tags["commit"] == name
        assert task.problem_statement.startswith(
            "No negative amounts\n\nA price was below zero.\n\ntests/test_prices.py"
        )
        assert oracle.fail_to_pass == ("tests/test_prices.py::test_no_negative_price",)
        assert check_task(task, oracle, CHEAPEST).problems == ()
    assert not any(path.name in (".git", "CHANGES") for path in out.rglob("*"))
    report = read_report(out / "packages/prices")
    assert report is not None
    assert report.verified == 1
    assert report.commits == {
        "verified": 1,
        "no test notices": 1,
        "tests cannot be loaded before the fix": 1,
        "no tests": 1,
        "first commit": 1,
    }
