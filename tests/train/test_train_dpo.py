"""DPO on pairs of decisions: which tokens are compared, that the better one gains, resuming, and TRL's own script."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import pytest

from gumshoe.cli import main
from gumshoe.config import dump_config
from gumshoe.errors import DatasetError
from gumshoe.train.config import DpoConfig
from gumshoe.train.dpo import pair_of, train_dpo
from gumshoe.train.model import load_tokenizer
from gumshoe.train.rows.render import Renderer
from support.train.tiny_model import tiny_model
from support.train.training_rows import TOOLS, conversation, write_dataset

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def pair(number: int, **changes: Any) -> dict[str, Any]:
    """A row as `gumshoe export --view preferences` writes it, of the columns that training reads."""
    messages = conversation(number)
    wrong = {"role": "assistant", "content": "[seek 0.5] I give up.", "tool_calls": messages[2]["tool_calls"]}
    row = {"id": f"t{number}/1/0>1", "prompt": messages[:4], "chosen": [messages[4]], "rejected": [wrong]}
    return {**row, "tools": TOOLS, **changes}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = {"train": [pair(number) for number in range(4)]}
    return write_dataset(tmp_path_factory.mktemp("pairs"), rows, view="preferences")


def config(pairs: Path, out: Path, **changes: Any) -> DpoConfig:
    base = {"out": str(out), "dataset": str(pairs), "model": str(tiny_model()), "max_steps": 4, "batch": 2}
    rates = {"learning_rate": 1e-3, "log_every": 1, "device": "cpu", "max_length": 1024, "warmup": 0}
    return DpoConfig.model_validate({**base, **rates, **changes})


def test_only_the_two_decisions_are_compared(renderer: Renderer) -> None:
    found = pair_of(pair(1), renderer)
    prompt, chosen, rejected = (renderer.decode(ids) for ids in (found.prompt, found.chosen, found.rejected))
    assert prompt.endswith("<|im_start|>assistant\n")
    assert "[step 0] 1 failed" in prompt
    assert chosen.startswith("[seek 0.5] I read total.")
    assert '"path": "shop/part1.py"' in chosen
    assert chosen.endswith("</tool_call><|im_end|>\n")
    assert rejected.startswith("[seek 0.5] I give up.")


def test_pairs_that_say_nothing_are_refused(renderer: Renderer) -> None:
    with pytest.raises(DatasetError, match="chosen and rejected are the same"):
        pair_of(pair(1, rejected=pair(1)["chosen"]), renderer)
    with pytest.raises(DatasetError, match="rejected contains nothing written by an assistant"):
        pair_of(pair(1, rejected=[{"role": "user", "content": "no"}]), renderer)


def test_the_better_decision_gains_and_a_stopped_run_goes_on(pairs: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    made = config(pairs, tmp_path / "run", save_every=2, keep=2, beta=1.0)
    result = train_dpo(made)
    facts = result.facts or {}
    assert (facts["pairs"], facts["steps"], facts["pairs whose better decision gained more"]) == (4, 4, 1.0)
    losses = [entry["loss"] for entry in map(json.loads, result.log.read_text().splitlines()) if "loss" in entry]
    assert losses[0] == pytest.approx(0.6931, abs=1e-3), "nothing is preferred before the first step"
    assert losses[-1] < losses[0]
    card = (result.model / "README.md").read_text()
    assert "with DPO (beta 1) from pairs" in card
    assert "| pairs | 4 |" in card
    assert AutoModelForCausalLM.from_pretrained(str(result.model)).num_parameters() == facts["parameters"]
    assert train_dpo(made).facts is None, "it is done"
    result.model.rename(tmp_path / "model")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "checkpoint-4")
    again = train_dpo(made).facts or {}
    assert (again["steps"], again["pairs whose better decision gained more"]) == (4, 1.0)
    lines = [json.loads(line) for line in result.log.read_text().splitlines()]
    assert [entry["step"] for entry in lines if "loss" in entry] == [1, 2, 3, 4]


def test_adapters_are_merged(pairs: Path, tmp_path: Path) -> None:
    result = train_dpo(config(pairs, tmp_path / "run", adapters={"rank": 2}, max_steps=1))
    assert (tmp_path / "run" / "adapters" / "adapter_config.json").is_file()
    assert (result.model / "model.safetensors").is_file()
    assert not (result.model / "adapter_config.json").exists()


def test_the_commands_know_pairs(pairs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dpo.yaml"
    file.write_text(dump_config(config(pairs, tmp_path / "run", max_steps=1)), encoding="utf-8")
    assert main(["preflight", str(file)]) == 0
    out = capsys.readouterr().out
    assert "4 pairs" in out
    assert "I give up." in out
    assert main(["preflight", str(file), "-p", "max_length=100"]) == 2
    assert "4 of 4 pairs have more than max_length 100 tokens" in capsys.readouterr().err
    assert main(["train", str(file)]) == 0
    assert "pairs: 4\n" in capsys.readouterr().out


def test_a_bare_script_of_trl_trains_on_the_export(pairs: Path, tmp_path: Path) -> None:
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    rows: Any = datasets.load_dataset(str(pairs), "preferences", split="train", cache_dir=str(tmp_path / "cache"))
    arguments = DPOConfig(output_dir=str(tmp_path / "out"), max_steps=1, use_cpu=True, report_to=[], max_length=None)
    trainer = DPOTrainer(
        model=str(tiny_model()),
        args=arguments,
        train_dataset=rows,
        processing_class=load_tokenizer(str(tiny_model()), None),
    )
    assert trainer.train().global_step == 1
