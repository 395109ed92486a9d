"""`gumshoe harvest`: from the names of packages to verified tasks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gumshoe.env.commands import config_from
from gumshoe.errors import ConfigError

__all__ = ["configure_harvest", "run_harvest"]

EXAMPLES = """\
examples:
  gumshoe harvest toolz==1.2 --out tasks/toolz                 a package from pip's configured index
  gumshoe harvest ./my-project ~/src/other --out tasks/mine    folders and git repositories
  gumshoe harvest configs/harvest/packages.txt --out tasks/real -p per_package=50 -p workers=4
  gumshoe harvest --config configs/harvest/forty.yaml
  gumshoe harvest --config configs/harvest/history.yaml ~/src/project --out tasks/fixed    bugs that people repaired
  gumshoe harvest --status --out tasks/real
  gumshoe harvest --rebuild tasks/real                         the environments of a set from another machine

Stages: get, environment, baseline, bugs, history, check, difficulty. To resume, run the same command again. Packages
are downloaded and unpacked on this machine; their code runs only in sandboxes, with network access only while their
environment is being built. Exit code 1: no package produced a set.
"""


def configure_harvest(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.epilog = EXAMPLES
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="folder, git repository, sdist, requirement, or a file that lists them",
    )
    parser.add_argument("--out", metavar="SET", help="folder of the task set")
    parser.add_argument("--config", type=Path, metavar="CONFIG", help="YAML file; other options override it")
    parser.add_argument("-p", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="set one key")
    parser.add_argument("--workers", type=int, metavar="N", help="packages processed in parallel")
    parser.add_argument("--status", action="store_true", help="show the progress of the harvest in --out, and exit")
    parser.add_argument("--rebuild", type=Path, metavar="SET", help="build the environments of a set on this machine")


def run_harvest(arguments: argparse.Namespace) -> int:
    """Harvests, or shows a harvest. Raises GumshoeError."""
    from gumshoe.env.bugs.config import HarvestConfig
    from gumshoe.env.bugs.packages.harvest import harvest, rebuild, reports_in
    from gumshoe.env.bugs.packages.sources import parse_sources
    from gumshoe.env.bugs.show import progress_line, show_reports

    config = config_from(arguments, HarvestConfig, ("sources", "out", "workers"), "gumshoe harvest")
    if arguments.rebuild is not None:
        built = rebuild(arguments.rebuild, config.build, lambda text: print(text, file=sys.stderr))
        print(f"{len(built)} environments built" if built else "all environments are on this machine")
        return 0
    if not config.out:
        raise ConfigError("no folder for the task set: give --out SET")
    if arguments.status:
        show_reports(reports_in(Path(config.out)))
        return 0
    if not config.sources:
        raise ConfigError("no package: give folders, git repositories, sdists, requirements, or a file that lists them")
    with progress_line(len(parse_sources(config.sources))) as progress:
        reports = harvest(config, progress)
    show_reports(reports)
    print(f"tasks in {config.out}")
    return 0 if any(report.done for report in reports) else 1
