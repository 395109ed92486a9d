"""The training commands as a user runs them: one clear line and exit code 2 for wrong inputs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from gumshoe.cli import main
from gumshoe.config import load_config, parse_yaml
from gumshoe.errors import ConfigError
from gumshoe.train.config import DpoConfig, GrpoConfig, LiveSection, TrainConfig, read_config
from gumshoe.train.episodes import open_episodes
from gumshoe.train.run import TrainResult, trackers
from gumshoe.train.sft import train_sft
from support.train.counted_episodes import EPISODES, CountedEpisodes, config
from support.train.tiny_model import make_config
from support.train.training_rows import conversation, row, write_dataset

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
CONFIGS = Path(__file__).parents[2] / "configs"
NO_FOLDER = "Not a directory"
NOTEBOOK = Path(__file__).parents[1] / "support" / "train" / "run_notebook.py"


@pytest.fixture
def config_file(dataset: Path, tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    path.write_text(make_config(dataset, tmp_path / "run", max_steps=2, threads=1).model_dump_json())
    return str(path)


def write_config(dataset: Path, out: Path, batch: int) -> Path:
    config = make_config(dataset, out, max_steps=3, batch=batch, threads=1, eval_split="test", eval_every=3)
    path = out.with_suffix(".yaml")
    path.write_text(config.model_dump_json())
    return path


@pytest.fixture(scope="module")
def alone(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run in one process, and what the command printed."""
    out = tmp_path_factory.mktemp("alone") / "run"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["train", str(write_config(dataset, out, 2))]) == 0
    return out, printed.getvalue()


def test_train_says_what_it_did_and_where_it_is_and_that_it_is_done(
    alone: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out, printed = alone
    told = dict(line.split(": ", 1) for line in printed.splitlines())
    assert (told["rows"], told["steps"], told["model"]) == ("6", "3", f"{out}/model")
    assert main(["train", str(out / "config.yaml")]) == 0
    assert "has already been trained" in capsys.readouterr().out


def test_resume_from_a_named_checkpoint(
    trained: tuple[TrainConfig, TrainResult], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained[0].out, tmp_path / "run", ignore=shutil.ignore_patterns("model"))
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace(trained[0].out, str(tmp_path / "run")))
    checkpoint = str(tmp_path / "run" / "checkpoints" / "checkpoint-2")
    assert main(["train", str(config), "--resume", checkpoint]) == 0
    assert "steps: 4\n" in capsys.readouterr().out
    assert main(["train", str(config), "--resume", str(tmp_path)]) == 2


def test_preflight_shows_the_mask_and_the_counts(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", config_file, "--row", "1"]) == 0
    shown = capsys.readouterr().out
    assert "[seek 0.5] I read total." in shown
    assert "6 rows" in shown
    assert "nothing to train" in shown
    assert main(["preflight", config_file, "--row", "6"]) == 2
    assert "--row: there is no row 6, the rows are 0 to 5" in capsys.readouterr().err


def test_preflight_fails_on_rows_with_nothing_to_train(
    config_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_dataset(tmp_path / "data", {"train": [row(0), row(1, messages=conversation(1)[:2])]})
    assert main(["preflight", config_file, "-p", f"dataset={data}"]) == 2
    assert "gumshoe preflight: row episode-1 has nothing to train" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-p", "dataset=/nowhere"], "there is no dataset folder /nowhere"),
        (["-p", "view=agent"], "has no view 'agent'"),
        (["-p", "learning_rat=1"], "unknown key 'learning_rat'; did you mean 'learning_rate'?"),
        (["-p", "max_length=9"], "more than max_length 9 tokens and would be cut"),
        (["-p", "model=x"], "model x cannot be loaded"),
        (["-p", "model=no.gguf"], "model no.gguf cannot be read"),
        (["-p", "chat_template=no.jinja"], "chat_template: no.jinja cannot be read"),
    ],
)
@pytest.mark.parametrize("command", ["train", "preflight"])
def test_wrong_inputs_end_in_one_line(
    command: str, words: list[str], message: str, config_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, config_file, *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len([line for line in error.splitlines() if line.startswith("gumshoe ")]) == 1


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_bare_script_of_trl_trains_on_the_export(dataset: Path, start: Path, tmp_path: Path) -> None:
    """The dataset and the model folder are enough."""
    import datasets
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    rows: Any = datasets.load_dataset(str(dataset), "seeker", split="train", cache_dir=str(tmp_path / "cache"))
    rows = rows.select_columns(["messages", "tools"])
    tokenizer: Any = AutoTokenizer.from_pretrained(start)
    settings: dict[str, Any] = {"max_length": 1024, "max_steps": 1, "use_cpu": True, "bf16": False, "report_to": []}
    arguments = SFTConfig(str(tmp_path / "out"), assistant_only_loss=True, **settings)
    model = AutoModelForCausalLM.from_pretrained(start)
    trainer = SFTTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer)
    assert trainer.train().global_step == 1
    prepared: Any = trainer.train_dataset
    labels = [[token for token in row["labels"] if token != -100] for row in prepared]
    assert len(labels) == 6
    trained = tokenizer.decode(labels[3])
    assert '{"name": "view", "arguments": {"path": "shop/part3.py", "start": 31}}' in trained
    assert "[step 1]" not in trained


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("train/*.yaml")), ids=lambda path: path.stem)
def test_every_published_config_is_valid(path: Path) -> None:
    config = read_config(path, ())
    method = parse_yaml(path.read_text()).get("method")
    assert isinstance(config, {"grpo": GrpoConfig, "dpo": DpoConfig}.get(method, TrainConfig))


