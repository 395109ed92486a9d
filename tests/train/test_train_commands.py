"""The commands `train` and `preflight` as a user runs them: one clear line and exit code 2 for wrong inputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.cli import main
from support.train.tiny_model import tiny_model
from support.train.training_rows import conversation, row, write_dataset

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture
def config_file(dataset: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(
        f"out: {tmp_path}/run\ndataset: {dataset}\nmodel: {tiny_model()}\nmax_steps: 2\nlearning_rate: 0.01\n"
        "max_length: 1024\nlog_every: 1\ndevice: cpu\nthreads: 1\n"
    )
    return path


def gumshoe(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gumshoe", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **OFFLINE}, check=False)


def test_train_says_what_it_did_and_where_it_is_and_that_it_is_done(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = gumshoe("train", config_file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("6 rows, ")
    assert "2 steps in" in done.stdout
    assert f"model  {tmp_path}/run/model" in done.stdout
    assert done.stderr.splitlines() == [line for line in done.stderr.splitlines() if line.startswith("step ")]
    assert main(["train", str(tmp_path / "run" / "config.yaml")]) == 0
    assert "has already been trained" in capsys.readouterr().out


def test_resume_from_a_named_checkpoint(config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import shutil

    assert main(["train", str(config_file), "-p", "save_every=1", "-p", "keep=2"]) == 0
    shutil.rmtree(tmp_path / "run" / "model")
    checkpoint = str(tmp_path / "run" / "checkpoints" / "checkpoint-1")
    assert main(["train", str(tmp_path / "run" / "config.yaml"), "--resume", checkpoint]) == 0
    assert "2 steps in" in capsys.readouterr().out
    assert main(["train", str(config_file), "--resume", str(tmp_path)]) == 2


def test_preflight_shows_the_mask_and_the_counts(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "mask.html"
    assert main(["preflight", str(config_file), "--row", "1", "--html", str(page), "--rows", "3"]) == 0
    shown = capsys.readouterr().out
    assert "[seek 0.5] I read total." in shown
    assert "6 rows" in shown
    assert page.read_text().count("<details") == 3


def test_preflight_on_a_model_folder(config_file: Path, start: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", str(config_file), "-p", f"model={start}"]) == 0
    assert "nothing to train" in capsys.readouterr().out


def test_preflight_fails_on_rows_with_nothing_to_train(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_dataset(tmp_path / "data", {"train": [row(0), row(1, messages=conversation(1)[:2])]})
    assert main(["preflight", str(config_file), "-p", f"dataset={data}"]) == 2
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
    command: str, words: list[str], message: str, config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(config_file), *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len([line for line in error.splitlines() if line.startswith("gumshoe ")]) == 1


def test_a_dataset_without_messages(config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_dataset(tmp_path / "data", {"train": [{"id": "a"}]})
    assert main(["train", str(config_file), "-p", f"dataset={data}"]) == 2
    assert f"gumshoe train: dataset {data} has no column messages" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_preflight_of_a_row_that_is_not_there(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preflight", str(config_file), "--row", "6"]) == 2
    assert "the rows are 0 to 5" in capsys.readouterr().err


def test_a_ten_line_trl_script_trains_on_the_dataset(dataset: Path, start: Path, tmp_path: Path) -> None:
    """Nothing from Gumshoe is imported: the dataset and the model folder are enough."""
    script = f"""
import datasets, trl
from transformers import AutoModelForCausalLM, AutoTokenizer
rows = datasets.load_dataset({str(dataset)!r}, "seeker", split="train").select_columns(["messages", "tools"])
model, tokenizer = AutoModelForCausalLM.from_pretrained({str(start)!r}), AutoTokenizer.from_pretrained({str(start)!r})
settings = {{"assistant_only_loss": True, "max_length": 1024, "max_steps": 1, "use_cpu": True, "report_to": []}}
arguments = trl.SFTConfig({str(tmp_path / "out")!r}, **settings)
trainer = trl.SFTTrainer(model, arguments, train_dataset=rows, processing_class=tokenizer)
trainer.train()
assert len(trainer.train_dataset) == 6
print([tokenizer.decode([t for t in row["labels"] if t != -100]) for row in trainer.train_dataset][3])
"""
    command = [sys.executable, "-c", script]
    environment = {**os.environ, **OFFLINE, "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert '{"name": "view", "arguments": {"path": "shop/part3.py", "start": 31}}' in done.stdout
    assert "[step 1]" not in done.stdout
