"""`gumshoe init`: write a commented llm.yaml."""

from __future__ import annotations

import argparse
from pathlib import Path

from gumshoe.collect.policies.llm import llm_path, write_template

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe init
  gumshoe init --path ./llm.yaml && export GUMSHOE_LLM_CONFIG=./llm.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("--path", type=Path, help="file to create (default: in the user's config folder)")


def run(arguments: argparse.Namespace) -> int:
    """Writes the file and says where."""
    path = arguments.path or llm_path()
    write_template(path)
    print(f"{path}: add your models there; only you can read the file")
    return 0
