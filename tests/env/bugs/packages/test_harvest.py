"""Harvests cut short by a broken sandbox or by limits, what a further run takes over from them, and their reports."""

import json
import os
import re
import shutil
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages.harvest import PackageReport, harvest, with_times
from support.folder_tasks import write_files
from support.sandboxes.processes import descendants


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with eight functions and a test for each; its environment is built once for all tests."""
    functions = [f"def line{n}(x):\n    y = {n + 2} * x\n    return y + {n}\n" for n in range(8)]
    tests = [f"def test_{n}():\n    assert line{n}(5) == {5 * (n + 2) + n}\n" for n in range(8)]
    files = {"calm.py": "\n\n".join(functions), "test_calm.py": "\n\n".join(["from calm import *\n", *tests])}
    return write_files(tmp_path_factory.mktemp("package") / "calm", files)


@pytest.fixture
def config(package: Path, tmp_path: Path, cache: Path, index: None) -> HarvestConfig:
    """A harvest of the package without what an earlier one has cached, its environment apart."""
    for stage in ("baseline", "bugs", "verdicts"):
        shutil.rmtree(cache / "harvest" / stage, ignore_errors=True)
    return HarvestConfig(sources=(str(package),), out=str(tmp_path / "set"), per_package=40, difficulty=False)


@pytest.mark.needs("bubblewrap")
def test_a_harvest_goes_on_after_a_package_whose_sandbox_breaks(config: HarvestConfig, tmp_path: Path) -> None:
    files = {"thing.py": "", "test_thing.py": "import no_such_module_of_anybody_at_all\n\n\ndef test_x(): ...\n"}
    untestable = write_files(tmp_path / "untestable", files)

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


@pytest.mark.needs("bubblewrap")
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


def test_the_times_of_stages_add_up_over_runs_in_one_environment() -> None:
    def took(environment: str, **seconds: float) -> PackageReport:
        return PackageReport("shop", "shop==1", environment=environment, seconds=seconds)

    earlier = took("a", bugs=29.9, check=60.0)
    again = with_times(took("a", bugs=0.1, check=0.2, difficulty=40.0), earlier)
    assert again.seconds == {"bugs": 30.0, "check": 60.2, "difficulty": 40.0}
    assert with_times(took("b", bugs=5.0), earlier) == took("b", bugs=5.0)


def test_the_status_tells_what_is_done_refused_on_its_way_and_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = "shop-with-quite-a-long-name-of-its-own"
    names = ("blinker", "click", shop, "toolz", "wsproto")
    (tmp_path / "sources.json").write_text(json.dumps({name: f"{name}==1" for name in names}))
    figures = {"tests": 12345, "candidates": 23456, "verified": 3456, "seconds": {"bugs": 98765.0}}
    for name, facts in (
        (shop, {"version": "12.3.4.post5", "stage": "difficulty", "done": True, **figures}),
        ("click", {"stage": "baseline", "reason": "no test was run"}),
        ("toolz", {"stage": "bugs"}),
    ):
        report = {"name": name, "source": f"{name}==1", **facts}
        write_files(tmp_path / "packages" / name, {"report.json": json.dumps(report)})
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["harvest", "--status", "--out", str(tmp_path)]) == 0
    *table, refusal, unfinished, waiting, total = capsys.readouterr().out.splitlines()
    assert all(number in "".join(table) for number in ("12345", "23456", "3456", "98765")), "no number is cut"
    assert "\N{HORIZONTAL ELLIPSIS}" not in "".join(table)
    assert refusal == "click: baseline: no test was run"
    assert unfinished == "toolz: not finished (bugs)"
    assert waiting == "not begun: blinker, wsproto"
    assert total == "1 of 5 packages produced a set, 3456 verified bugs"


def test_the_documentation_names_the_limits_with_their_defaults(root: Path) -> None:
    config = HarvestConfig().model_dump()
    text = (root / "docs" / "harvest.md").read_text(encoding="utf-8").partition("## Limits")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([\d.]+) \|", text, re.MULTILINE)
    assert len(rows) > 10
    for name, default in rows:
        section, _, key = name.rpartition(".")
        assert (config[section] if section else config)[key] == float(default), name
