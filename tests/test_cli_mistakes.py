"""Mistakes of the user's that any command meets: wrong paths, names and configs. One line, nothing left behind."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.collect.config import AnthropicConfig, OpenAIConfig
from gumshoe.config import validate
from gumshoe.errors import ConfigError
from gumshoe.eval.config import CommandConfig
from gumshoe.eval.swebench import Prediction
from gumshoe.storage import write_jsonl

TASKS = "tasks: {source: casebook, ids: [casebook/ledger]}\n"
COLLECT = f"out: run\n{TASKS}policy: {{kind: traceback}}\nagent: {{kind: seeker}}\nsandbox: {{kind: bubblewrap}}\n"
EVAL = f"out: run\n{TASKS}arms: [{{name: a, policy: {{kind: traceback}}}}]\nsandbox: {{kind: bubblewrap}}\n"
BASELINE = "{{name: {}, policy: {{kind: traceback}}, baseline: true}}"

WRONG = ["localhost:8000/v1", "//localhost/v1", "http://", "http://a:b/v1", "http://a b", "ftp://a"]
"""Addresses that no request can be sent to."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with configs and a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "collect.yaml").write_text(COLLECT)
    (tmp_path / "eval.yaml").write_text(EVAL)
    (tmp_path / "file").touch()
    (tmp_path / "bad.jinja").write_text("{% if %}")
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "test_it.py").write_text("def test_it():\n    assert False\n")
    write_jsonl(tmp_path / "preds.jsonl", [Prediction(instance_id="shop-1", model_name_or_path="m", model_patch="p")])
    return tmp_path


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    return capsys