def test_grpo_steps_must_be_whole_batches() -> None:
    with pytest.raises(ConfigError, match="batch 3 must divide the 16 episodes of a step"):
        load_config(GrpoConfig, CONFIGS / "train" / "grpo.yaml", ["batch=3"])


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says; it must be one line and exit code 2."""
    assert main(words) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gumshoe ")]
    assert len(lines) == 1
    return lines[0]


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
        train_sft(make_config(dataset, tmp_path / "run", **changes))


def test_a_run_folder_that_cannot_be_made_is_named(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(["train", config_file, "-p", f"out={config_file}/run"], capsys)
    assert f"{config_file}/run: {NO_FOLDER}" in said


def test_a_weight_of_no_score_is_refused_before_any_episode() -> None:
    section = LiveSection(environment=EPISODES, live={}, weights={"luck": 1.0}, max_tokens=4)
    with pytest.raises(ConfigError, match="there is no score 'luck'; the scores are format, line_f1"):
        open_episodes(section)


@pytest.mark.skipif(find_spec("vllm") is not None, reason="vLLM is installed here")
def test_turns_by_a_vllm_that_is_not_there_are_refused(tmp_path: Path) -> None:
    from gumshoe.train.grpo import train_grpo

    with pytest.raises(ConfigError, match="vllm: colocate needs vLLM in addition to TRL"):
        train_grpo(config(tmp_path, tmp_path / "run", vllm="colocate"), CountedEpisodes({}))


def test_two_processes_give_the_losses_of_one(alone: tuple[Path, str], dataset: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file

    one, two = alone[0], tmp_path / "two"
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--config_file", str(CONFIGS / "accelerate/cpu.yaml")]
    argv = [*launch, "-m", "gumshoe", "train", str(write_config(dataset, two, 1))]
    done = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **OFFLINE}, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("model: ") == 1
    logs = [[json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()] for run in (one, two)]
    for key in ("loss", "eval_loss", "eval_mean_token_accuracy"):
        values, together = ([entry[key] for entry in log if key in entry] for log in logs)
        assert values
        assert together == pytest.approx(values, rel=1e-4)
    first, second = (load_file(run / "model" / "model.safetensors") for run in (one, two))
    assert first.keys() == second.keys()
    assert all(first[name].allclose(second[name], atol=1e-4) for name in first)


@pytest.mark.parametrize("name", ["fsdp2", "zero3", "cpu"])
def test_accelerate_reads_the_shipped_configs(name: str) -> None:
    from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file

    path = CONFIGS / "accelerate" / f"{name}.yaml"
    read = load_config_from_file(str(path))
    assert isinstance(read, ClusterConfig)
    given = yaml.safe_load(path.read_text())
    assert str(read.distributed_type).endswith(given["distributed_type"])
    known = ClusterConfig.__dataclass_fields__
    assert given.keys() <= known.keys()


@pytest.mark.needs("bubblewrap")
def test_the_tutorial_leads_from_a_repository_to_a_model(root: Path, start: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "TUTORIAL_MODEL": str(start),
        "TUTORIAL_SANDBOX": "bubblewrap",
    }
    work = tmp_path / "work"
    work.mkdir()
    argv = [sys.executable, NOTEBOOK, root / "docs" / "tutorial.ipynb", tmp_path / "out.ipynb"]
    done = subprocess.run(argv, cwd=work, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (work / "runs" / "model" / "model" / "config.json").is_file()
    said = (tmp_path / "out.ipynb").read_text(encoding="utf-8")
    for words in (
        "FAILED test_cart.py::test_shipping",
        "amount = 50",
        "reward 1.0",
        "resolved: True",
        "tokens trained",
    ):
        assert words in said
