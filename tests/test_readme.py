"""The commands in README.md are ones that the command line takes, with the keys that they set."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from gumshoe.cli import COMMANDS
from gumshoe.collect.config import CollectConfig
from gumshoe.config import Config, load_config
from gumshoe.env.synth.config import SynthConfig
from gumshoe.eval.config import EvalConfig
from gumshoe.train.config import TrainConfig

ROOT = Path(__file__).parents[1]
CONFIGS: dict[str, type[Config]] = {
    "synth": SynthConfig,
    "collect": CollectConfig,
    "train": TrainConfig,
    "eval": EvalConfig,
}


def commands() -> list[list[str]]:
    """The words of each command in the blocks of README.md, comments left out."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]


def ours() -> list[list[str]]:
    return [words[1:] for words in commands() if words[0] == "gumshoe"]


def test_there_are_commands():
    assert {words[0] for words in ours()} >= {"collect", "export", "train", "serve", "eval", "harvest", "view"}


@pytest.mark.parametrize("words", ours(), ids=" ".join)
def test_a_command_exists_and_takes_its_keys(words: list[str]):
    name, *arguments = words
    assert name in COMMANDS
    if name not in CONFIGS:
        return
    keys = [value for flag, value in itertools.pairwise(arguments) if flag == "-p"]
    if not arguments[0].startswith("-"):
        load_config(CONFIGS[name], Path(arguments[0]), keys)


@pytest.mark.parametrize("words", [words for words in commands() if words[0] == "make"], ids=" ".join)
def test_a_make_target_exists(words: list[str]):
    assert re.search(rf"(?m)^{re.escape(words[1])}:", (ROOT / "Makefile").read_text(encoding="utf-8"))
