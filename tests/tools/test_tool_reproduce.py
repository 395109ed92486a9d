"""`reproduce`: a test from the issue, which the other tools then run, and which no patch holds."""

from pathlib import Path

import pytest

from gumshoe.tools.runs.reproductions import plan_reproduction
from support.folder_tasks import write_files
from support.tools.tool_bench import Bench, Open, report

PASSING = "from cart import collect\n\n\ndef test_collect():\n    assert collect() == [0, 1]\n"
ISSUE = """\
from cart import Cart


def cart_of(*items):
    cart = Cart()
    cart.items.extend(items)
    return cart


def test_nothing_costs_nothing():
    assert cart_of(3, None).total() == 6


def test_something():
    assert cart_of(3).total() == 6
"""
ONE_FAILS = {"failed": 1, "passed": 1}
TOOLS = ("reproduce", "eval", "suspects", "trace", "whatif", "pdb", "rewrite", "view", "report", "bash", "submit")


@pytest.fixture
def reproducing(project: Path, open_bench: Open) -> Open:
    """Opens sandboxes on the project without its failing test."""
    (project / "test_cart.py").write_text(PASSING)
    return lambda kind=None, **task: open_bench(kind, tools=TOOLS, **{"regime": "issue", **task})


@pytest.fixture
def reproduced(reproducing: Open) -> Bench:
    """The project with the issue reproduced."""
    bench = reproducing()
    assert bench.data("reproduce", code=ISSUE)["counts"] == ONE_FAILS
    return bench


def test_every_tool_runs_what_was_reproduced(reproducing: Open, backend: str) -> None:
    bench = reproducing(backend)
    assert bench.data("eval")["passed"]
    found = bench.call("reproduce", code=ISSUE)
    assert found.text.startswith("reproduced: 1 of 2 tests fails")
    assert "TypeError" in found.text
    assert (found.data["status"], found.data["counts"]) == ("reproduced", ONE_FAILS)
    assert bench.data("eval")["counts"] == ONE_FAILS
    assert bench.data("suspects")["suspects"][0]["function"] == "Cart.price"
    traced = bench.data("trace", function="Cart.price")
    assert (traced["failing_calls"], traced["passing_calls"]) == (2, 1)
    changed = [{"path": "cart.py", "line": 11, "do": "replace value = (item or 0) * 2"}]
    assert "1 test now passes" in bench.text("whatif", variants=changed)
    assert "3" in bench.text("pdb", command="b cart.py:11\nc\np item")
    assert "test_reproduction.py" in bench.text("pdb", command="b test_reproduction.py:11\nrestart\nc\nw")
    bench.call("rewrite", path="cart.py", start=11, code="        value = (item or 0) * 2")
    assert bench.data("eval")["passed"]
    assert bench.text("submit") == "submitted; your test passes"
    assert "test_reproduction" not in bench.env.patch()
    assert "+        value = (item or 0) * 2" in bench.env.patch()


def test_it_says_what_happened(reproducing: Open) -> None:
    bench = reproducing()
    for code, status, said in (
        ("def test_it():\n    assert True\n", "passes", "not reproduced: the test passes"),
        ("import no_such_module\n\n\ndef test_it():\n    pass\n", "error", "No module named 'no_such_module'"),
        ("def test_it():\n    cart()\n", "error", "NameError"),
        ("def test_it(no_such_fixture):\n    pass\n", "error", "no_such_fixture"),
        ("print('hello')\n", "no_test", "Tests are functions whose names begin with test_"),
        ("raise ValueError('at once')\n", "reproduced", "at once"),
    ):
        found = bench.call("reproduce", code=code)
        assert found.data["status"] == status, found.text
        assert said in found.text


def test_what_cannot_be_run_is_refused_and_changes_nothing(reproduced: Bench) -> None:
    for code, kind in (
        ("  \n", "bad_arguments"),
        ("def test_it():\n    pass pass\n", "syntax_error"),
        ("x = 1\n" * 10_000, "too_long"),
        ("x = 1\x00", "syntax_error"),
    ):
        assert reproduced.failure("reproduce", code=code) == kind
    assert reproduced.data("eval")["counts"] == ONE_FAILS


def test_findings_from_it_are_checked_and_a_second_one_replaces_the_first(reproduced: Bench) -> None:
    assert "item = None" in reproduced.text("pdb", command="b cart.py:11, item is None\nc\np item")
    assert report(reproduced, "TypeError", "item = None").text == "reported 1 location, 2 findings: 2 confirmed"
    reproduced.call("reproduce", code="def test_other():\n    assert 1 == 2\n")
    assert reproduced.data("eval")["outcomes"][0]["id"] == "test_reproduction.py::test_other"
    assert "test_other" in reproduced.text("pdb", command="c")


def test_a_name_that_is_taken_is_left_alone(reproducing: Open, project: Path) -> None:
    (project / "test_reproduction.py").write_text(PASSING)
    bench = reproducing()
    assert bench.data("reproduce", code=ISSUE)["path"] == "test_reproduction_2.py"
    assert bench.workspace.read_text("test_reproduction.py") == PASSING
    assert bench.env.patch() == ""


def test_only_its_name_gets_a_number(reproducing: Open, project: Path) -> None:
    write_files(project, {f"tests_2/test_reproduction{end}/tests.py": "" for end in ("", "_2")})
    bench = reproducing(entrypoint=("python", "tests_2/runtests.py"))
    assert plan_reproduction(bench.workspace).path == "tests_2/test_reproduction_3/tests.py"


