"""The reports of packages: what their stages took, also when they were finished before, and how they are shown."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.packages.package import PackageReport, with_times
from gumshoe.env.commands.bugs import show_reports


def a_report(**facts: object) -> PackageReport:
    return PackageReport("shop", "shop==1", **{"version": "1", "counts": {"kept": 3}, "verified": 3, **facts})  # pyright: ignore[reportArgumentType]


def test_the_times_of_stages_add_up_over_runs() -> None:
    earlier = a_report(seconds={"bugs": 29.9, "check": 60.0})
    again = with_times(a_report(seconds={"bugs": 0.1, "check": 0.2, "difficulty": 40.0}), earlier)
    assert again.seconds == {"bugs": 30.0, "check": 60.2, "difficulty": 40.0}
    assert again.bugs_a_minute == 6.0
    assert a_report(seconds={"bugs": 30.0, "history": 60.0}).bugs_a_minute == 2.0


def test_a_run_with_another_environment_has_its_own_times() -> None:
    other = a_report(environment="b", seconds={"bugs": 5.0})
    assert with_times(other, a_report(environment="a", seconds={"bugs": 30.0})) == other


def test_the_status_tells_what_is_done_refused_on_its_way_and_not_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("blinker", "click", "shop", "toolz", "wsproto")
    (tmp_path / "sources.json").write_text(json.dumps({name: f"{name}==1" for name in names}))
    done = a_report(done=True, stage="difficulty")
    refused = PackageReport("click", "click==1", stage="baseline", reason="no test was run")
    for name, file, report in (
        ("shop", "report.json", asdict(done)),
        ("shop", "progress.json", {"name": "shop", "source": "shop==1", "stage": "check"}),
        ("click", "report.json", asdict(refused)),
        ("toolz", "progress.json", {"name": "toolz", "source": "toolz==1", "stage": "bugs"}),
    ):
        (tmp_path / "packages" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "packages" / name / file).write_text(json.dumps(report))
    assert main(["harvest", "--status", "--out", str(tmp_path)]) == 0
    *table, refusal, unfinished, waiting, total = capsys.readouterr().out.splitlines()
    assert "shop 1" in "".join(table)
    assert refusal == "click: baseline: no test was run"
    assert unfinished == "toolz: not finished (bugs)"
    assert waiting == "not begun: blinker, wsproto"
    assert total == "1 of 5 packages produced a set, 3 verified bugs"


def test_a_narrow_terminal_cuts_no_number(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "a-package-with-quite-a-long-name-of-its-own"
    figures = {"tests": 12345, "candidates": 23456, "verified": 3456, "deselected": {"a": "slow"}}
    show_reports([PackageReport(name, name, "12.3.4.post5", done=True, seconds={"bugs": 98765.0}, **figures)])  # pyright: ignore[reportArgumentType]
    table = capsys.readouterr().out
    assert all(number in table for number in ("12345", "23456", "3456", "98765"))
    assert "\N{HORIZONTAL ELLIPSIS}" not in table


def test_the_documentation_names_the_limits_with_their_defaults(root: Path) -> None:
    config = HarvestConfig().model_dump()
    text = (root / "docs" / "harvest.md").read_text(encoding="utf-8").partition("## Limits")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| ([\d.]+) \|", text, re.MULTILINE)
    assert len(rows) > 10
    for name, default in rows:
        section, _, key = name.rpartition(".")
        assert (config[section] if section else config)[key] == float(default), name
