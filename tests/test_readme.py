"""The commands in README.md are ones that the command line takes, with the keys that they set."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from gumshoe.cli import COMMANDS
from gumshoe.commands.config import CONFIGS, config_model
from gumshoe.config import Config, load_config

ROOT = Path(__file__).parents[1]


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
    if name not in CONFIGS or name == "harvest" or arguments[0].startswith("-"):
        return  # Those of `harvest` are sources, not configs.
    model = config_model(name)
    assert issubclass(model, Config)
    load_config(model, Path(arguments[0]), [value for flag, value in itertools.pairwise(arguments) if flag == "-p"])


@pytest.mark.parametrize("words", [words for words in commands() if words[0] == "make"], ids=" ".join)
def test_a_make_target_exists(words: list[str]):
    assert re.search(rf"(?m)^{re.escape(words[1])}:", (ROOT / "Makefile").read_text(encoding="utf-8"))
