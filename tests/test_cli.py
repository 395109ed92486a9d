"""The `gumshoe` command: help for everything; for every mistake of the user's one line, exit code 2, nothing left."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gumshoe import __version__
from gumshoe.cli import COMMANDS
from gumshoe.collect.config import AnthropicConfig, OpenAIConfig
from gumshoe.config import validate
from gumshoe.errors import ConfigError
from gumshoe.eval.records import Prediction
from gumshoe.standard_streams import StatusLine, screened_streams
from gumshoe.storage import write_jsonl

Run = Callable[..., subprocess.CompletedProcess[str]]

TASKS = "tasks: {source: casebook, ids: [casebook/ledger]}\n"
COLLECT = f"out: run\n{TASKS}policy: {{kind: traceback}}\nagent: {{kind: seeker}}\nsandbox: {{kind: bubblewrap}}\n"
EVAL = f"out: run\n{TASKS}arms: [{{name: a, policy: {{kind: traceback}}}}]\nsandbox: {{kind: bubblewrap}}\n"
POLICIES = """\
class Raising:
    def __init__(self, task, seed):
        raise OSError('no server')
class Untrusted:
    kind, model, trusted, complete = 'mine', '', False, None
    def __init__(self, task, seed): ...
"""
BASELINE = "{{name: {}, policy: {{kind: traceback}}, baseline: true}}"
LOCALLY = "collect collect.yaml -p sandbox.kind=local -p"
CUSTOM = f"{LOCALLY} policy.kind=custom -p policy.path="

WRONG = ["localhost:8000/v1", "//localhost/v1", "http://", "http://a:b/v1", "http://a b", "ftp://a"]
"""Addresses that no request can be sent to."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with configs and files; the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    texts = {"collect.yaml": COLLECT, "eval.yaml": EVAL, "file": "", "m.gguf": "", "bad.jinja": "{% if %}"}
    for name, text in {**texts, "policies.py": POLICIES}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "test_it.py").write_text("def test_it():\n    assert False\n")
    write_jsonl(tmp_path / "preds.jsonl", [Prediction(instance_id="shop-1", model_name_or_path="m", model_patch="p")])
    return tmp_path


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """What a command complained about: one line, exit code 2, no traceback."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    (line,) = done.stderr.splitlines()
    return line


def test_without_a_command_the_help_is_shown_and_no_command_is_imported(tmp_path: Path):
    argv = [sys.executable, "-X", "importtime", "-m", "gumshoe"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert all(name in done.stdout for name in COMMANDS)
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("colect", "unknown command 'colect'; did you mean 'collect'?"),
        ("doctor --no-such-option", "arguments: --no-such-option (see gumshoe doctor --help)"),
        ("debug repo --policy suspect", "arguments: --policy suspect; settings are given as -p KEY=VALUE"),
        ("debug repo/test_it.py", 'gumshoe debug . --entrypoint "pytest repo/test_it.py"'),
        ("collect nowhere.yaml", "no config file nowhere.yaml; give"),
        ("collect demo", "no config file demo; did you mean 'collect/demo'?"),
        ("collect train/grpo", "(it looks like a config of gumshoe train)"),
        ("collect repo", "repo is a folder, not a config; give"),
        ("collect collect.yaml -p seed", "key=value"),
        ("collect collect.yaml -p sede=1", "unknown key 'sede'; did you mean 'seed'?"),
        ("collect collect/demo -p sandbox.kind=dokcer", "unknown sandbox.kind 'dokcer'; did you mean 'docker'? "),
        ("collect collect.yaml -p sandbox.kind=docker -p sandbox.packages=[x]", "packages are for bubblewrap alone"),
        ("collect collect.yaml -p workers=0", "workers"),
        ("collect collect.yaml -p tasks.tags.split=test", "no task of"),
        ("collect collect.yaml -p budget.cost_usd=1", "requires policy.prices"),
        ("collect collect.yaml -p 'policy={kind: scripted, script: none.jsonl}'", "none.jsonl cannot be read"),
        ("collect collect.yaml -p agent.tools=[my_tols:wc]", "No module named 'my_tols'"),
        (f"{LOCALLY} 'policy={{kind: openai, model: gpt}}'", "OPENAI_API_KEY"),
        (f"{LOCALLY} 'policy={{kind: replay, run: nowhere}}'", "nowhere is not a run folder"),
        (f"{CUSTOM}json:loads", "policy 'json:loads'"),
        (f"{CUSTOM}no_such:thing", "policy 'no_such:thing' cannot be imported"),
        (f"{CUSTOM}policies:Raising", "policies.py:3: OSError: no server"),
        (f"{CUSTOM}policies:Untrusted -p policy.options.nope=1", "unexpected keyword argument"),
        (f"{CUSTOM}policies:Untrusted", "the local sandbox does not isolate"),
        ("debug repo", "no model: give --model NAME"),
        ("debug repo --model m -p policy.temprature=1", "did you mean 'temperature'"),
        ('debug repo --model m --entrypoint "pytest \'x"', "cannot be split into words"),
        ("debug repo --model m --endpoint localhost:8000", "address"),
        ("demo --model m.gguf --out repo", "repo is not empty"),
        ("demo --sandbox local --model nowhere.gguf", "--model nowhere.gguf: there is no such file or folder"),
        ("eval collect/demo", "(it looks like a config of gumshoe collect)"),
        ("eval eval.yaml -p 'arms=[{name: a}]'", "arm 'a' needs one of: model, policy, answers"),
        (f"eval eval.yaml -p 'arms=[{BASELINE.format('a')}, {BASELINE.format('a')}]'", "two arms are called 'a'"),
        (f"eval eval.yaml -p 'arms=[{BASELINE.format('a')}, {BASELINE.format('b')}]'", "only one arm can be the base"),
        ("eval eval.yaml -p 'arms=[{name: ../m, model: /nowhere}]'", "arms.0.name"),
        ("eval eval.yaml -p 'training_log={train}/log'", "is not set: give -p vars.train=..."),
        ("eval eval.yaml -p training_log=/nowhere/log", "there is no training log /nowhere/log"),
        ("eval eval.yaml -p metrics=[nonsense]", "unknown metric 'nonsense'"),
        ("grade gone.jsonl", "no file gone.jsonl"),
        ("grade preds.jsonl --workers 0", "--workers must be at least 1"),
        ("grade preds.jsonl --tasks casebook", "--tasks goes with --ours"),
        ("grade preds.jsonl --dataset gone.jsonl", "no file gone.jsonl"),
        ("grade preds.jsonl --ours --tasks casebook", "casebook has no task 'shop-1'"),
        ("mcp repo -p tools=[submit]", "submit ends an episode"),
        ("mcp repo -p tools=[vew]", "did you mean 'view'"),
        ("mcp repo -p polcy.kind=suspect", "did you mean 'policy'"),
        ("mcp repo -p policy.kind=teacher", "it would need an answer"),
        ("play local:repo --sandbox local --unsafe --tools ,", "names no tool"),
        ("serve /nowhere", "there is no model folder /nowhere"),
        ("serve /nowhere --port http", "port: "),
        ("serve /nowhere --backend sglang", "unknown backend 'sglang'; known: auto, vllm, transformers"),
        ("synth --projects casebook", "no folder for the task set: give --out DIR"),
        ("synth --out x --projects no-such-folder", "no project 'no-such-folder'"),
        ("synth --out x --projects casebook:none", "the casebook has no project 'none'"),
        ("synth repo --out x", "give --projects repo --out DIR"),
        ("synth --out x --per-project 0", "per_project"),
        ("tasks list casebook --tag split", "--tag 'split' is not of the form key=value"),
        ("tasks list casebook --limit 0", "--limit must be at least 1"),
        ("tasks export casebook --to swebench --out run --tag split=nowhere", "casebook has no task with split=nowhe"),
        ("tasks show casebook casebook/none", "has no task 'casebook/none'"),
        ("train train/smollm2 -p method=gpro", "unknown method 'gpro'; did you mean 'grpo'? known: full, "),
    ],
)
def test_a_wrong_command_line_ends_in_one_line(words: str, expected: str, here: Path, run_here: Run) -> None:
    before = set(here.rglob("*"))
    done = run_here(*shlex.split(words))
    assert expected in complaint(done)
    command = "" if words == "colect" else f" {words.split()[0]}"
    assert done.stderr.startswith(f"gumshoe{command}")
    assert not done.stderr.startswith(f"gumshoe{command}: gumshoe{command}")
    assert {path for path in here.rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("agent.prompt=nowhere.jinja", "nowhere.jinja cannot be read"),
        ("agent.prompt=bad.jinja", "bad.jinja is invalid: line 1"),
        ("agent.tools=[veiw]", "did you mean 'view'?"),
        ("agent.tools=[view,view]", "'view' is listed twice"),
    ],
)
@pytest.mark.parametrize("command", ["collect", "eval"])
def test_a_wrong_agent_takes_no_folder(command: str, override: str, expected: str, here: Path, run_here: Run) -> None:
    assert expected in complaint(run_here(command, f"{command}.yaml", "-p", override))
    assert not (here / "run").exists()


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(
    "words",
    [
        "collect collect.yaml -p 'sandbox.packages=[pytest, no-such-package]'",
        "eval eval.yaml -p sandbox.packages=[no-such-package]",
        "eval eval.yaml -p 'solver={kind: command, command: {argv: [x], packages: [no-such-package]}}'",
        "synth --projects casebook:ledger --out run -p 'sandbox={kind: bubblewrap, packages: [no-such-package]}'",
    ],
)
def test_a_package_that_is_not_installed_ends_the_command_before_anything_is_run(
    words: str, here: Path, run_here: Run
) -> None:
    done = run_here(*shlex.split(words))
    assert done.returncode == 2
    assert "sandbox.packages: 'no-such-package' is not installed" in done.stderr
    assert not (here / "run").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("out", ["/proc/gumshoe", "file/below"])
@pytest.mark.parametrize(
    "words",
    [
        "collect collect.yaml -p out=OUT",
        "demo --sandbox local --model m.gguf --out OUT",
        "eval eval.yaml -p out=OUT",
        "synth --projects casebook:ledger --out OUT",
        "harvest toolz==1.2 --out OUT",
    ],
)
def test_an_output_folder_that_cannot_be_made_is_a_mistake(words: str, out: str, run_here: Run) -> None:
    assert out.partition("/below")[0] in complaint(run_here(*words.replace("OUT", out).split()))


def test_a_command_that_lacks_an_optional_package_says_how_to_get_it(tmp_path: Path):
    """In a process of its own, which has not imported the package yet."""
    (tmp_path / "run.yaml").write_text("dataset: nowhere\nout: made\nmodel: nowhere\n", encoding="utf-8")
    blocked = (
        "import sys; sys.modules['transformers'] = None; from gumshoe.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    argv = [sys.executable, "-c", blocked, "train", "run.yaml"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
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


def test_a_character_that_the_terminal_lacks_is_replaced(here: Path) -> None:
    (here / "pröjekt").mkdir()
    (here / "pröjekt" / "test_it.py").write_text("def test_it(): ...\n")
    argv = [sys.executable, "-m", "gumshoe", "tasks", "list", "local:pröjekt"]
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    for options, environment, code, said in (
        ([], ascii_only, 0, "local/pr?jekt"),
        (["--json"], ascii_only, 0, json.dumps("local/pröjekt")),
        ([], {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 2, "set LC_ALL to a UTF-8 locale"),
    ):
        done = subprocess.run(
            [*argv, *options], env={**os.environ, **environment}, capture_output=True, timeout=100, check=False
        )
        text = (done.stdout + done.stderr).decode("ascii")
        assert done.returncode == code, text
        assert said in text


@pytest.mark.parametrize("address", WRONG)
@pytest.mark.parametrize("model", [OpenAIConfig, AnthropicConfig])
def test_a_model_is_not_asked_at_a_wrong_address(model: type[OpenAIConfig | AnthropicConfig], address: str) -> None:
    with pytest.raises(ConfigError, match=rf"base_url.*not the address of a server: .*\(got {address!r}\)"):
        validate(model, {"model": "m", "base_url": address}, origin="test")


def test_addresses_stay_as_they_are_written() -> None:
    for address in ("http://127.0.0.1:8000/v1", "HTTPS://Example.org/", "http://[::1]:8000", "https://u:p@host/x?y=1"):
        assert OpenAIConfig(model="m", base_url=address).base_url == address


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
