"""What the test server saves on real packages: one bug from each package of a harvested set, in a table.

    python -m benchmarks.speed.warm_tests tasks/packages --json bench-warm.json

The figures are those of `env.py`, each divided by its baseline of the same run: `eval` and the debugger up to its
first breakpoint by the bare test command, a quick `whatif` of 8 variants by a run of the failing tests alone.
Snapshot and restore, with the debugger paused, are in milliseconds. The bugs are the first that `drawn_bugs.py` draws.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.bug import Bug, as_bug, gold_edit
from benchmarks.results.drawn_bugs import draw
from benchmarks.speed.env import paused_env, snapshot_times, test_times
from gumshoe.errors import GumshoeError

GOALS = {"eval": 0.5, "debugger": 0.5, "whatif": 3.0, "snapshot ms": 30.0}
"""What each figure may be at most."""


def main() -> None:
    """Measures one package after the other, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="a set that `gumshoe harvest` made")
    parser.add_argument("--backend", default="bubblewrap", help="sandbox (bubblewrap)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of each (3)")
    parser.add_argument("--suite-s", type=float, default=2.0, help="leave out packages whose tests take longer (2)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    console = Console()
    found: dict[str, dict[str, float]] = {}
    for package, bug in chosen(options.path, options.suite_s).items():
        try:
            row = found[package] = figures(bug, options.backend, options.repeats)
            shown = ", ".join(f"{name} {_cell(name, value)}" for name, value in row.items())
            console.print(f"{bug.task.id}: {shown}", highlight=False)
        except (GumshoeError, SystemExit) as error:
            console.print(f"[yellow]{package} left out: {error}")
    if not found:
        raise SystemExit("no package could be measured")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    table = Table("package", "bare ms", *GOALS, title=f"{options.backend}: goals at most {GOALS}")
    for package, row in sorted(found.items()):
        table.add_row(package, *(_cell(name, value) for name, value in row.items()))
    console.print(table)
    for name, most in GOALS.items():
        met = sum(row[name] <= most for row in found.values())
        console.print(f"{name}: {met} of {len(found)} packages, median {median(found, name):.2f}", highlight=False)


def figures(bug: Bug, backend: str, repeats: int) -> dict[str, float]:
    """The figures of one bug, in the order of the table."""
    config = bug.sandbox(backend)
    measured = test_times(bug, config, repeats, leave_out=("suspects", "whatif, 8 variants"))
    times = {name: statistics.median(each) for name, each in measured.items()}
    with paused_env(bug, config) as env:
        paused = snapshot_times(env, 5)
    return {
        "bare ms": 1e3 * times["bare test command"],
        "eval": times["eval"] / times["bare test command"],
        "debugger": times["pdb restart, b, c"] / times["bare test command"],
        "whatif": times["whatif, 8 variants, quick"] / times["one failing test"],
        "snapshot ms": 1e3 * statistics.median(paused),
    }


def chosen(path: str, suite_s: float) -> dict[str, Bug]:
    """The first bug of each package whose fix is one hunk."""
    bugs: dict[str, Bug] = {}
    for task, oracle in draw(path, suite_s=suite_s):
        if gold_edit(oracle) is not None:
            bugs.setdefault(str(task.tags["project"]), as_bug(task, oracle))
    return bugs


def median(found: dict[str, dict[str, float]], name: str) -> float:
    """The median of a figure over the packages."""
    return statistics.median(row[name] for row in found.values())


def _cell(name: str, value: float) -> str:
    text = f"{value:.0f}" if name == "bare ms" else f"{value:.2f}"
    return text if value <= GOALS.get(name, value) else f"[red]{text}[/]"


if __name__ == "__main__":
    main()