def complaint(said: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command complains about: one line, exit code 2."""
    assert main(arguments) == 2
    (line,) = said.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("collect collect.yaml -p policy.kind=techer", "techer"),
        ("collect collect.yaml -p workers=0", "workers"),
        ("collect collect.yaml -p tasks.source=nowhere", "no task source 'nowhere'"),
        ("collect collect.yaml -p tasks.tags.split=test", "no task of"),
        ("collect collect.yaml -p budget.cost_usd=1", "requires policy.prices"),
        ("collect collect.yaml -p 'policy={kind: scripted, script: none.jsonl}'", "none.jsonl cannot be read"),
        ("debug repo", "no model: give --model NAME"),
        ("debug repo --model m -p policy.temprature=1", "did you mean 'temperature'"),
        ('debug repo --model m --entrypoint "pytest \'x"', "cannot be split into words"),
        ("eval eval.yaml -p 'arms=[{name: a}]'", "arm 'a' needs one of: model, policy, answers"),
        (f"eval eval.yaml -p 'arms=[{BASELINE.format('a')}, {BASELINE.format('a')}]'", "two arms are called 'a'"),
        (
            f"eval eval.yaml -p 'arms=[{BASELINE.format('a')}, {BASELINE.format('b')}]'",
            "only one arm can be the baseline",
        ),
        ("eval eval.yaml -p 'arms=[{name: ../m, model: /nowhere}]'", "arms.0.name"),
        ("eval eval.yaml -p 'training_log={train}/log'", "is not set: give -p vars.train=..."),
        ("eval eval.yaml -p training_log=/nowhere/log", "there is no training log /nowhere/log"),
        ("eval eval.yaml -p tasks.source=/nowhere", "no task source '/nowhere'"),
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
        ("play local:repo --sandbox local --unsafe --tools vew", "did you mean 'view'"),
        ("serve /nowhere", "there is no model folder /nowhere"),
        ("serve /nowhere --port http", "port: "),
        ("serve /nowhere -p prot=1", "unknown key 'prot'; did you mean 'port'?"),
        ("serve /nowhere --backend sglang", "unknown backend 'sglang'; known: auto, vllm, transformers"),
        ("synth --projects casebook", "no folder for the task set: give --out DIR"),
        ("synth --out x --projects no-such-folder", "no project 'no-such-folder'"),
        ("synth --out x --projects casebook:none", "the casebook has no project 'none'"),
        ("synth --out x -p per_projekt=3", "unknown key 'per_projekt'; did you mean 'per_project'?"),
        ("synth --out x -p operators=[magic]", "no operator 'magic'"),
        ("synth no-such.yaml --out x", "no config file no-such.yaml"),
        ("synth --out x --per-project 0", "per_project"),
        ("tasks list no-such-folder", "no task source 'no-such-folder'"),
        ("tasks list casebook --tag split", "--tag 'split' is not of the form key=value"),
        ("tasks list casebook --limit 0", "--limit must be at least 1"),
        ("tasks check casebook --workers 0", "--workers must be at least 1"),
        ("tasks show casebook casebook/none", "has no task 'casebook/none'"),
    ],
)
def test_a_wrong_command_line_ends_in_one_line(words: str, expected: str, said: pytest.CaptureFixture[str]) -> None:
    line = complaint(said, *shlex.split(words))
    assert expected in line
    assert line.startswith(f"gumshoe {words.split()[0]}")


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
def test_a_wrong_agent_takes_no_folder(
    command: str, override: str, expected: str, here: Path, said: pytest.CaptureFixture[str]
) -> None:
    assert expected in complaint(said, command, f"{command}.yaml", "-p", override)
    assert not (here / "run").exists()


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("{kind: openai, model: gpt}", "OPENAI_API_KEY"),
        ("{kind: replay, run: nowhere}", "nowhere is not a run folder"),
        ("{kind: custom, path: 'json:loads'}", "policy 'json:loads'"),
        ("{kind: custom, path: 'policies:Raising'}", "policies.py:3: OSError: no server"),
        ("{kind: custom, path: 'policies:Untrusted'}", "the local sandbox does not isolate"),
    ],
)
def test_a_wrong_policy_takes_no_folder(
    policy: str, expected: str, here: Path, said: pytest.CaptureFixture[str]
) -> None:
    (here / "policies.py").write_text(
        "class Raising:\n    def __init__(self, task, seed):\n        raise OSError('no server')\n"
        "class Untrusted:\n    kind, model, trusted, complete = 'mine', '', False, None\n"
        "    def __init__(self, task, seed): ...\n"
    )
    assert expected in complaint(said, "collect", "collect.yaml", "-p", f"policy={policy}", "-p", "sandbox.kind=local")
    assert not (here / "run").exists()


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(
    "arguments",
    [
        ("collect", "collect.yaml", "-p", "sandbox.packages=[pytest, no-such-package]"),
        ("eval", "eval.yaml", "-p", "sandbox.packages=[no-such-package]"),
        ("eval", "eval.yaml", "-p", "solver={kind: command, command: {argv: [x], packages: [no-such-package]}}"),
        (
            "synth",
            "--projects",
            "casebook:ledger",
            "--out",
            "run",
            "-p",
            "sandbox={kind: bubblewrap, packages: [no-such-package]}",
        ),
    ],
)
def test_a_package_that_is_not_installed_ends_the_command_before_anything_is_run(
    arguments: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "sandbox.packages: 'no-such-package' is not installed" in capsys.readouterr().err
    assert not (here / "run").exists()


@pytest.mark.parametrize("out", ["/proc/gumshoe", "file/below"])
@pytest.mark.parametrize("command", ["collect", "eval", "synth", "harvest", "export"])
def test_an_output_folder_that_cannot_be_made_is_a_mistake(
    command: str, out: str, said: pytest.CaptureFixture[str]
) -> None:
    arguments = {
        "collect": ("collect.yaml", "-p", f"out={out}"),
        "eval": ("eval.yaml", "-p", f"out={out}"),
        "synth": ("--projects", "casebook:ledger", "--out", out),
        "harvest": ("toolz==1.2", "--out", out),
        "export": ("casebook", "--to", "swebench", "--limit", "1", "--out", out),
    }[command]
    words = ("tasks", "export") if command == "export" else (command,)
    assert out.partition("/below")[0] in complaint(said, *words, *arguments)


@pytest.mark.parametrize("action", [("check",), ("export", "--to", "swebench", "--out", "run")])
def test_a_tag_that_no_task_has_is_a_mistake(
    action: tuple[str, ...], here: Path, said: pytest.CaptureFixture[str]
) -> None:
    words = ("tasks", action[0], "casebook", *action[1:], "--tag", "split=nowhere")
    assert "casebook has no task with split=nowhere" in complaint(said, *words)
    assert not (here / "run").exists()


def test_a_character_that_the_terminal_lacks_is_replaced(here: Path) -> None:
    (here / "pröjekt").mkdir()
    (here / "pröjekt" / "test_it.py").write_text("def test_it(): ...\n")
    argv = [sys.executable, "-m", "gumshoe", "tasks", "list", "local:pröjekt"]
    for environment, codes in (
        ({"PYTHONIOENCODING": "ascii"}, (0, "local/pr?jekt")),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, (2, "set LC_ALL to a UTF-8 locale")),
    ):
        done = subprocess.run(argv, env={**os.environ, **environment}, capture_output=True, timeout=100, check=False)
        text = (done.stdout + done.stderr).decode("ascii")
        assert done.returncode == codes[0], text
        assert codes[1] in text
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*argv, "--json"], env=ascii_only, capture_output=True, timeout=100, check=True)
    assert json.loads(done.stdout)[0]["id"] == "local/pröjekt"


@pytest.mark.parametrize("address", WRONG)
@pytest.mark.parametrize("model", [OpenAIConfig, AnthropicConfig])
def test_a_model_is_not_asked_at_a_wrong_address(model: type[OpenAIConfig | AnthropicConfig], address: str) -> None:
    with pytest.raises(ConfigError, match=rf"base_url.*not the address of a server: .*\(got {address!r}\)"):
        validate(model, {"model": "m", "base_url": address}, origin="test")


def test_addresses_stay_as_they_are_written() -> None:
    for address in ("http://127.0.0.1:8000/v1", "HTTPS://Example.org/", "http://[::1]:8000", "https://u:p@host/x?y=1"):
        assert OpenAIConfig(model="m", base_url=address).base_url == address
    with pytest.raises(ConfigError, match="endpoint: this is not the address"):
        validate(CommandConfig, {"argv": ["x"], "endpoint": "localhost"}, origin="test")


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "MODEL", "--check", "--url"),
        ("debug", "PATH", "--model", "m", "--endpoint"),
        ("mcp", "PATH", "--model", "m", "--endpoint"),
    ],
)
def test_a_wrong_address_is_answered_in_one_line(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [str(tmp_path) if word.isupper() else word for word in words]
    try:
        code = main([*argv, "localhost:8000"])
    except SystemExit as left:
        code = left.code
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (2, 1)
    assert "address" in said