def test_patterns_that_hide_or_protect_tests_do_not_hold_for_it(reproducing: Open) -> None:
    bench = reproducing(readonly=("test_*",), ignore=("test_r*",))
    assert bench.data("reproduce", code=ISSUE)["status"] == "reproduced"
    assert bench.data("eval")["counts"] == ONE_FAILS
    assert "def cart_of" in bench.text("view", path="test_reproduction.py")
    assert bench.failure("rewrite", path="test_cart.py", code="x = 1") is not None
    assert bench.failure("rewrite", path="test_reproduction.py", code=PASSING) is None
    assert bench.data("eval")["passed"]
    assert bench.env.patch() == ""


def test_it_lies_where_the_fixtures_of_the_project_hold(reproducing: Open, project: Path) -> None:
    fixtures = "import pytest\n\n\n@pytest.fixture\ndef three():\n    return 3\n"
    write_files(project, {"tests/conftest.py": fixtures})
    (project / "test_cart.py").rename(project / "tests/test_cart.py")
    bench = reproducing(readonly=("tests/",))
    code = "from cart import Cart\n\n\ndef test_it(three):\n    assert Cart.price(three) == 5\n"
    assert bench.data("reproduce", code=code)["path"] == "tests/test_reproduction.py"
    assert "three = 3" in bench.text("pdb", command="b tests/test_reproduction.py:5\nc\np three")
    assert bench.data("eval")["counts"] == {"failed": 1}
    assert bench.text("pdb", command="p three") == "three = 3"
    assert bench.env.patch() == ""


def test_snapshots_hold_it(reproducing: Open) -> None:
    bench = reproducing()
    before = bench.env.snapshot()
    bench.call("reproduce", code=ISSUE)
    bench.call("pdb", command="b cart.py:11\nc")
    during = bench.env.snapshot()
    bench.call("reproduce", code=PASSING)
    bench.env.restore(during)
    assert bench.data("eval")["counts"] == ONE_FAILS
    assert "item = 3" in bench.text("pdb", command="p item")
    bench.env.restore(before)
    assert bench.data("eval")["outcomes"][0]["id"] == "test_cart.py::test_collect"
    assert bench.text("submit") == "submitted"
    bench.env.restore(during)
    assert bench.data("eval")["counts"] == ONE_FAILS


def test_submit_sends_back_once_what_does_not_pass(reproduced: Bench) -> None:
    assert "error: your test does not pass yet: 1 failed, 1 passed" in reproduced.text("submit")
    assert reproduced.text("submit") == "submitted; your test does not pass"


HOSTILE = """\
import os, pathlib, subprocess, sys


def test_everything():
    for place in ("/etc/gumshoe", "/gumshoe", "../gumshoe", os.path.expanduser("~/gumshoe")):
        try:
            pathlib.Path(place).write_text("x")
        except OSError:
            pass
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    while True:
        pass
"""


@pytest.mark.needs("bubblewrap")
def test_a_hostile_one_is_bounded(reproducing: Open, project: Path) -> None:
    bench = reproducing("bubblewrap", timeout=3.0)
    assert bench.data("reproduce", code=HOSTILE)["status"] == "timed_out"
    assert not (project.parent / "gumshoe").exists()
    assert not Path("/etc/gumshoe").exists()
    assert bench.env.patch() == ""
    assert bench.data("reproduce", code=ISSUE)["status"] == "reproduced"


@pytest.mark.parametrize("entrypoint", [("python", "-m", "unittest", "-v", "test_cart"), ("bin/test", "-C")])
def test_pytest_runs_it_whatever_runs_the_project_s_tests(reproducing: Open, entrypoint: tuple[str, ...]) -> None:
    bench = reproducing(entrypoint=entrypoint)
    assert bench.data("reproduce", code=ISSUE)["status"] == "reproduced"
    assert bench.data("suspects")["failed"] == 1


def test_options_of_pytest_are_kept_and_choices_are_not(reproducing: Open) -> None:
    own = ("python", "-X", "dev", "-m", "pytest", "-x", "-p", "no:cacheprovider", "-k", "collect", "-q", "test_cart.py")
    bench = reproducing(entrypoint=(*own, "--deselect=a", "--rootdir=."))
    assert bench.data("reproduce", code=ISSUE)["counts"] == {"failed": 1, "passed": 1}
    kept = ("-p", "no:cacheprovider", "-q", "--rootdir=.", "test_reproduction.py")
    assert bench.workspace.entrypoint == ("python", "-X", "dev", "-m", "pytest", *kept)


def test_without_pytest_unittest_runs_functions_too(reproducing: Open) -> None:
    bench = reproducing(entrypoint=("python", "-S", "-m", "unittest", "-v", "test_cart"))
    assert bench.data("reproduce", code=ISSUE)["counts"] == {"error": 1, "passed": 1}
    assert bench.workspace.entrypoint == ("python", "-S", "-m", "unittest", "-v", "test_reproduction")
    traced = bench.data("trace", function="Cart.price")
    assert (traced["failing_calls"], traced["passing_calls"]) == (2, 1)
    assert "item = None" in bench.text("pdb", command="b cart.py:11, item is None\nc\np item")
    codes = ("def test_it():\n    cart()\n", "import no_such_module\n", "x = 1\n")
    assert [bench.data("reproduce", code=code)["status"] for code in codes] == ["error", "error", "no_test"]
