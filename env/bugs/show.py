"""What `gumshoe synth` and `gumshoe harvest` show on the terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.table import Column, Table

from gumshoe.console import Console
from gumshoe.env.bugs.make import SynthResult
from gumshoe.env.bugs.packages.stages import PackageReport
from gumshoe.text import plural

__all__ = ["progress_line", "show_reports", "summary"]

EVERY_S = 15.0
REASONS = {
    "survived": "survived (no test failed)",
    "uncovered": "no test runs the line",
    "duplicate": "fails like another on the same line",
    "half": "repairing one of two places is enough",
    "all_fail": "every test fails",
    "collection": "the tests cannot be loaded",
    "timeout": "ran too long",
    "memory": "used up the memory",
    "crashed": "the process died",
    "flaky": "two runs differ",
}


@contextmanager
def progress_line(total: int) -> Generator[Callable[[str, str, str], None]]:
    """Yields what reports a project or package out of `total`, its stage, and what is being done there.

    It is shown in one line on a terminal, else in a line for each stage and one now and then.
    """
    console = Console(stderr=True)
    lock = threading.Lock()
    stages: dict[str, str] = {}
    shown: dict[str, float] = {}
    status = console.status("") if sys.stderr.isatty() else None

    def report(name: str, stage: str, text: str) -> None:
        with lock:
            fresh = stages.get(name) != stage
            stages[name] = stage
            line = f"{len(stages)}/{total} {name}: {stage}{f' ({text})' if text else ''}"
            if status is not None:
                status.start()
                status.update(line)
            elif fresh or time.monotonic() - shown.get(name, 0.0) > EVERY_S:
                shown[name] = time.monotonic()
                print(line, file=sys.stderr, flush=True)

    try:
        yield report
    finally:
        if status is not None:
            status.stop()


def summary(result: SynthResult, folder: Path) -> None:
    """What was kept of each project and why the rest was dropped."""
    total: Counter[str] = sum(result.counts.values(), Counter())
    console = Console()
    console.print(_projects(result, total))
    dropped = [f"{count} {REASONS[reason]}" for reason, count in total.most_common() if reason != "kept"]
    console.print(f"{total.total()} candidates tried, {total['kept']} kept; dropped: {', '.join(dropped) or 'none'}")
    splits = Counter(task.tags["split"] for task, _ in result.tasks)
    console.print(", ".join(f"{count} {split}" for split, count in sorted(splits.items())))
    console.print(f"{plural(len(result.tasks), 'task')} in {folder}", soft_wrap=True)


def _projects(result: SynthResult, total: Counter[str]) -> Table:
    reasons = [reason for reason in REASONS if total[reason]]
    table = Table(Column("project", no_wrap=True), Column("split", no_wrap=True), "kept", *reasons)
    for project, counts in result.counts.items():
        splits = {task.tags["split"] for task, _ in result.tasks if task.tags["project"] == project}
        held = "held out" if "heldout_projects" in splits else "train"
        table.add_row(project, held, str(counts["kept"]), *(str(counts[reason]) for reason in reasons))
    return table


def show_reports(reports: Sequence[PackageReport]) -> None:
    """A table of the packages that gave a set, why the others did not, and the totals."""
    console = Console()
    done = [report for report in reports if report.done]
    if done:
        console.print(_packages(done))
    for report in reports:
        if report.stage and not report.done:
            why = f"{report.stage}: {report.reason}" if report.reason else f"not finished ({report.stage})"
            console.print(f"{_name(report)}: {why}", soft_wrap=True, markup=False, highlight=False)
    for report in reports:
        if report.commits:
            became = ", ".join(f"{count} {what}" for what, count in Counter(report.commits).most_common())
            total = plural(sum(report.commits.values()), "commit")
            console.print(f"{_name(report)}: {total}: {became}", soft_wrap=True, markup=False, highlight=False)
    waiting = [report.name for report in reports if not report.stage]
    if waiting:
        console.print(f"not begun: {', '.join(waiting)}", soft_wrap=True, markup=False, highlight=False)
    bugs = sum(report.verified for report in done)
    console.print(
        f"{len(done)} of {len(reports)} packages produced a set, {plural(bugs, 'verified bug')}", soft_wrap=True
    )


def _packages(reports: Sequence[PackageReport]) -> Table:
    """The figures of packages that gave a set: deselected tests are `left out`, bugs that fail the check `rejected`."""
    numbers = ("tests", "left out", "s", "tried", "bugs", "bugs/min", "rejected")
    # Where the terminal is too narrow, names are folded: half a number would be a different one.
    columns = [Column(name, justify="right", no_wrap=True, min_width=len(name)) for name in numbers]
    package = Column("package", overflow="fold")
    table = Table(package, *columns, box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False)
    for report in reports:
        table.add_row(
            _name(report),
            str(report.tests),
            str(len(report.deselected)),
            f"{sum(report.seconds.values()):.0f}",
            str(report.candidates),
            str(report.verified),
            f"{report.bugs_a_minute:.0f}",
            str(len(report.rejected) or ""),
        )
    return table


def _name(report: PackageReport) -> str:
    return f"{report.name} {report.version}".strip()
