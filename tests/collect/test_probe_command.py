"""`gumshoe probe`: the reports of a run of the teacher, run again in fresh sandboxes."""

from __future__ import annotations

import json
import shutil
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


def changed(run: Path, folder: Path, **update: Any) -> Path:
    """A copy of the run whose findings are other ones."""
    shutil.copytree(run, folder)
    trajectories: list[Trajectory] = []
    for one in read_trajectories(run):
        assert one.context_pack is not None
        findings = tuple(finding.model_copy(update=update) for finding in one.context_pack.findings)
        pack = one.context_pack.model_copy(update={"findings": findings})
        trajectories.append(one.model_copy(update={"context_pack": pack}))
    write_jsonl(folder / "trajectories.jsonl", [one.model_dump(mode="json") for one in trajectories])
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
    pack = next(one.context_pack for one in read_trajectories(seekers) if one.task.id == TASKS[0])
    assert pack is not None
    wrong = [_planted(finding) for finding in pack.findings]
    assert any(wrong)
    findings = tuple(new or old for old, new in zip(pack.findings, wrong, strict=True))
    (tmp_path / "pack.json").write_text(pack.model_copy(update={"findings": findings}).model_dump_json())
    code, shown = probe(str(tmp_path / "pack.json"), "--task", "ttl_cache", "--unsafe", capsys=capsys)
    assert code == 1
    assert statuses(shown) == ["contradicted" if new else "confirmed" for new in wrong]
    assert main(["probe", str(tmp_path / "pack.json"), "--task", "ttl_cache", "--sandbox", "local", "--unsafe"]) == 1
    assert "contradict" in capsys.readouterr().out


def test_a_quote_that_was_edited_is_not_confirmed(
    seekers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = changed(seekers, tmp_path / "edited", quote="total = 97", claim="it is 97")
    code, shown = probe(str(edited), capsys=capsys)
    assert (code, set(statuses(shown))) == (0, {"unchecked"})
    for one in read_trajectories(edited):
        assert one.context_pack is not None
        (tmp_path / "pack.json").write_text(one.context_pack.model_dump_json())
        code, shown = probe(str(tmp_path / "pack.json"), "--task", f"casebook:{one.task.id}", "--unsafe", capsys=capsys)
        notes = {finding["check"]["note"] for one in shown for finding in one["pack"]["findings"]}
        assert (code, notes) == (0, {"its probe looks for something else than its quote says"})


def _planted(finding: Finding) -> Finding | None:
    if finding.probe is None or finding.probe.kind != "stop" or not finding.probe.value:
        return None
    return finding.model_copy(update={"probe": finding.probe.model_copy(update={"value": "'planted'"})})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list.json"], "list.json does not say which task it belongs to: add --task SOURCE:ID"),
        (["nowhere.json", "--task", "ledger"], "nowhere.json cannot be read: No such file or directory"),
        (["list.json", "--task", "ledger"], "list.json holds no ContextPack: "),
        (["words.json", "--task", "ledger"], "words.json is not JSON: "),
        (["list.json", "--task", "ledger", "--id", "x"], "--id applies only to the episodes of a run folder"),
        (["RUN", "--id", "x"], "has no episode 'x'"),
        (["."], ". is not a run folder"),
    ],
)
def test_mistakes(
    arguments: list[str],
    said: str,
    seekers: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("list.json").write_text("[]")
    Path("words.json").write_text("no JSON")
    assert main(["probe", *(str(seekers) if each == "RUN" else each for each in arguments)]) == 2
    assert said in capsys.readouterr().err
