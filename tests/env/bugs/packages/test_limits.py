"""How much of a package a harvest makes: limits, and what a further run takes over from an earlier one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages.harvest import harvest

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("index", "own_cache")]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with eight functions and a test for each; its environment is built once for all tests."""
    folder = tmp_path_factory.mktemp("package") / "calm"
    folder.mkdir()
    functions = [f"def line{n}(x):\n    y = {n + 2} * x\n    return y + {n}\n" for n in range(8)]
    (folder / "calm.py").write_text("\n\n".join(functions))
    tests = [f"def test_{n}():\n    assert line{n}(5) == {5 * (n + 2) + n}\n" for n in range(8)]
    (folder / "test_calm.py").write_text("\n\n".join(["from calm import *\n", *tests]))
    return folder


@pytest.fixture
def config(package: Path, tmp_path: Path, cache: Path) -> HarvestConfig:
    """A harvest of the package, without verdicts of an earlier one."""
    shutil.rmtree(cache / "harvest" / "verdicts", ignore_errors=True)
    return HarvestConfig(sources=(str(package),), out=str(tmp_path / "set"), per_package=13, difficulty=False)


def test_a_package_with_more_time_or_more_bugs_goes_on_from_what_was_judged(config: HarvestConfig, cache: Path) -> None:
    def judged() -> bytes:
        (journal,) = (cache / "harvest" / "verdicts").iterdir()
        return journal.read_bytes()

    (cut,) = harvest(config.model_copy(update={"bugs_s": 0.001}))
    first = judged()
    (whole,) = harvest(config)
    second = judged()
    assert 1 <= cut.verified <= whole.verified
    assert cut.candidates < whole.candidates
    assert first.count(b"\n") >= cut.candidates
    assert second.startswith(first)
    assert len(set(second.splitlines())) == second.count(b"\n") >= whole.candidates

    (few,) = harvest(config.model_copy(update={"per_package": 5}))
    assert (few.done, few.verified) == (True, 5)
    assert judged() == second


def test_where_the_tests_would_take_too_long_fewer_bugs_are_wanted_but_never_less_than_ten(
    config: HarvestConfig,
) -> None:
    (few,) = harvest(config.model_copy(update={"per_package": 12, "verify_s": 0.001}))
    assert (few.wanted, few.done) == (10, True)
    assert few.verified <= 10
