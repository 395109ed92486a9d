"""A whole harvest of a small package that behaves like real ones, in real sandboxes, with pip's real index.

Then its set in other places: in another folder on another machine, in another kind of sandbox, in `gumshoe debug`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.packages.harvest import PackageReport, read_report
from gumshoe.env.bugs.packages.machine import interpreters
from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_task
from gumshoe.env.virtualenvs import find_environment
from support.folder_tasks import write_files
from support.small_projects import DOCTESTED_CART

pytestmark = pytest.mark.needs("bubblewrap")

HAS_COMPILER = shutil.which("cc") is not None and Path(sysconfig.get_path("include"), "Python.h").exists()
# Code that setup runs: whatever it tries outside of its sandbox must not be there afterwards.
SETUP = """\
import os
from setuptools import Extension, setup
for path in ("{outside}/by-setup", os.path.expanduser("~/by-setup"), "/usr/by-setup"):
    try:
        open(path, "w").write("x")
    except OSError:
        pass
assert not os.path.exists("{outside}"), "the host can be seen"
setup(
    name="tiny-shop",
    version="2.5",
    package_dir={{"": "src"}},
    packages=["tiny_shop"],
    install_requires=["iniconfig"],
    extras_require={{"tests": ["pytest-timeout"]}},
    ext_modules=[Extension("tiny_shop._fast", ["src/tiny_shop/_fast.c"])] if {compiled} else [],
)
"""
FAST = """\
#include <Python.h>

