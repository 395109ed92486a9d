"""A task source: some bugs from each package of a harvested set, most of them hard, for `tasks.source` of a config.

    gumshoe eval configs/eval/investigator.yaml -p tasks.options.path=tasks/packages    from the repository
    python -m benchmarks.results.drawn_bugs tasks/packages    how many bugs of each package that would be

A bug is hard if the changed function is not the sole top suspect by Ochiai: its tag `suspect` is `tied`, `below` or
`none`. Which bugs are drawn depends on their ids alone, so adding packages changes nothing for the existing ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Collection, Sequence
from pathlib import Path

from gumshoe.env.tasks.taskset import load_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task

HARD = ("tied", "below", "none")
SHARE = 0.75
"""The share of hard bugs."""

Pairs = list[tuple[Task, Oracle]]


def draw(
    path: str,
    leave_out: Sequence[str] = (),
    per_package: int = 12,
    suite_s: float = 5.0,
    packages: Sequence[str] | None = None,
) -> Pairs:
    """The bugs of an evaluation.

    Args:
        path: a set that `gumshoe harvest` made.
        leave_out: packages that were looked at before.
        per_package: at most this many bugs per package, three in four of them hard; fewer if it has fewer hard ones.
        suite_s: packages whose tests take longer than this, in seconds, are left out.
        packages: the packages to draw from; None: all of the set.

    Raises TaskError where there is no such set.
    """
    folders = Path(path) / "packages"
    if not folders.is_dir():
        raise TaskError(f"{path} is no set of packages: make it with `gumshoe harvest ... --out {path}`")
    return [
        pair
        for folder in sorted(folders.iterdir())
        if (packages is None or folder.name in packages) and folder.name not in leave_out
        if _is_ready(folder, suite_s)
        for pair in _draw_from_package(load_taskset(folder), per_package)
    ]


def _is_ready(folder: Path, suite_s: float) -> bool:
    """Whether the set of a package is complete, and its tests are quick."""
    report = folder / "report.json"
    if not report.is_file():
        return False
    facts = json.loads(report.read_text())
    return bool(facts["done"] and facts["verified"]) and facts["suite_s"] <= suite_s


def _draw_from_package(pairs: Pairs, most: int) -> Pairs:
    hard = _draw(pairs, HARD, round(most * SHARE))
    return hard + _draw(pairs, ("first",), round(len(hard) * (1 - SHARE) / SHARE))


def _draw(pairs: Pairs, suspect: Collection[str], most: int) -> Pairs:
    found = [pair for pair in pairs if pair[0].tags.get("suspect") in suspect]
    return sorted(found, key=lambda pair: hashlib.sha256(pair[0].id.encode()).digest())[:most]


def main() -> None:
    """Prints the packages with the number of their bugs, hard ones and all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path")
    parser.add_argument("--leave-out", nargs="*", default=[], metavar="PACKAGE")
    options = parser.parse_args()
    drawn = draw(options.path, options.leave_out)
    for project in dict.fromkeys(task.tags["project"] for task, _ in drawn):
        of_project = [task for task, _ in drawn if task.tags["project"] == project]
        print(project, sum(task.tags["suspect"] in HARD for task in of_project), len(of_project))
    print("all", sum(task.tags["suspect"] in HARD for task, _ in drawn), len(drawn))


if __name__ == "__main__":
    main()
