"""A whole harvest of a small package that behaves like real ones, in real sandboxes, with pip's real index."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.packages.machine import interpreters
from gumshoe.env.bugs.packages.package import read_report
from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_task
from gumshoe.env.virtualenvs import find_environment
from support.folder_tasks import write_files

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("own_cache")]

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"
[project]
name = "tiny-shop"
version = "2.5"
dependencies = ["iniconfig"]
[project.optional-dependencies]
tests = ["pytest-timeout"]
[tool.setuptools.packages.find]
where = ["src"]
[tool.pytest.ini_options]
addopts = "--doctest-modules"
testpaths = ["src", "tests"]
"""
# Code that setup runs: whatever it tries outside of its sandbox must not be there afterwards.
SETUP = """\
import os
import setuptools
for path in ("{outside}/by-setup", os.path.expanduser("~/by-setup"), "/usr/by-setup"):
    try:
        open(path, "w").write("x")
    except OSError:
        pass
assert not os.path.exists("{outside}"), "the host can be seen"
setuptools.setup()
"""
CART = '''\
"""A cart."""

import iniconfig


class Cart:
    """Counts things.

    >>> Cart(3).total(2)
    6
    """

    def __init__(self, price):
        self.price = price

    def total(self, count, discount=0):
        if count < 0:
            raise ValueError("negative")
        total = self.price * count
        if discount > 0:
            total = total - discount
        return total


def cheapest(prices):
    best = None
    for price in prices:
        if best is None or price < best:
            best = price
    return best
'''
TESTS = """\
import importlib.metadata
import os
import random
import time

import pluggy
import pytest
from tiny_shop.cart import Cart, cheapest


def test_total():
    assert Cart(2).total(3) == 6


def test_discount():
    assert Cart(2).total(3, 1) == 5


def test_negative():
    with pytest.raises(ValueError):
        Cart(1).total(-1)


def test_cheapest():
    assert cheapest([3, 1, 2]) == 1


def test_version():
    assert importlib.metadata.version("tiny-shop") == "2.5"


def test_fails():
    assert False


def test_flaky():
    assert random.SystemRandom().random() < 0.5


def test_draws():
    assert cheapest([random.random(), 2]) < 1


def test_draws_the_same():
    random.seed(3)
    assert cheapest([random.random(), 2]) < 1


def test_passes_but_where_bugs_are_made(request):
    assert request.config.option.basetemp is None  # set only where bugs are tried


def test_slow():
    time.sleep(3)


def test_network():
    import urllib.request
    urllib.request.urlopen("http://127.0.0.1:9/", timeout=2)
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


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A src-layout package with doctests, metadata, bad tests and bad manners; and the folder it must not touch."""
    root, outside = tmp_path_factory.mktemp("package") / "tiny-shop", tmp_path_factory.mktemp("outside")
    files = {
        "pyproject.toml": PYPROJECT,
        "setup.py": SETUP.format(outside=outside),
        "src/tiny_shop/__init__.py": "",
        "src/tiny_shop/cart.py": CART,
        "tests/conftest.py": CONFTEST.format(outside=outside),
        "tests/test_cart.py": TESTS,
    }
    return write_files(root, files), outside


OPTIONS = ["-p", "per_package=6", "-p", "baseline.slow_test_s=2", "-p", "baseline.min_tests=3"]


@pytest.fixture(scope="module")
def harvested(
    package: tuple[Path, Path], cache: Path, index: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The set, made by a harvest that was killed in its environment stage and started again."""
    del index
    out = tmp_path_factory.mktemp("set") / "set"
    argv = [sys.executable, "-m", "gumshoe", "harvest", str(package[0]), "--out", str(out), *OPTIONS]
    environment = {**os.environ, "GUMSHOE_CACHE": str(cache)}
    first = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert first.stderr is not None
    for line in first.stderr:
        if ": bugs" in line:
            os.killpg(first.pid, signal.SIGKILL)
            break
    first.wait()
    first.stderr.close()
    second = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
    assert second.returncode == 0, second.stdout + second.stderr
    return out, second


def test_a_killed_harvest_goes_on_where_it_was(harvested: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, second = harvested
    assert "installing" not in second.stderr  # The environment was there.
    assert "run 1 of the tests" not in second.stderr  # And the baseline.
    assert "1 of 1 packages produced a set" in second.stdout
    report = read_report(out / "packages" / "tiny-shop")
    assert report is not None
    assert report.seconds["environment"] > 1  # Built by the first run; the second only looked it up.


def test_tests_that_no_verdict_can_hang_on_are_deselected_and_listed(
    harvested: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    report = read_report(harvested[0] / "packages" / "tiny-shop")
    assert report is not None
    reasons = {test.partition("::")[2]: reason for test, reason in report.deselected.items()}
    assert reasons["test_fails"] == "fails"
    assert reasons["test_network"] == "fails"
    assert reasons["test_slow"] == "slow (baseline.slow_test_s)"
    assert reasons.get("test_flaky") in {"flaky", "fails", "fails without the others", None}
    assert reasons["test_passes_but_where_bugs_are_made"] == "flaky"  # noticed while bugs are made
    assert reasons["test_draws"] == "uses random numbers without a seed"
    assert "test_draws_the_same" not in reasons
    assert "test_version" not in reasons  # The package's metadata is there.
    assert report.tests >= 6


def test_the_set_passes_its_check_and_doctests_may_name_the_module_to_repair(
    harvested: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    pairs = load_tasks(str(harvested[0]))
    assert len(pairs) >= 4
    assert all({"failing_tests", "traceback", "suspect"} <= set(task.tags) for task, _ in pairs)
    doctests = [pair for pair in pairs if any("cart.Cart" in test for test in pair[1].fail_to_pass)]
    assert doctests
    for task, oracle in [*doctests[:1], pairs[0]]:
        assert check_task(task, oracle, SandboxConfig(kind="bubblewrap")).problems == ()


@pytest.mark.needs("docker")
def test_a_set_made_in_bubblewrap_passes_its_check_in_docker(
    harvested: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    if interpreters()[0].version[:2] != (3, 11):
        pytest.skip("the image's Python is 3.11")
    ((task, oracle),) = load_tasks(str(harvested[0]), limit=1)
    assert check_task(task, oracle, SandboxConfig(kind="docker")).problems == ()


def test_a_hostile_package_stays_in_its_sandboxes(
    harvested: tuple[Path, subprocess.CompletedProcess[str]], package: tuple[Path, Path]
) -> None:
    root, outside = package
    assert list(outside.iterdir()) == []
    assert not (Path.home() / "by-setup").exists()
    assert not Path("/usr/by-setup").exists()
    report = read_report(harvested[0] / "packages" / "tiny-shop")
    assert report is not None
    assert not (find_environment(report.environment).root / "by-conftest").exists()
    assert sorted(path.name for path in root.iterdir()) == ["pyproject.toml", "setup.py", "src", "tests"]


def test_the_status_is_read_from_the_set(
    harvested: tuple[Path, subprocess.CompletedProcess[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["harvest", "--status", "--out", str(harvested[0])]) == 0
    assert "1 of 1 packages produced a set" in capsys.readouterr().out
