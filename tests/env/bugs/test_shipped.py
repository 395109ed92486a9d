"""A project as real ones are laid out: what its tests need is in the tasks, and what holds tests gets no bug."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.packages.check import difficulty_of
from gumshoe.env.tasks import load_tasks
from support.doctested_cart import CART
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

TESTS = """\
from importlib.metadata import version

from shop.cart import cheapest, total


def expect(seen, wanted):
    assert seen == wanted


def test_total():
    expect(total([1, 2], 1), 2)


def test_cheapest():
    expect(cheapest([2, 1]), 1)


def test_version():
    assert version("shop") == "2.5"
"""
FILES = {
    "setup.cfg": "[metadata]\nname = shop\n[tool:pytest]\npython_files = test.py\naddopts = --doctest-modules\n",
    "shop/__init__.py": "",
    "shop/cart.py": CART,
    "shop.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: shop\nVersion: 2.5\n",
    "shop.egg-info/top_level.txt": "shop\n",
    "test.py": TESTS,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set made of the project, which is gone since."""
    root = tmp_path_factory.mktemp("made")
    write_files(root / "shop-2.5", FILES)
    options = ["-p", "sandbox.kind=bubblewrap", "--per-project", "4", "--workers", "1"]
    assert main(["synth", "--projects", str(root / "shop-2.5"), "--out", str(root / "set"), *options]) == 0
    shutil.rmtree(root / "shop-2.5")
    return root / "set"


def test_a_set_with_doctests_metadata_and_a_test_py_passes_its_check(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "check", str(made), "--sandbox", "bubblewrap"]) == 0
    assert "4 of 4 tasks are proven" in capsys.readouterr().out


def test_metadata_that_lies_beside_the_sources_is_shipped(made: Path) -> None:
    assert list(made.rglob("shop.egg-info/PKG-INFO"))
    assert all("test.py::test_version" in oracle.pass_to_pass for _, oracle in load_tasks(str(made)))


def test_a_module_with_doctests_is_no_test_file_and_test_py_is_one(made: Path) -> None:
    pairs = load_tasks(str(made))
    assert {path for task, _ in pairs for path in task.workspace.overlay} == {"shop/cart.py"}
    assert any(test.startswith("shop/cart.py::") for _, oracle in pairs for test in oracle.fail_to_pass)
    task, oracle = next(pair for pair in pairs if "test.py::test_total" in pair[1].fail_to_pass)
    found = difficulty_of(task, oracle, CHEAPEST)
    assert found["suspect"] in {"first", "tied"}, "the helper in test.py, which fails, is no suspect"
