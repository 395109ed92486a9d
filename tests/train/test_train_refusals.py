"""What training cannot do is one clear line, said before anything long begins."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.errors import ConfigError
from gumshoe.train.arguments import trackers
from gumshoe.train.live import LiveSection, open_arena
from gumshoe.train.sft import train
from support.train.counted_arena import ARENA, CountedArena, config
from support.train.micro_config import make_config

CONFIGS = Path(__file__).parents[2] / "configs"
NO_FOLDER = "Not a directory"


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says; it must be one line and exit code 2."""
    assert main(words) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gumshoe ")]
    assert len(lines) == 1
    return lines[0]


@pytest.fixture
def config_file(dataset: Path, tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(make_config(dataset, tmp_path / "run").model_dump_json())
    return str(path)


def test_a_tracker_that_nobody_knows_is_named(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(["train", config_file, "-p", "report_to=[notebook]"], capsys)
    assert "report_to: 'notebook' is not a tracker known to transformers: azure_ml, " in said
    assert not (Path(config_file).parent / "run").exists()


def test_a_tracker_that_is_not_installed_is_named() -> None:
    from transformers.integrations import integration_utils

    here = {*integration_utils.get_available_reporting_integrations(), "flyte"}
    missing = sorted(integration_utils.INTEGRATION_TO_CALLBACK.keys() - here)
    with pytest.raises(ConfigError, match=f"report_to: {missing[0]} is not installed here"):
        trackers(missing[:1])


def test_layers_that_the_model_has_not_get_no_adapters(start: Path, dataset: Path, tmp_path: Path) -> None:
    changes: dict[str, Any] = {"model": str(start), "method": "lora", "lora": {"targets": ["query"]}}
    with pytest.raises(ConfigError, match=r"lora.targets: the model has no such layer; its layers are .*q_proj"):
        train(make_config(dataset, tmp_path / "run", **changes))


def test_a_run_folder_that_cannot_be_made_is_named(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(["train", config_file, "-p", f"out={config_file}/run"], capsys)
    assert f"out: {config_file}/run cannot be written: {NO_FOLDER}" in said


def test_a_page_that_cannot_be_written_is_named(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(["preflight", config_file, "--html", f"{config_file}/mask.html"], capsys)
    assert f"--html: {config_file}/mask.html cannot be written: {NO_FOLDER}" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([str(CONFIGS / "train" / "smollm2.yaml")], "has no distributed_type: see configs/accelerate"),
        ([str(CONFIGS.parent / "LICENSE")], "is not valid YAML"),
        ([str(CONFIGS / "accelerate" / "cpu.yaml"), "--processes", "0"], "--processes 0: give 1 or more"),
        ([str(CONFIGS / "accelerate" / "cpu.yaml"), "-p", "dataset=/nowhere"], "there is no dataset folder /nowhere"),
    ],
)
def test_several_processes_are_not_started_to_fail(
    words: list[str], message: str, config_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refusal(["train", config_file, "--accelerate", *words], capsys)


def test_a_weight_of_no_score_is_refused_before_any_episode() -> None:
    section = LiveSection(environment=ARENA, live={}, weights={"luck": 1.0}, max_tokens=4)
    with pytest.raises(ConfigError, match="there is no score 'luck'; the scores are format, line_f1"):
        open_arena(section)


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_turns_by_a_vllm_that_is_not_there_are_refused(tmp_path: Path) -> None:
    from gumshoe.train.grpo import train_grpo

    with pytest.raises(ConfigError, match="vllm: colocate needs vLLM in addition to TRL"):
        train_grpo(config(tmp_path, tmp_path / "run", vllm="colocate"), CountedArena({}))
