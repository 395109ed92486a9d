"""A whole harvest under other names, in real sandboxes, with pip's real index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.config import SandboxConfig
from gumshoe.env.environments import find_environment
from gumshoe.env.harvest.package import read_report
from gumshoe.env.harvest.rename.proof import RenamedRun, prove
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_task
from tests.env.harvest.test_harvest_rename_texts import SHOP, names_of

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"
[project]
name = "fruit-stand"
version = "1.5"
description = "Fruit by weight"
readme = "README.md"
[project.urls]
Source = "https://example.org/fruit-stand"
[tool.setuptools.packages.find]
where = ["src"]
[tool.pytest.ini_options]
addopts = "--doctest-modules"
testpaths = ["src", "tests"]
"""
WEIGHING = '''\
"""Weighs things for fruit_stand.weighing."""


class FruitScale:
    """A scale.

    >>> FruitScale(tare=1).weigh([2, 3])
    4
    """

    def __init__(self, tare=0):
        self.tare = tare
        self.readings = {}

    def weigh(self, pieces, handler="plain"):
        total = sum(pieces) - self.tare
        if total < 0:
            total = 0
        self.readings[handler] = total
        return getattr(self, "round_" + handler)(total)

    def round_plain(self, grams):
        return grams

    def round_tens(self, grams):
        return grams // 10 * 10


def heaviest(pieces, ignored_below=0):
    winner = None
    for piece in pieces:
        if piece >= ignored_below and (winner is None or piece > winner):
            winner = piece
    return winner
'''
TESTS = """\
import importlib
import importlib.metadata
from unittest import mock

import pytest

import fruit_stand.weighing
from fruit_stand.weighing import FruitScale, heaviest


@pytest.fixture
def fresh_scale():
    return FruitScale(tare=1)


@pytest.mark.parametrize("pieces, expected_total", [([1, 2], 2), ([0], 0)])
def test_fruit_scale(fresh_scale, pieces, expected_total):
    assert fresh_scale.weigh(pieces) == expected_total


def test_round_tens(fresh_scale):
    assert fresh_scale.weigh([20, 6], handler="tens") == 20
    assert fresh_scale.readings == {"tens": 25}


def test_heaviest():
    assert heaviest([3, 9, 2]) == 9
    assert heaviest([3, 9, 2], ignored_below=10) is None


def test_heaviest_is_patched():
    with mock.patch("fruit_stand.weighing.heaviest", return_value=7):
        assert fruit_stand.weighing.heaviest([]) == 7


def test_said_by_name():
    module = importlib.import_module("fruit_stand.weighing")
    assert getattr(module, "heav" + "iest")([1]) == 1


def test_metadata():
    assert importlib.metadata.version("fruit-stand") == "1.5"
"""
OPTIONS = ["--rename", "-p", "per_package=3", "-p", "difficulty=false", "-p", "pairs=0", "-p", "baseline.min_tests=3"]


@pytest.fixture(scope="module")
def harvested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("package") / "fruit-stand"
    for name, text in {
        "pyproject.toml": PYPROJECT,
        "README.md": "# fruit-stand\n\nSee `FruitScale`.\n",
        "src/fruit_stand/__init__.py": "",
        "src/fruit_stand/weighing.py": WEIGHING,
        "tests/test_weighing.py": TESTS,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    out = tmp_path_factory.mktemp("set") / "set"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUMSHOE_CACHE", str(tmp_path_factory.mktemp("cache")))
        code = main(["harvest", str(root), "--out", str(out), *OPTIONS])
        report = read_report(out / "packages" / "fruit-stand")
        if code and report is not None and report.stage == "environment":
            pytest.skip(f"no environment: {report.reason}")
        assert code == 0, report
        yield out


@pytest.mark.needs("bubblewrap")
def test_a_renamed_set_passes_its_check_and_tells_no_old_name(harvested: Path) -> None:
    folder = harvested / "packages" / "fruit-stand"
    report = read_report(folder)
    assert report is not None
    assert report.renamed["before"] == report.tests == 8
    assert report.renamed["lost"] == 0
    map_ = json.loads((folder / "renamed.json").read_text())
    # One name is only said in pieces; it was put back, and the reason is told.
    assert "heaviest" in map_["names_put_back"]
    assert {"fruit_stand", "weighing", "FruitScale", "fresh_scale", "ignored_below"} <= map_["names"].keys()
    projects = folder / "projects"
    texts = {str(path.relative_to(projects)): path.read_text() for path in projects.rglob("*") if path.is_file()}
    gone = ("FruitScale", "fruit_stand", "weighing", "ignored_below", "example.org", "by weight", "README.md")
    assert [(path, old) for path, text in texts.items() for old in gone if old in path + text] == []
    assert any("def round_tens" in text for text in texts.values())  # Composed at run time.
    for task, oracle in load_tasks(str(harvested)):
        assert check_task(task, oracle, SandboxConfig(kind="bubblewrap")).problems == ()
        assert "fruit" not in task.problem_statement
    ((task, _),) = load_tasks(str(harvested), limit=1)
    assert task.workspace.environment is not None
    site = find_environment(task.workspace.environment).root.glob("lib/*/site-packages/*")
    assert not [path.name for path in site if "fruit" in path.name.lower()]


def test_a_name_without_which_a_test_passes_is_found_by_halves() -> None:
    names = names_of(SHOP)
    needed = {"price_of": "test_a", "rounding": "test_b"}
    runs: list[int] = []

    def run(names: object, back: frozenset[str], tests: Sequence[str]) -> RenamedRun:
        runs.append(1)
        failing = [test for name, test in needed.items() if name not in back]
        return RenamedRun({test: "assert 1 == 2" for test in failing if not tests or test in tests})

    proof = prove(names, run, ["rounding"], lambda text: None)
    assert set(proof.put_back) == needed.keys()
    assert proof.lost == ()
    assert "price_of" not in proof.names.new
    assert len(runs) < 25
