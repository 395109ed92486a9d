"""How much of a package a harvest makes: limits, and what a further run takes over from an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages.harvest import harvest

pytestmark = pytest.mark.needs("bubblewrap")


@pytest.fixture
def config(index: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HarvestConfig:
    """A harvest of a package with sixteen functions and a test for each."""
    del index
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "calm"
    folder.mkdir()
    functions = [f"def line{n}(x):\n    y = {n + 2} * x\n    return y + {n}\n" for n in range(16)]
    (folder / "calm.py").write_text("\n\n".join(functions))
    tests = [f"def test_{n}():\n    assert line{n}(5) == {5 * (n + 2) + n}\n" for n in range(16)]
    (folder / "test_calm.py").write_text("\n\n".join(["from calm import *\n", *tests]))
    return HarvestConfig(sources=(str(folder),), out=str(tmp_path / "set"), per_package=40, difficulty=False)


def test_a_package_with_more_time_or_more_bugs_goes_on_from_what_was_judged(
    config: HarvestConfig, tmp_path: Path
) -> None:
    def judged() -> bytes:
        (journal,) = (tmp_path / "cache" / "harvest" / "verdicts").iterdir()
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