static PyObject *one(PyObject *self, PyObject *ignored) { return PyLong_FromLong(1); }
static PyMethodDef methods[] = {{"one", one, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", "", -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""
TESTS = """\
import importlib.metadata
import os
import random
import sys
import time

import iniconfig
import pytest
from tiny_shop.cart import cheapest, total

def test_total():
    assert total([2, 4]) == 6

def test_discount():
    assert total([6], 1) == 5

def test_cheapest():
    assert cheapest([3, 1, 2]) == 1

def test_version():
    assert importlib.metadata.version("tiny-shop") == "2.5"

def test_environment():
    assert sys.prefix == "/environment"
    assert iniconfig.__file__.startswith("/environment")

def test_built():
    fast = pytest.importorskip("tiny_shop._fast")
    assert fast.__file__.startswith("/workspace")

def test_fails():
    assert False

def test_flaky():
    assert random.SystemRandom().random() < 0.5

def test_draws():
    assert cheapest([random.random(), 2]) < 1

def test_passes_but_where_bugs_are_made(request):
    assert request.config.option.basetemp is None  # set only where bugs are tried

def test_slow():
    time.sleep(3)
"""
CONFTEST = """\
import os
for path in ("{outside}/by-conftest", os.path.expanduser("~/by-conftest"), "/environment/by-conftest"):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").write("x")
    except OSError:
        pass
"""


OPTIONS = ["-p", "per_package=6", "-p", "baseline.slow_test_s=2", "-p", "baseline.min_tests=3"]
BUBBLEWRAP = SandboxConfig(kind="bubblewrap")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package must not touch."""
    return tmp_path_factory.mktemp("outside")


@pytest.fixture(scope="module")
def package(outside: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A src-layout package with doctests, metadata, an extension if it can be built, bad tests and bad manners."""
    files = {
        "pytest.ini": "[pytest]\naddopts = --doctest-modules\ntestpaths = src tests\n",
        "setup.py": SETUP.format(outside=outside, compiled=HAS_COMPILER),
        "src/tiny_shop/__init__.py": "import iniconfig\n",
        "src/tiny_shop/_fast.c": FAST,
        "src/tiny_shop/cart.py": DOCTESTED_CART,
        "tests/conftest.py": CONFTEST.format(outside=outside),
        "tests/test_cart.py": TESTS,
    }
    return write_files(tmp_path_factory.mktemp("package") / "tiny-shop", files)


@pytest.fixture(scope="module")
def second(
    package: Path, cache: Path, index: None, tmp_path_factory: pytest.TempPathFactory
) -> subprocess.CompletedProcess[str]:
    """A harvest that was killed when it began to make bugs and started again; its last argument is the set."""
    del index
    out = tmp_path_factory.mktemp("set") / "set"
    argv = [sys.executable, "-m", "gumshoe", "harvest", str(package), *OPTIONS, "--out", str(out)]
    environment = {**os.environ, "GUMSHOE_CACHE": str(cache)}
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True) as first:
        assert first.stderr is not None
        assert any(": bugs" in line for line in first.stderr)
        os.killpg(first.pid, signal.SIGKILL)
    done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def harvested(second: subprocess.CompletedProcess[str]) -> Path:
    """The set."""
    return Path(second.args[-1])


@pytest.fixture
def report(harvested: Path) -> PackageReport:
    """What became of the package."""
    found = read_report(harvested / "packages" / "tiny-shop")
    assert found is not None
    return found


def test_a_killed_harvest_goes_on_where_it_was(second: subprocess.CompletedProcess[str], report: PackageReport) -> None:
    assert "installing" not in second.stderr  # The environment was there.
    assert "run 1 of the tests" not in second.stderr  # And the baseline.
    assert "1 of 1 packages produced a set" in second.stdout
    assert report.seconds["environment"] > 1  # Built by the first run; the second only looked it up.


def test_tests_that_no_verdict_can_hang_on_are_deselected_and_listed(report: PackageReport) -> None:
    reasons = {test.partition("::")[2]: reason for test, reason in report.deselected.items()}
    unseeded = "uses random numbers without a seed"
    assert reasons.pop("test_flaky") in {"flaky", "fails", "fails without the others", unseeded}
    assert reasons == {
        "test_fails": "fails",
        "test_slow": "slow (baseline.slow_test_s)",
        "test_passes_but_where_bugs_are_made": "flaky",  # noticed while bugs are made
        "test_draws": unseeded,
    }
    assert report.tests >= 6


def test_the_set_passes_its_check_and_doctests_may_name_the_module_to_repair(harvested: Path) -> None:
    pairs = load_tasks(str(harvested))
    assert len(pairs) >= 4
    assert all({"failing_tests", "traceback", "suspect"} <= set(task.tags) for task, _ in pairs)
    doctests = [pair for pair in pairs if any("::tiny_shop.cart." in test for test in pair[1].fail_to_pass)]
    assert doctests
    for task, oracle in [*doctests[:1], pairs[0]]:
        assert check_task(task, oracle, BUBBLEWRAP).problems == ()


@pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler, or not Python's header files")
def test_an_extension_is_part_of_the_tasks_and_is_imported_from_the_workspace(harvested: Path) -> None:
    assert list((harvested / "packages/tiny-shop/projects/tiny-shop/src/tiny_shop").glob("_fast*.so"))
    assert all("tests/test_cart.py::test_built" in oracle.pass_to_pass for _, oracle in load_tasks(str(harvested)))


def test_a_hostile_package_stays_in_its_sandboxes(package: Path, outside: Path, report: PackageReport) -> None:
    assert list(outside.iterdir()) == []
    assert not (Path.home() / "by-setup").exists()
    assert not Path("/usr/by-setup").exists()
    assert not (find_environment(report.environment).root / "by-conftest").exists()
    assert sorted(path.name for path in package.iterdir()) == ["pytest.ini", "setup.py", "src", "tests"]


def test_a_set_that_was_copied_to_another_machine_passes_its_check(
    harvested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copytree(harvested, tmp_path / "moved"))
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    assert main(["tasks", "check", str(moved), "--sandbox", "bubblewrap"]) == 2
    assert "is not on this machine: gumshoe harvest --rebuild" in capsys.readouterr().err
    assert main(["harvest", "--rebuild", str(moved)]) == 0
    (root,) = (tmp_path / "cache" / "environments").glob("*/root")
    assert list(root.glob("lib/*/site-packages/pytest/__pycache__/*.pyc"))  # Its runs compile nothing again.
    assert list(root.rglob("__pycache__/*-pytest-*.pyc"))  # Nor do they rewrite the plugins of pytest.
    ((task, oracle),) = load_tasks(str(moved), limit=1)
    assert check_task(task, oracle, BUBBLEWRAP).problems == ()


@pytest.mark.needs("docker")
@pytest.mark.skipif(interpreters()[0].version[:2] != (3, 11), reason="the image's Python is 3.11")
def test_a_set_made_in_docker_passes_its_check_in_bubblewrap_and_the_other_way_round(
    harvested: Path, package: Path, tmp_path: Path
) -> None:
    docker = SandboxConfig(kind="docker")
    options = [*OPTIONS, "-p", "per_package=1", "-p", "difficulty=false", "-p", "sandbox.kind=docker"]
    assert main(["harvest", str(package), "--out", str(tmp_path / "set"), *options]) == 0
    for made, sandbox in ((tmp_path / "set", BUBBLEWRAP), (harvested, docker)):
        ((task, oracle),) = load_tasks(str(made), limit=1)
        assert check_task(task, oracle, sandbox).problems == ()


def test_debug_runs_the_tests_in_the_environment_of_a_set(
    harvested: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong = "result = result + price", "result = price"
    line = DOCTESTED_CART[: DOCTESTED_CART.index(right)].count("\n") + 1
    change = {"path": "src/tiny_shop/cart.py", "start": line, "code": f"        {right}"}
    calls = [{"id": "0", "name": "rewrite", "arguments": change}, {"id": "1", "name": "submit", "arguments": {}}]
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps({"text": "", "tool_calls": [call]}) + "\n" for call in calls))
    made = harvested / "packages" / "tiny-shop"
    options = ["--environment", str(harvested), "-p", "sandbox.kind=bubblewrap"]
    options += ["-p", "policy.kind=scripted", "-p", f"policy.script={script}"]
    project = Path(shutil.copytree(made / "projects" / "tiny-shop", tmp_path / "tiny-shop"))
    # What harvest left out runs in debug, too.
    tests = TESTS.replace("assert False", "assert True").replace("random() < 0.5", "random() < 1")
    (project / "tests/test_cart.py").write_text(tests)
    assert main(["debug", str(project), *options]) == 0
    assert "the tests already pass" in capsys.readouterr().err
    (project / "src/tiny_shop/cart.py").write_text(DOCTESTED_CART.replace(right, wrong))
    assert main(["debug", str(project), *options]) == 0
    shown = capsys.readouterr()
    assert "the tests pass after 2 steps" in shown.err
    assert f"+        {right}" in shown.out
