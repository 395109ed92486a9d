"""`gumshoe doctor`: which sandboxes work here, and why the others do not; cleaning up after dead runs."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys

from rich.table import Table

from gumshoe.console import Console
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.host.bwrap import find_bwrap
from gumshoe.env.sandboxes.host.seccomp import filter_unavailable_reason
from gumshoe.env.sandboxes.open import ISOLATION, ORDER, choose, open_sandbox, unavailable_reason
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, SandboxError

EPILOG = """\
examples:
  gumshoe doctor                          what works, and what `auto` picks
  gumshoe doctor --image python:3.12      check another image
  gumshoe doctor --reap                   remove leftovers of dead runs
"""
PROBE_TIMEOUT_S = 60.0


def configure_doctor(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.epilog = EPILOG
    parser.add_argument("--image", default=SandboxConfig().image, help="container image (default: %(default)s)")
    parser.add_argument("--reap", action="store_true", help="remove leftovers of dead runs on this machine")


def run_doctor(arguments: argparse.Namespace) -> int:
    """Prints the table and pulls nothing; 1 when no sandbox isolates, or the one that models get cannot run pytest."""
    console = Console(soft_wrap=True)
    config = SandboxConfig(image=arguments.image, pull="never")
    reasons = {kind: unavailable_reason(kind, None, config) for kind in ORDER}
    console.print(_table(reasons))
    console.print(f"python {platform.python_version()}, git {'found' if shutil.which('git') else 'not found'}")
    if reasons["bubblewrap"] is None:
        bwrap = find_bwrap()
        console.print(f"bubblewrap: {bwrap.path}, version {bwrap.version}", highlight=False)
    for kind in ("docker", "podman"):
        if reasons[kind] is None:
            from gumshoe.env.sandboxes.engine import ENGINES, image_digest

            digest = image_digest(config.image, ENGINES[kind])
            console.print(f"{kind}: image {config.image} {digest}", highlight=False)
    console.print(f"filter of system calls: {filter_unavailable_reason() or 'on'}", highlight=False)
    for trusted, whose in ((False, "a model"), (True, "a trusted script")):
        console.print(f"for {whose}: {_pick(config, trusted=trusted)}", highlight=False)
    pytest_works, pytest_said = try_pytest(config)
    console.print(pytest_said, highlight=False)
    if arguments.reap:
        _reap(console)
    return 0 if pytest_works else 1


def _table(reasons: dict[str, str | None]) -> Table:
    table = Table("sandbox", "works", "isolation", "what to do")
    for kind, reason in reasons.items():
        table.add_row(kind, "yes" if reason is None else "no", ISOLATION[kind], reason or "")
    return table


def _pick(config: SandboxConfig, *, trusted: bool) -> str:
    try:
        return f"sandbox {choose(None, config, trusted=trusted)}"
    except (ConfigError, SandboxError) as error:
        return str(error)


def try_pytest(config: SandboxConfig) -> tuple[bool, str]:
    """Runs pytest in the sandbox that a model's calls get: whether it works there, and a line that says so."""
    task, _ = load_tasks("casebook")[0]
    try:
        kind = choose(None, config, trusted=False)
    except (ConfigError, SandboxError):
        return False, "pytest: not tried, for want of a sandbox"
    try:
        with open_sandbox(task, config.model_copy(update={"kind": kind}), trusted=True) as sandbox:
            result = sandbox.run(["python", "-m", "pytest", "--version"], timeout=PROBE_TIMEOUT_S)
    except (ConfigError, SandboxError) as error:
        return False, f"pytest: not tried: {error}"
    said = " ".join(result.output.split()) or f"exit code {result.exit_code}"
    if result.exit_code == 0:
        return True, f"pytest in {kind}: {said}"
    where = f"the image {config.image}" if kind in ("docker", "podman") else f"{sys.prefix}, or name it in packages"
    return False, f"pytest in {kind}: {said}; bundled tasks need it: install it in {where}"


def _reap(console: Console) -> None:
    from gumshoe.env.sandboxes.engine import ENGINES, reap_orphans
    from gumshoe.env.sandboxes.host.owners import reap_folders

    _say_removed(console, "temporary folders", reap_folders())
    for kind, engine in ENGINES.items():
        try:
            _say_removed(console, f"{kind} containers", reap_orphans(engine))
        except SandboxError as error:
            console.print(f"no containers were removed: {error}", highlight=False)


def _say_removed(console: Console, what: str, removed: list[str]) -> None:
    names = f": {', '.join(removed)}" if removed else ""
    console.print(f"removed {len(removed)} {what} of dead runs{names}", highlight=False)
