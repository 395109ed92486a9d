"""The stages of the demo and the commands in README.md work as they stand, with the keys that they set."""

from __future__ import annotations

import io
import itertools
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from gumshoe.cli import COMMANDS, main
from gumshoe.commands.config import CONFIGS, config_model
from gumshoe.commands.demo import Stage, StageFailed, run_stage, show_outcome, stages
from gumshoe.config import BUNDLED, Config, load_config
from gumshoe.console import Console
from support.sandboxes.sandbox_backends import CHEAPEST_SETTINGS
from support.shop_tasks import make_taskset

ROOT = Path(__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


def overrides(words: Sequence[str]) -> list[str]:
    return [value for flag, value in itertools.pairwise(words) if flag == "-p"]


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("stage", stages(Path("out"), "auto", "model.gguf"), ids=lambda stage: stage.argv[0])
def test_the_config_of_each_stage_takes_its_overrides(stage: Stage, short: bool):
    command, target, *_ = stage.argv
    assert command in COMMANDS
    if command in CONFIGS:
        model = config_model(command)
        assert issubclass(model, Config)
        load_config(model, Path(target), overrides((*stage.argv, *(stage.short if short else ()))))


def test_how_a_stage_gets_on_is_shown_and_what_it_prints_is_kept(tmp_path: Path):
    stage, log = Stage("show tasks", ("tasks", "list", "casebook")), tmp_path / "log"
    shown = io.StringIO()
    run_stage("2/5", stage, Console(file=shown), log, short=False)
    kept = log.read_text(encoding="utf-8").splitlines()
    assert len(kept) > 10
    lines = shown.getvalue().splitlines()
    assert lines[1:3] == ["[2/5] show tasks", "$ gumshoe tasks list casebook"]
    assert len(lines) == 4
    assert lines[-1].endswith(kept[-1].strip()[-20:])
    with pytest.raises(StageFailed) as failed:
        run_stage("3/5", Stage("fail", ("tasks", "list", "nothing:here")), Console(file=shown), log, short=False)
    assert failed.value.exit_code == 2
    assert "nothing:here" in shown.getvalue().rpartition("[3/5] fail")[2].partition("\n$")[2].partition("\n")[2]
    assert kept[-1] not in shown.getvalue().rpartition("[3/5] fail")[2]


def test_it_ends_with_an_episode_and_a_short_table(tmp_path: Path):
    """The teacher plays the model's part."""
    make_taskset(tmp_path / "tasks", 2, runner="pytest")
    config = yaml.safe_load((BUNDLED / "demo" / "eval.yaml").read_text(encoding="utf-8"))
    config["arms"][0] = {"name": "trained", "label": "teacher", "policy": {"kind": "vary"}}
    del config["training_log"]
    config |= {"out": str(tmp_path / "eval"), "sandbox": CHEAPEST_SETTINGS}
    config["tasks"]["source"] = str(tmp_path / "tasks")
    file = tmp_path / "eval.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    assert main(["eval", str(file)]) == 0
    shown = io.StringIO()
    show_outcome(tmp_path, Console(file=shown, width=80))
    text = shown.getvalue()
    assert "held-out projects, shop/0" in text
    assert "Members get 11 off instead of 10." in text
    turns = re.findall(r"^\d\. (\w+) ?(.*)", text, re.MULTILINE)
    assert [tool for tool, _ in turns] == ["eval", "suspects", "vary", "pdb", "report"]
    assert re.fullmatch(r"b shop\.py:[1-4]", turns[3][1])
    assert re.fullmatch(r"shop\.py:[1-4], confidence 0\.\d", turns[4][1])
    quoted = re.search(r"^- seen where it stopped: (\w+ = .+)\n  confirmed by a new run", text, re.MULTILINE)
    assert quoted is not None
    assert f"   {quoted[1]}\n" in text.partition("It reported")[0]
    assert "-        total = total - 11\n+        total = total - 10\n" in text
    table = [re.split(r"\s{2,}", line.strip()) for line in text.partition(" bugs (1)")[2].splitlines()]
    assert ["turns with a valid call", "100%", "100%", "100%", "100%"] in table
    assert ["episodes with the debugger", "100%", "0%", "100%", "0%"] in table
    assert ["facts that a new run confirms", "100%", "100%"] in table
    assert ["names the right function first", "0%", "0%", "100%", "0%"] in table
    assert len(table) <= 12
    assert "out of time" not in text
    results = tmp_path / "eval" / "results.jsonl"
    results.write_text(results.read_text().replace('"stop":"reported"', '"stop":"wall_limit"', 1))
    show_outcome(tmp_path, Console(file=shown, width=80))
    assert "1 of the model's 2 episodes ran out of time" in shown.getvalue()


def test_a_stage_that_fails_ends_the_demo_with_its_exit_code(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "m.gguf").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    done = run_here("demo", "--model", "m.gguf", "--sandbox", "docker", "--out", "made")
    assert done.returncode == 2
    assert "[1/5]" in done.stdout
    assert "[2/5]" not in done.stdout
    assert done.stderr.splitlines()[-1].startswith("gumshoe demo: stage 1/5 (synth) failed")
    assert "Traceback" not in done.stderr


def test_missing_extras_are_named_before_anything_runs(run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for missing in ("trl", "fastapi"):
        monkeypatch.setitem(sys.modules, missing, None)
    done = run_here("demo", "--model", "m")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'gumshoe-debug[train,serve]' (missing: trl, fastapi)" in done.stderr
    assert list(tmp_path.iterdir()) == []


def commands(program: str) -> list[list[str]]:
    """The words that follow `program` in the commands of README.md, comments left out."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    found = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [words[1:] for words in found if words[0] == program]


def test_the_readme_shows_commands():
    shown = {words[0] for words in commands("gumshoe")}
    assert shown >= {"collect", "export", "train", "serve", "eval", "harvest", "view"}


@pytest.mark.parametrize("words", commands("gumshoe"), ids=" ".join)
def test_a_command_of_the_readme_exists_and_takes_its_keys(words: list[str]):
    name, *arguments = words
    assert name in COMMANDS
    if name not in CONFIGS or name == "harvest" or arguments[0].startswith("-"):
        return  # Those of `harvest` are sources, not configs.
    model = config_model(name)
    assert issubclass(model, Config)
    load_config(model, Path(arguments[0]), overrides(arguments))


def test_the_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"(?m)^{re.escape(words[0])}:", makefile) for words in commands("make"))
