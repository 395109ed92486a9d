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
from gumshoe.train.rows.render import Renderer
from gumshoe.train.run import trackers
from support.train.counted_episodes import EPISODES, CountedEpisodes, config
from support.train.tiny_model import make_config
from support.train.training_rows import conversation, row, write_dataset

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
CONFIGS = Path(__file__).parents[2] / "configs"
HELD_OUT: dict[str, Any] = {"max_steps": 3, "eval_split": "test", "eval_every": 3}
QLORA = pytest.mark.skipif(find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed here")
LONG = row(1, messages=[*conversation(1), *conversation(1)[1:]])
UNTRAINED = row(1, messages=conversation(1)[:2])


def write_config(dataset: Path, out: Path, **changes: Any) -> str:
    path = out.with_suffix(".yaml")
    path.write_text(make_config(dataset, out, threads=1, **changes).model_dump_json())
    return str(path)


@pytest.fixture
def config_file(dataset: Path, tmp_path: Path) -> str:
    return write_config(dataset, tmp_path / "run", max_steps=2)


@pytest.fixture(scope="module")
def alone(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run in one process, and what the command printed."""
    out = tmp_path_factory.mktemp("alone") / "run"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["train", write_config(dataset, out, batch=2, **HELD_OUT)]) == 0
    return out, printed.getvalue()


def test_train_says_what_it_did_and_where_it_is_and_that_it_is_done(
    alone: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    out, printed = alone
    told = dict(line.split(": ", 1) for line in printed.splitlines())
    assert (told["rows"], told["steps"], told["model"]) == ("6", "3", f"{out}/model")
    assert main(["train", str(out / "config.yaml")]) == 0
    assert "has already been trained" in capsys.readouterr().out


def test_preflight_shows_the_mask_and_the_counts(config_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", config_file, "--row", "1"]) == 0
    shown = capsys.readouterr().out
    assert "[seek 0.5] I read total." in shown
    assert "6 rows" in shown
    assert "nothing to train" in shown
    assert main(["preflight", config_file, "--row", "6"]) == 2
    assert "--row: there is no row 6, the rows are 0 to 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "room", "too_long", "said"),
    [
        ([row(0), UNTRAINED], 9, "skip", "row episode-1 has nothing to train"),
        ([row(0)] * 5, -1, "error", "rows episode-0, episode-0, episode-0 and 2 more have more than max_length "),
        ([row(0), LONG], 0, "skip", None),
        ([row(0, sampled=[{"message": 2, "token_ids": [5]}])], 9, "error", None),
        ([LONG], 0, "skip", "row episode-1 has more than max_length "),
    ],
)
def test_preflight_fails_on_rows_that_would_be_cut_or_train_nothing(
    rows: list[Any],
    room: int,
    too_long: str,
    said: str | None,
    renderer: Renderer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, limit = write_dataset(tmp_path / "data", {"train": rows}), renderer.length(row(0)) + room
    config = write_config(data, tmp_path / "run", max_length=limit, too_long=too_long)
    assert main(["preflight", config]) == (0 if said is None else 2)
    assert (said or "") in capsys.readouterr().err


BOTH = ("dataset", "view", "learning_rat", "max_length", "model", "chat_template")
"""What `preflight` looks at, too."""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("dataset=/nowhere", "there is no dataset folder /nowhere"),
        ("view=agent", "has no view 'agent'"),
        ("learning_rat=1", "unknown key 'learning_rat'; did you mean 'learning_rate'?"),
        ("max_length=9", "more than max_length 9 tokens and would be cut"),
        ("model=x", "model x cannot be loaded"),
        ("model=no.gguf", "model no.gguf cannot be read"),
        ("chat_template=no.jinja", "chat_template: no.jinja cannot be read"),
        ("out=/dev/null/run", "/dev/null/run: Not a directory"),
        ("report_to=[notebook]", "report_to: 'notebook' is not a tracker known to transformers: azure_ml, "),
        ("method=lora -p lora.targets=[query]", "lora.targets: the model has no such layer; its layers are "),
        pytest.param("method=qlora", "method: qlora needs bitsandbytes: pip install bitsandbytes", marks=QLORA),
        ("patience=2", "patience needs best"),
        ("best=eval_loss", "needs an eval_split"),
        ("best=eval_loss -p eval_split=test -p eval_every=2", "set save_every and eval_every to the same value"),
        ("best=seeker -p eval_split=test", "a section episodes"),
    ],
)
def test_wrong_inputs_end_in_one_line_and_make_no_model(
    words: str, message: str, config_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", config_file, "-p", *words.split()]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gumshoe ")]
    assert message in line
    assert not (tmp_path / "run" / "model").exists()
    if words.partition("=")[0] in BOTH:
        assert main(["preflight", config_file, "-p", *words.split()]) == 2
        assert message in capsys.readouterr().err


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


def test_a_tracker_that_is_not_installed_is_named() -> None:
    from transformers.integrations import integration_utils

    here = {*integration_utils.get_available_reporting_integrations(), "flyte"}
    missing = sorted(integration_utils.INTEGRATION_TO_CALLBACK.keys() - here)
    with pytest.raises(ConfigError, match=f"report_to: {missing[0]} is not installed here"):
        trackers(missing[:1])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        *(({"environment": name}, repr(name)) for name in ("nonsense", "no.such:thing", "json:nothing")),
        ({"weights": {"luck": 1.0}}, "there is no score 'luck'; the scores are format, line_f1"),
    ],
)
def test_episodes_that_cannot_be_played_are_refused_before_any(changes: dict[str, Any], said: str) -> None:
    section = LiveSection.model_validate({"environment": EPISODES, "live": {}, **changes})
    with pytest.raises(ConfigError, match=said):
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
    argv = [*launch, "-m", "gumshoe", "train", write_config(dataset, two, batch=1, **HELD_OUT)]
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


def test_accelerate_reads_the_shipped_configs() -> None:
    from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file

    paths = sorted(CONFIGS.glob("accelerate/*.yaml"))
    assert paths
    for path in paths:
        read = load_config_from_file(str(path))
        assert isinstance(read, ClusterConfig)
        given = yaml.safe_load(path.read_text())
        assert str(read.distributed_type).endswith(given["distributed_type"])
        assert given.keys() <= ClusterConfig.__dataclass_fields__.keys()


@pytest.mark.needs("bubblewrap")
def test_the_tutorial_leads_from_a_repository_to_a_model(root: Path, start: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "TUTORIAL_MODEL": str(start),
        "TUTORIAL_SANDBOX": "bubblewrap",
    }
    notebook = shutil.copy(root / "docs" / "tutorial.ipynb", tmp_path)
    argv = [Path(sys.executable).with_name("jupyter-execute"), "--inplace", "--timeout=200", notebook]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "runs" / "model" / "model" / "config.json").is_file()
    said = Path(notebook).read_text(encoding="utf-8")
    words = ("FAILED test_cart.py::test_shipping", "amount = 50", "reward 1.0", "resolved: True", "tokens trained")
    assert [word for word in words if word not in said] == []
