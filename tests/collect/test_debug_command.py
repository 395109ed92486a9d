"""`gumshoe debug`, an agent on a repository on disk, and `gumshoe probe`, which runs what reports say again."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.commands.arguments import add_repository_arguments, repository_options
from gumshoe.collect.data.store import read_trajectories
from gumshoe.env.tasks.folders import DEFAULT_COMMAND, load_local
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import ContextPack, Finding, Trajectory
from gumshoe.storage import write_jsonl

BUGGY = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 2) == 4\n"
REPAIR: list[tuple[str, dict[str, Any]]] = [
    ("rewrite", {"path": "calc.py", "start": 2, "code": "    return a + b"}),
    ("submit", {}),
]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "my repo"
    folder.mkdir()
    (folder / "calc.py").write_text(BUGGY)
    (folder / "test_calc.py").write_text(TEST)
    (folder / "blob.bin").write_bytes(bytes(range(256)))
    return folder


def settings(*given: str) -> list[str]:
    return [part for each in (*given, "sandbox.kind=local", "sandbox.unsafe=true") for part in ("-p", each)]


def scripted(folder: Path, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The options for an agent that makes these calls."""
    rows = [
        {"text": "", "tool_calls": [{"id": str(number), "name": name, "arguments": arguments}]}
        for number, (name, arguments) in enumerate(calls)
    ]
    write_jsonl(folder / "script.jsonl", rows)
    return settings("policy.kind=scripted", f"policy.script={folder / 'script.jsonl'}")


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    return scripted(tmp_path, REPAIR)


