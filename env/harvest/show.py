"""What `gumshoe harvest` shows on the terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rich import box
from rich.table import Column, Table

from gumshoe.console import Console
from gumshoe.env.harvest.package import PackageReport
from gumshoe.env.harvest.run import Progress
from gumshoe.tools.text import plural

__all__ = ["progress_line", "show_reports"]

EVERY_S = 15.0


@contextmanager
def progress_line(total: int) -> Generator[Progress]:
    """Yields what `harvest` reports to: one line on a terminal, else a line for each stage and one now and then."""
    console = Console(stderr=True)
    lock = threading.Lock()
    stages: dict[str, str] = {}
    shown: dict[str, float] = {}
    status = console.status("") if sys.stderr.isatty() else None

    def report(package: str, stage: str, text: str) -> None:
        with lock:
            fresh = stages.get(package) != stage
            stages[package] = stage
            line = f"{len(stages)}/{total} {package}: {stage}{f' ({text})' if text else ''}"
            if status is not None:
                status.update(line)
            elif fresh or time.monotonic() - shown.get(package, 0.0) > EVERY_S:
                shown[package] = time.monotonic()
                print(line, file=sys.stderr, flush=True)

    if status is None:
        yield report
    else:
        with status:
            yield report


def show_reports(reports: Sequence[PackageReport]) -> None:
    """A table of the packages that gave a set, why the others did not, and the totals."""
    console = Console()
    done = [report for report in reports if report.done]
    if done:
        console.print(_table(done))
    for report in reports:
        if report.stage and not report.done:
            why = f"{report.stage}: {report.reason}" if report.reason else f"not finished ({report.stage})"
            console.print(f"{_name(report)}: {why}", soft_wrap=True, markup=False, highlight=False)
    waiting = [report.name for report in reports if not report.stage]
    if waiting:
        console.print(f"not begun: {', '.join(waiting)}", soft_wrap=True, markup=False, highlight=False)
    bugs = sum(report.verified for report in done)
    console.print(
        f"{len(done)} of {len(reports)} packages produced a set, {plural(bugs, 'verified bug')}", soft_wrap=True
    )


def _table(reports: Sequence[PackageReport]) -> Table:
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
