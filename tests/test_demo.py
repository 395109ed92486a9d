"""The demo's stages are commands that work as they stand; one that fails ends it with its exit code."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.cli import COMMANDS, main
from gumshoe.config import Config, load_config
from gumshoe.demo import Stage, products, stages
from gumshoe.reference import CONFIGS, config_model


def overrides(words: tuple[str, ...]) -> list[str]:
    return [value for flag, value in itertools.pairwise(words) if flag == "-p"]


def demo(*arguments: str, cwd: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "gumshoe", "demo", *arguments]
    return subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize("stage", stages(Path("out"), "auto", "model.gguf"), ids=lambda stage: stage.argv[0])
def test_the_config_of_each_stage_takes_its_overrides(stage: Stage, short: bool):
    command, target, *_ = stage.argv
    assert command in COMMANDS
    if command in CONFIGS:
        model = config_model(command)
        assert issubclass(model, Config)
        load_config(model, Path(target), overrides((*stage.argv, *(stage.short if short else ()))))


def test_each_product_lies_in_the_folder_of_the_demo(tmp_path: Path):
    assert all(path.is_relative_to(tmp_path) for _, path in products(tmp_path))


def test_a_folder_that_holds_something_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "mine.txt").touch()
    assert main(["demo", "--model", "m.gguf", "--out", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_stage_that_fails_ends_the_demo_with_its_exit_code(tmp_path: Path):
    (tmp_path / "m.gguf").touch()
    nobody = {"DOCKER_HOST": f"unix://{tmp_path}/nobody.sock"}
    done = demo("--model", "m.gguf", "--sandbox", "docker", "--out", "made", cwd=tmp_path, environment=nobody)
    assert done.returncode == 2
    assert "[1/5]" in done.stdout
    assert "[2/5]" not in done.stdout
    assert done.stderr.splitlines()[-1].startswith("gumshoe demo: stage 1 (synth) failed")
    assert "Traceback" not in done.stderr


def test_a_model_that_is_not_there_is_refused_before_anything_runs(tmp_path: Path):
    for model in ("nowhere.gguf", "nobody/nothing", "../x"):
        done = demo("--model", model, "--sandbox", "local", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"gumshoe demo: --model {model}: there is no such file or folder")
    assert list(tmp_path.iterdir()) == []


def test_missing_extras_are_named_before_anything_runs(tmp_path: Path):
    blocked = "import sys; sys.modules['trl'] = sys.modules['fastapi'] = None; from gumshoe.cli import main; sys.exit("
    done = subprocess.run(
        [sys.executable, "-c", f"{blocked}main(['demo', '--model', 'm']))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'gumshoe-debug[train,serve]' (missing: trl, fastapi)" in done.stderr
    assert list(tmp_path.iterdir()) == []
