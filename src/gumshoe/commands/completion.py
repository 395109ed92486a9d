"""`gumshoe completion`: a script that completes commands, options and paths in a shell."""

from __future__ import annotations

import argparse
from pathlib import Path

import shtab

from gumshoe.cli import COMMANDS, make_parser

__all__ = ["configure", "run"]

EXAMPLES = """\
examples:
  source <(gumshoe completion bash)                                       in this shell
  gumshoe completion bash > ~/.local/share/bash-completion/completions/gumshoe
  gumshoe completion zsh > ~/.zfunc/_gumshoe                              with fpath+=~/.zfunc in ~/.zshrc
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's argument."""
    parser.epilog = EXAMPLES
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="shell that the script is for")


def run(arguments: argparse.Namespace) -> int:
    """Prints the script."""
    parser = make_parser(COMMANDS)
    _complete_paths(parser)
    print(shtab.complete(parser, arguments.shell))
    return 0


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    """Completes file names for every argument that is a path."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - argparse has no other way to list them
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                _complete_paths(command)
        elif action.type is Path:
            setattr(action, "complete", shtab.FILE)  # noqa: B010 - an attribute that only shtab knows
