"""`gumshoe doctor`: which sandboxes work here, and why the others do not; cleaning up after dead runs."""

from __future__ import annotations

import argparse
import platform
import shutil

from rich.console import Console
from rich.table import Table

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import ORDER, choose, why_not
from gumshoe.errors import ConfigError, SandboxError

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe doctor                          what works, and what `auto` would pick
  gumshoe doctor --image python:3.12      look for another image
  gumshoe doctor --reap                   remove what runs have left whose process has died
"""
ISOLATION = {
    "docker": "container without network",
    "bubblewrap": "namespaces without network",
    "local": "none: for trusted scripts only",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.epilog = EPILOG
    parser.add_argument("--image", default=SandboxConfig().image, help="container image (default: %(default)s)")
    parser.add_argument("--reap", action="store_true", help="remove what dead runs of this machine have left")


def run(arguments: argparse.Namespace) -> int:
    """Prints the table; 1 when no sandbox works that isolates."""
    console = Console(soft_wrap=True)
    config = SandboxConfig(image=arguments.image)
    reasons = {kind: why_not(kind, None, config) for kind in ORDER}
    console.print(_table(reasons))
    console.print(f"python {platform.python_version()}, git {'found' if shutil.which('git') else 'not found'}")
    if reasons["docker"] is None:
        console.print(f"image {config.image}: {_digest(config.image)}", highlight=False)
    for trusted, whose in ((False, "a model"), (True, "a trusted script")):
        console.print(f"for {whose}: {_pick(config, trusted=trusted)}", highlight=False)
    if arguments.reap:
        _reap(console)
    return 0 if reasons["docker"] is None or reasons["bubblewrap"] is None else 1


def _table(reasons: dict[str, str | None]) -> Table:
    table = Table("sandbox", "works", "isolation", "why not")
    for kind, reason in reasons.items():
        table.add_row(kind, "yes" if reason is None else "no", ISOLATION[kind], reason or "")
    return table


def _digest(image: str) -> str | None:
    from gumshoe.env.sandboxes.engine import image_digest

    return image_digest(image)


def _pick(config: SandboxConfig, *, trusted: bool) -> str:
    try:
        return choose(None, config, trusted=trusted).sentence
    except (ConfigError, SandboxError) as error:
        return str(error)


def _reap(console: Console) -> None:
    from gumshoe.env.sandboxes.engine import reap_orphans
    from gumshoe.env.sandboxes.owners import reap_folders

    _say_removed(console, "temporary folders", reap_folders())
    try:
        _say_removed(console, "containers", reap_orphans())
    except SandboxError as error:
        console.print(f"no containers removed: {error}", highlight=False)


def _say_removed(console: Console, what: str, removed: list[str]) -> None:
    names = f": {', '.join(removed)}" if removed else ""
    console.print(f"removed {len(removed)} {what} of dead runs{names}", highlight=False)
