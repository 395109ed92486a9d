"""The `gumshoe` command: help for everything, one line and exit code 2 for every mistake of the user's."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gumshoe import __version__
from gumshoe.cli import COMMANDS
from gumshoe.standard_streams import StatusLine, screened_streams

Run = Callable[..., subprocess.CompletedProcess[str]]


def gumshoe(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command as users run it, in a process of its own."""
    argv = [sys.executable, "-m", "gumshoe", *arguments]
    environment = {**os.environ, "COLUMNS": "120"}
    return subprocess.run(
        argv,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """What a command complained about: one line, exit code 2, no traceback."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip()


def test_without_a_command_the_help_is_shown(tmp_path: Path):
    done = gumshoe(cwd=tmp_path)
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert all(name in done.stdout for name in COMMANDS)


def test_the_help_imports_no_command(tmp_path: Path):
    argv = [sys.executable, "-X", "importtime", "-m", "gumshoe", "--help"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "commands" not in done.stderr
    assert "pydantic" not in done.stderr


def test_the_version(run_here: Run):
    done = run_here("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"gumshoe {__version__}")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself_with_examples(command: str, run_here: Run, tmp_path: Path):
    done = run_here(command, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: gumshoe {command}")
    assert f"gumshoe {command}" in done.stdout.partition("example")[2], "no examples in the epilog"
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_command_or_option_is_answered_in_one_line(run_here: Run, tmp_path: Path):
    assert "invalid choice: 'colect'" in complaint(gumshoe("colect", cwd=tmp_path))
    assert "see gumshoe" in complaint(run_here("doctor", "--no-such-option"))


@pytest.mark.parametrize("command", ["collect", "train", "eval"])
def test_a_wrong_config_is_answered_in_one_line(command: str, run_here: Run, tmp_path: Path):
    said = complaint(run_here(command, "nowhere.yaml"))
    assert said.startswith(f"gumshoe {command}: ")
    assert "no config file nowhere.yaml" in said
    (tmp_path / "run.yaml").touch()
    assert "key=value" in complaint(run_here(command, "run.yaml", "-p", "seed"))
    (tmp_path / "run.yaml").write_text("sede: 1\n", encoding="utf-8")
    assert "unknown key 'sede'; did you mean 'seed'?" in complaint(run_here(command, "run.yaml"))


def test_a_command_that_lacks_an_optional_package_says_how_to_get_it(tmp_path: Path):
    (tmp_path / "run.yaml").write_text("dataset: nowhere\nout: made\nmodel: nowhere\n", encoding="utf-8")
    blocked = (
        "import sys; sys.modules['transformers'] = None; from gumshoe.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", blocked, "train", "run.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "transformers is missing: pip install 'gumshoe-debug[train]'" in complaint(done)


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path):
    """`gumshoe --help | head -1` ends without a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, "-m", "gumshoe", "--help"]
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            argv, cwd=tmp_path, stdout=closed, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_made_is_answered_in_one_line(run_here: Run, tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "m.gguf").touch()
    done = run_here("demo", "--model", "m.gguf", "--out", "file/new")
    assert complaint(done).startswith("gumshoe demo: ")


def test_the_shell_completes_commands_and_options(run_here: Run):
    asked = (
        'COMP_WORDS=(gumshoe {}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_gumshoe; echo "${{COMPREPLY[@]}}"\n'
    )
    words = ("coll", "export --un", "config gr")
    typed = run_here("completion", "bash").stdout + "".join(asked.format(line) for line in words)
    done = subprocess.run(["bash", "-s"], input=typed, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["collect", "--unresolved", "grpo"], done.stderr
    for shell in ("zsh", "tcsh"):
        assert "gumshoe" in run_here("completion", shell).stdout


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, "\rlong\rx   \n"), (io.StringIO, "long\nx\n")])
def test_a_terminal_shows_how_something_gets_on_in_one_line(
    stream: type[io.StringIO], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = stream()
    monkeypatch.setattr("sys.stderr", screen)
    with screened_streams():
        line = StatusLine(sys.stderr)
        line.show("long")
        line.show("x")
        line.keep()
    assert screen.getvalue() == shown
