"""Whether forks of the test server get the same outcomes as fresh interpreters, on the packages of a harvest.

    python -m benchmarks.claims.parity tasks/packages [--tasks 2] [--forks 3] [--fresh 2]

For each package, the first tasks of its set are run whole in fresh interpreters and in forks, in one sandbox.
Outcome, message and innermost frame of each test, and the exit code, have to be equal. Memory addresses do not count.
Tests that already differ between fresh interpreters are set aside and counted. Exit code 1: something differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gumshoe.env import SandboxConfig
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.taskset import load_taskset
from gumshoe.env.workspace import Workspace
from gumshoe.records import Task, TestRun

Seen = Mapping[str, tuple[str, str, str]]


def main() -> int:
    """Runs the tests of each package both ways, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("taskset", type=Path, metavar="SET", help="what gumshoe harvest wrote")
    parser.add_argument("--tasks", type=int, default=2, help="tasks of each package (2)")
    parser.add_argument("--forks", type=int, default=3, help="runs in forks (3)")
    parser.add_argument("--fresh", type=int, default=2, help="runs in fresh interpreters (2)")
    parser.add_argument("--sandbox", default="bubblewrap", help="sandbox kind (bubblewrap)")
    options = parser.parse_args()
    table = Table("package", "tests", "forked", "fresh s", "forked s", "outcomes")
    same = True
    for folder in sorted((options.taskset / "packages").iterdir()):
        if not (folder / "tasks.jsonl").is_file():
            continue
        for task, _ in load_taskset(folder)[: options.tasks]:
            row, equal = compare(task, SandboxConfig(kind=options.sandbox), options.forks, options.fresh)
            same = same and equal
            table.add_row(folder.name, *row)
            print(folder.name, *row, file=sys.stderr, flush=True)
    Console().print(table)
    return 0 if same else 1


def compare(task: Task, config: SandboxConfig, forks: int, fresh: int) -> tuple[list[str], bool]:
    """The table cells of one task, and whether all runs agreed."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        workspace = Workspace(task, sandbox)
        cold = [workspace.run_tests() for _ in range(fresh)]
        warm = [workspace.run_tests(warm=True) for _ in range(forks)]
    codes = {run.result.exit_code for run in cold}
    tests = [_tests(run) for run in cold]
    unstable = {name for each in tests for name in {*each, *tests[0]} if each.get(name) != tests[0].get(name)}
    stable = _without(tests[0], unstable)
    wrong = [
        number
        for number, run in enumerate(warm, 1)
        if run.result.exit_code not in codes or _without(_tests(run), unstable) != stable
    ]
    forked = [run for run in warm if run.result.warm]
    why = next((run.result.cold for run in warm if run.result.cold), None)
    cells = [
        str(len(cold[0].outcomes)),
        f"{len(forked)} of {len(warm)}" + (f": {why}" if why else ""),
        f"{min(run.result.duration_s for run in cold):.1f}",
        f"{min(run.result.duration_s for run in warm):.1f}",
        ("equal" if not wrong else f"differ in forks {wrong}") + (f", {len(unstable)} unstable" if unstable else ""),
    ]
    return cells, not wrong


def _tests(run: TestRun) -> Seen:
    """What has to be equal."""
    return {
        each.id: (
            each.outcome,
            re.sub(r"0x[0-9a-f]+", "0x", each.message),
            "" if not each.frames else f"{each.frames[-1].path}:{each.frames[-1].line}",
        )
        for each in run.outcomes
    }


def _without(tests: Seen, names: set[str]) -> Seen:
    return {name: facts for name, facts in tests.items() if name not in names}


if __name__ == "__main__":
    sys.exit(main())
