"""`gumshoe debug`: an agent on a repository on disk. The user's files stay as they are unless asked otherwise."""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.commands.arguments import add_repository_arguments, repository_options
from gumshoe.collect.data.store import read_trajectories
from gumshoe.env.tasks.folders import DEFAULT_COMMAND, load_local
from gumshoe.env.tasks.taskset import write_taskset

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


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    return scripted(tmp_path, REPAIR)


def scripted(folder: Path, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The options for an agent that makes these calls."""
    rows = [
        {"text": "", "tool_calls": [{"id": str(number), "name": name, "arguments": arguments}]}
        for number, (name, arguments) in enumerate(calls)
    ]
    script = folder / "script.jsonl"
    script.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return [
        "-p",
        "policy.kind=scripted",
        "-p",
        f"policy.script={script}",
        "-p",
        "sandbox.kind=local",
        "-p",
        "sandbox.unsafe=true",
    ]


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
    seeker = ["policy.kind=investigator", "sandbox.kind=local", "sandbox.unsafe=true"]
    assert main(["debug", str(repo), *(part for each in seeker for part in ("-p", each))]) == 0
    shown = capsys.readouterr()
    place, evidence = shown.out.splitlines()[:2]
    assert place == "calc.py:2 in add"
    assert "test_calc.py::test_add" in evidence or "assert 0 == 4" in evidence
    assert "Places, best first:\n- calc.py:2" in shown.out
    assert "step 1: eval" in shown.err
    assert "episodes/min" not in shown.err
    assert "probe {" not in shown.out
    assert "(reported); nothing was changed" in shown.err
    assert "the tests pass" not in shown.err
    assert "the tests do not pass" not in shown.err
    assert state(repo) == before


def test_one_that_is_stopped_reports_what_it_has_found(repo: Path) -> None:
    more = "".join(f"def test_{number}():\n    assert add({number}, 0) == {number}\n\n\n" for number in range(5))
    (repo / "test_more.py").write_text(f"from calc import add\n\n\n{more}")
    settings = ("policy.kind=investigator", "policy.sure=1", "policy.patience=0", "sandbox.kind=local")
    params = [part for each in (*settings, "sandbox.unsafe=true") for part in ("-p", each)]
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


def test_a_run_folder_in_the_repository_is_refused(
    repo: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = state(repo)
    for out in (repo, repo / "run"):
        assert main(["debug", str(repo), "--out", str(out), *options]) == 2
        assert "whose files stay as they are: move it out" in capsys.readouterr().err
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


def test_a_time_limit_of_ours_is_not_taken_for_a_failure(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "test_calc.py").write_text("import time\n\n\ndef test_slow():\n    time.sleep(60)\n")
    options = [*scripted(tmp_path, []), "-p", "limits.command_timeout_s=2"]
    assert main(["debug", str(repo), *options]) == 2
    error = capsys.readouterr().err
    assert "the tests are still running after 1 s; they are stopped after 2 s" in error
    assert "did not finish within 2 s, the time limit for one command" in error
    assert "limits.command_timeout_s" in error


def test_an_environment_that_is_not_there_is_named(
    repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*scripted(tmp_path, []), "--environment", "0123456789abcdef", "-p", "sandbox.kind=bubblewrap"]
    assert main(["debug", str(repo), *options]) == 2
    assert "environment 0123456789abcdef is not on this machine: gumshoe harvest --rebuild" in capsys.readouterr().err


def test_a_command_that_finds_no_tests_is_named(repo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repo / "test_calc.py").rename(repo / "checks.py")
    assert main(["debug", str(repo), *scripted(tmp_path, [])]) == 2
    assert "`python -m pytest -q` finds no tests: name the command" in capsys.readouterr().err
    assert main(["debug", str(repo), "--entrypoint", "python -m pytest -q checks.py", *scripted(tmp_path, REPAIR)]) == 0


def test_the_set_of_an_environment_says_how_the_tests_run(repo: Path, tmp_path: Path) -> None:
    name, command = "0123456789abcdef", "python -m pytest -q 'my checks.py'"
    parser = argparse.ArgumentParser()
    add_repository_arguments(parser, entrypoint="command")

    def entrypoint(*arguments: str) -> str:
        return repository_options(parser.parse_args([str(repo), *arguments]))["entrypoint"]

    made = repo.parent
    write_taskset(made, load_local(repo, entrypoint=command))
    (made / "environments").mkdir()
    (made / "environments" / f"{name}.json").write_text("{}")
    assert entrypoint() == entrypoint("--environment", name) == DEFAULT_COMMAND
    assert entrypoint("--environment", str(made)) == command
    assert entrypoint("--environment", str(made), "--entrypoint", "pytest -x") == "pytest -x"
