"""`gumshoe synth`: make verified bugs from projects with passing tests."""

from __future__ import annotations

import argparse
from pathlib import Path

from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.commands import config_from
from gumshoe.errors import ConfigError
from gumshoe.storage import check_folder

__all__ = ["configure_synth", "run_synth"]

EXAMPLES = """\
examples:
  gumshoe synth --out tasks/synth                              bugs in all bundled projects
  gumshoe synth --projects casebook:ledger ./my-project --out tasks/mine --seed 7 --per-project 40
  gumshoe synth configs/synth/casebook.yaml -p workers=4
"""


def configure_synth(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.epilog = EXAMPLES
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG", help="YAML file; options below override it")
    parser.add_argument("-p", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="set one key")
    parser.add_argument("--projects", nargs="+", metavar="PROJECT", help="casebook, casebook:NAME, or folders")
    parser.add_argument("--out", metavar="DIR", help="folder of the task set")
    parser.add_argument("--seed", type=int, help="equal seeds produce equal task sets")
    parser.add_argument("--per-project", type=int, metavar="N", help="maximum number of verified bugs per project")
    parser.add_argument("--workers", type=int, metavar="N", help="sandboxes used in parallel")


def run_synth(arguments: argparse.Namespace) -> int:
    """Makes the task set and says what was dropped and why. Raises GumshoeError."""
    options = ("projects", "out", "seed", "per_project", "workers")
    config = config_from(arguments, SynthConfig, options, "gumshoe synth")
    if not config.out:
        raise ConfigError("no folder for the task set: give --out DIR")
    from gumshoe.env.bugs.make import make_bugs, write_result
    from gumshoe.env.bugs.projects import find_projects
    from gumshoe.env.bugs.show import progress_line, summary

    check_folder(Path(config.out))
    with progress_line(len(find_projects(config.projects))) as report:
        result = make_bugs(
            config, lambda project, judged, kept: report(project, "bugs", f"{kept} bugs in {judged} candidates")
        )
    folder = write_result(result, config)
    summary(result, folder)
    return 0
