"""`gumshoe probe`: the reports of a run of the teacher, run again in fresh sandboxes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.data.store import read_trajectories
from gumshoe.records import ContextPack, Finding, Trajectory
from gumshoe.storage import write_jsonl

TASKS = ["casebook/ttl_cache", "casebook/ledger"]


@pytest.fixture(scope="module")
def seekers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the teacher as a seeker."""
    folder = tmp_path_factory.mktemp("probe")
    config = {
        "out": str(folder / "run"),
        "tasks": {"source": "casebook", "ids": TASKS},
        "agent": {"kind": "seeker"},
        "policy": {"kind": "teacher"},
        "sandbox": {"kind": "local"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    assert main(["collect", str(folder / "config.json")]) == 0
    return folder / "run"


def probe(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Any]]:
    capsys.readouterr()
    code = main(["probe", *arguments, "--sandbox", "local", "--json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def statuses(shown: list[Any]) -> list[str]:
    return [finding["check"]["status"] for one in shown for finding in one["pack"]["findings"]]


def findings_of(run: Path) -> list[Finding]:
    return [finding for one in read_trajectories(run) if one.context_pack for finding in one.context_pack.findings]


def changed(run: Path, folder: Path, change: Callable[[Finding], Finding]) -> Path:
    """A copy of the run whose findings are other ones."""
    shutil.copytree(run, folder)
    trajectories: list[Trajectory] = []
    for one in read_trajectories(run):
        assert one.context_pack is not None
        findings = tuple(change(finding) for finding in one.context_pack.findings)
        pack = one.context_pack.model_copy(update={"findings": findings})
        trajectories.append(one.model_copy(update={"context_pack": pack}))
    write_jsonl(folder / "trajectories.jsonl", trajectories)
    return folder


def test_what_the_run_found_holds_in_a_fresh_sandbox(seekers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = {one.id: one.context_pack for one in read_trajectories(seekers)}
    assert len(stored) == len(TASKS)
    code, shown = probe(str(seekers), capsys=capsys)
    assert code == 0
    assert {one["id"]: ContextPack.model_validate(one["pack"]) for one in shown} == stored
    assert set(statuses(shown)) == {"confirmed"}
    assert any(finding["probe"]["kind"] == "stop" for one in shown for finding in one["pack"]["findings"])


def test_a_wrong_value_is_contradicted(seekers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = changed(seekers, tmp_path / "wrong", lambda finding: _planted(finding) or finding)
    planted = ["'planted'" in finding.model_dump_json() for finding in findings_of(wrong)]
    assert any(planted)
    code, shown = probe(str(wrong), capsys=capsys)
    assert code == 1
    assert statuses(shown) == ["contradicted" if one else "confirmed" for one in planted]
    assert main(["probe", str(wrong), "--sandbox", "local"]) == 1
    assert "contradict" in capsys.readouterr().out


def test_a_quote_that_was_edited_is_not_confirmed(
    seekers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = {"quote": "total = 97", "claim": "it is 97"}
    edited = changed(seekers, tmp_path / "edited", lambda finding: finding.model_copy(update=edit))
    code, shown = probe(str(edited), "--task", "casebook", capsys=capsys)
    assert (code, set(statuses(shown))) == (0, {"unchecked"})
    notes = {finding["check"]["note"] for one in shown for finding in one["pack"]["findings"]}
    assert notes == {"its probe looks for something else than its quote says"}


def _planted(finding: Finding) -> Finding | None:
    if finding.probe is None or finding.probe.kind != "stop" or not finding.probe.value:
        return None
    return finding.model_copy(update={"probe": finding.probe.model_copy(update={"value": "'planted'"})})


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", str(tmp_path)]) == 2
    assert f"{tmp_path} is not a run folder" in capsys.readouterr().err
    (tmp_path / "trajectories.jsonl").touch()
    assert main(["probe", str(tmp_path)]) == 2
    assert f"{tmp_path} holds no report" in capsys.readouterr().err
