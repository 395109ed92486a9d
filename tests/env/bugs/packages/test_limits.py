"""Harvests cut short by a broken sandbox or by limits, and what a further run takes over from an earlier one."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages.harvest import harvest
from support.sandboxes.processes import descendants

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
    """A harvest of the package without what an earlier one has cached, its environment apart."""
    for stage in ("baseline", "bugs", "verdicts"):
        shutil.rmtree(cache / "harvest" / stage, ignore_errors=True)
    return HarvestConfig(sources=(str(package),), out=str(tmp_path / "set"), per_package=40, difficulty=False)


def test_a_harvest_goes_on_after_a_package_whose_sandbox_breaks(config: HarvestConfig, tmp_path: Path) -> None:
    untestable = tmp_path / "untestable"
    untestable.mkdir()
    (untestable / "thing.py").write_text("x = 1\n")
    (untestable / "test_thing.py").write_text("import no_such_module_of_anybody_at_all\n\n\ndef test_x(): ...\n")

    def kill_once(package: str, stage: str, text: str) -> None:
        if (package, stage, text) == ("calm", "baseline", ""):
            threading.Thread(target=kill_the_next_sandbox, args=[descendants(os.getpid())]).start()

    began = time.monotonic()
    broken, refused = harvest(config.model_copy(update={"sources": (*config.sources, str(untestable))}), kill_once)
    assert (broken.stage, broken.done) == ("baseline", False)
    assert "the sandbox is gone" in broken.reason
    assert (refused.stage, refused.done) == ("environment", False)
    assert "No module named 'no_such_module_of_anybody_at_all'" in refused.reason
    assert 0 < refused.seconds["environment"] <= time.monotonic() - began + 0.05  # rounded to a tenth


def test_a_package_goes_on_from_what_was_judged_and_one_whose_tests_take_long_gets_ten_bugs(
    config: HarvestConfig, cache: Path
) -> None:
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

    (few,) = harvest(config.model_copy(update={"per_package": 12, "verify_s": 0.001}))
    assert (few.wanted, few.verified, few.done) == (10, 10, True)
    assert judged() == second


def kill_the_next_sandbox(before: set[int]) -> None:
    """Kills all of the sandbox that this process starts next, from outside, when a program runs in it."""
    while True:
        for pid in descendants(os.getpid()) - before:
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == "bwrap" and len(descendants(pid)) > 2:
                    for one in descendants(pid):
                        with suppress(ProcessLookupError):  # the first one takes the others with it
                            os.kill(one, signal.SIGKILL)
                    return
        time.sleep(0.01)