def state(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_patch_is_printed_and_the_files_stay(
    repo: Path, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(repo)
    run = tmp_path / "run"
    assert main(["debug", str(repo), "--entrypoint", "pytest -x", "--out", str(run), *options]) == 0
    shown = capsys.readouterr()
    assert state(repo) == before
    assert "the tests pass after 2 steps" in shown.err
    assert "files unchanged; use --apply" in shown.err
    subprocess.run(["git", "apply", "--check", "-"], input=shown.out, text=True, cwd=repo, check=True)
    (trajectory,) = read_trajectories(run)
    assert trajectory.task.source == "local"
    assert trajectory.task.regime == "debug"
    assert trajectory.patch == shown.out


def test_asked_to_it_changes_the_files(repo: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", str(repo), "--apply", "--problem", "add subtracts", *options]) == 0
    assert "changed: calc.py" in capsys.readouterr().err
    assert (repo / "calc.py").read_text() == BUGGY.replace("-", "+")
    assert not list(repo.glob(".*"))


def test_the_report_of_an_agent_that_only_looks_is_printed(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(repo)
    assert main(["debug", str(repo), "--apply", *settings("policy.kind=investigator")]) == 0
    shown = capsys.readouterr()
    place, evidence = shown.out.splitlines()[:2]
    assert place == "calc.py:2 in add"
    assert "test_calc.py::test_add" in evidence or "assert 0 == 4" in evidence
    assert "Places, best first:\n- calc.py:2" in shown.out
    assert "probe {" not in shown.out
    for words in ("step 1: eval", "(reported); nothing was changed: there is no patch for --apply"):
        assert words in shown.err
    for words in ("episodes/min", "the tests pass", "the tests do not pass"):
        assert words not in shown.err
    assert state(repo) == before


def test_one_that_is_stopped_reports_what_it_has_found(repo: Path) -> None:
    more = "".join(f"def test_{number}():\n    assert add({number}, 0) == {number}\n\n\n" for number in range(5))
    (repo / "test_more.py").write_text(f"from calc import add\n\n\n{more}")
    params = settings("policy.kind=investigator", "policy.sure=1", "policy.patience=0")
    argv = [sys.executable, "-m", "gumshoe", "debug", str(repo), *params]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("step 3: " in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.startswith("calc.py:")
    assert "Places, best first:\n- calc.py:" in out
    assert err.endswith("stopped\n")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--out", "my repo/run"], "whose files stay as they are: move it out"),
        (
            ["--environment", "0123456789abcdef", "-p", "sandbox.kind=bubblewrap"],
            "environment 0123456789abcdef is not on this machine: gumshoe harvest --rebuild",
        ),
        (["--entrypoint", "python -m pytest nothing"], "`python -m pytest nothing` runs no tests: correct"),
        (["--entrypoint", "pytset tests"], "correct --entrypoint\npytset: command not found"),
        (["--entrypoint", "pytest gone"], "file or directory not found: gone"),
    ],
)
def test_what_cannot_be_debugged_is_refused(
    more: list[str],
    said: str,
    repo: Path,
    options: list[str],
    run_here: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    before = state(repo)
    (repo / "nothing").mkdir()
    done = run_here("debug", str(repo), *options, *more)
    assert done.returncode == 2
    assert said in done.stderr
    assert state(repo) == before


def test_an_agent_that_cannot_go_on_says_why(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", str(repo), *scripted(tmp_path, [("listdir", {})])]) == 1
    assert "the script has no completion for turn 2" in capsys.readouterr().err


def test_tests_that_pass_already_cost_no_model(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "calc.py").write_text(BUGGY.replace("-", "+"))
    run = tmp_path / "run"
    assert main(["debug", str(repo), "--out", str(run), *scripted(tmp_path, [])]) == 0
    assert "the tests already pass (1 test in" in capsys.readouterr().err
    assert not run.exists()


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("test_calc.py", "def test_add(:\n    pass\n", "test_calc.py:1: SyntaxError: "),
        ("conftest.py", "import calc\n\n  x = 1\n", "conftest.py:3: IndentationError: "),
        ("test_calc.py", "from calc import sub\n", "test_calc.py:1: ImportError: cannot import name 'sub'"),
    ],
)
def test_what_keeps_tests_from_being_run_is_named(
    path: str, code: str, said: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / path).write_text(code)
    assert main(["debug", str(repo), *scripted(tmp_path, [])]) == 1
    assert said in capsys.readouterr().err


def test_a_module_that_cannot_be_read_is_reported(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "calc.py").write_text("def add(a, b):\n    return (a + b\n")
    assert main(["debug", str(repo), *settings("policy.kind=investigator")]) == 0
    report = capsys.readouterr().out
    assert report.startswith("calc.py:2 in add\nSyntaxError: '(' was never closed\n")
    assert "contradicted" not in report


@pytest.mark.parametrize(("place", "hint"), [("src/shop.py", "PYTHONPATH=src"), ("shop.txt", "[pytest,shop]")])
def test_where_a_missing_module_may_be_is_said(
    place: str, hint: str, repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "src").mkdir()
    (repo / place).write_text("")
    (repo / "test_calc.py").write_text("import shop\n\n\ndef test_shop():\n    assert shop\n")
    assert main(["debug", str(repo), *scripted(tmp_path, [])]) == 1
    assert hint in capsys.readouterr().err


def test_a_time_limit_of_ours_is_not_taken_for_a_failure(
    repo: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "test_calc.py").write_text("import time\n\n\ndef test_slow():\n    time.sleep(60)\n")
    assert main(["debug", str(repo), *options, "-p", "limits.command_timeout_s=6"]) == 2
    error = capsys.readouterr().err
    assert "the tests are still running after 3 s; they are stopped after 6 s" in error
    assert "6 s, the time limit for one command, while test_calc.py::test_slow was running: raise it" in error


def test_the_set_of_an_environment_says_how_the_tests_run(repo: Path) -> None:
    name, command = "0123456789abcdef", "python -m pytest -q 'my checks.py'"
    parser = argparse.ArgumentParser()
    add_repository_arguments(parser, entrypoint="command")

    def entrypoint(*arguments: str) -> str:
        return repository_options(parser.parse_args([str(repo), *arguments]))["entrypoint"]

    made = repo.parent
    write_taskset(made, load_local(repo, entrypoint=f"{command} --deselect=test_calc.py::test_total"))
    (made / "environments").mkdir()
    (made / "environments" / f"{name}.json").write_text("{}")
    assert entrypoint() == entrypoint("--environment", name) == DEFAULT_COMMAND
    assert entrypoint("--environment", str(made)) == command
    assert entrypoint("--environment", str(made), "--entrypoint", "pytest -x") == "pytest -x"


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


def planted(finding: Finding) -> Finding:
    """The finding with a wrong value, if it is about one."""
    if finding.probe is None or finding.probe.kind != "stop" or not finding.probe.value:
        return finding
    return finding.model_copy(update={"probe": finding.probe.model_copy(update={"value": "'planted'"})})


def test_what_the_run_found_holds_in_a_fresh_sandbox(seekers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = {one.id: one.context_pack for one in read_trajectories(seekers)}
    assert len(stored) == len(TASKS)
    code, shown = probe(str(seekers), capsys=capsys)
    assert code == 0
    assert {one["id"]: ContextPack.model_validate(one["pack"]) for one in shown} == stored
    assert set(statuses(shown)) == {"confirmed"}
    assert any(finding["probe"]["kind"] == "stop" for one in shown for finding in one["pack"]["findings"])


def test_a_wrong_value_is_contradicted(seekers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = changed(seekers, tmp_path / "wrong", planted)
    found = [one.context_pack for one in read_trajectories(wrong) if one.context_pack is not None]
    are_wrong = ["'planted'" in finding.model_dump_json() for pack in found for finding in pack.findings]
    assert any(are_wrong)
    code, shown = probe(str(wrong), capsys=capsys)
    assert code == 1
    assert statuses(shown) == ["contradicted" if one else "confirmed" for one in are_wrong]
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


def test_what_is_no_run_with_reports_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", str(tmp_path)]) == 2
    assert f"{tmp_path} is not a run folder" in capsys.readouterr().err
    (tmp_path / "trajectories.jsonl").touch()
    assert main(["probe", str(tmp_path)]) == 2
    assert f"{tmp_path} holds no report" in capsys.readouterr().err
