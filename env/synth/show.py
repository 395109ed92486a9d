"""What `gumshoe synth` shows on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from gumshoe.console import Console
from gumshoe.env.synth.config import SynthConfig
from gumshoe.env.synth.make import Progress as Report
from gumshoe.env.synth.make import SynthResult
from gumshoe.env.synth.projects import find_projects
from gumshoe.tools.text import plural

__all__ = ["progress_bar", "summary"]

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
def progress_bar(config: SynthConfig) -> Generator[Report]:
    """A bar of verified bugs on standard error, shown from the first report on; yields what `make_bugs` reports to."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    wanted = config.per_project * len(find_projects(config.projects))
    kept_by: dict[str, int] = {}
    judged_by: dict[str, int] = {}
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task("bugs", total=wanted)

    def report(project: str, judged: int, kept: int) -> None:
        bar.start()
        judged_by[project], kept_by[project] = judged, kept
        tried = sum(judged_by.values())
        bar.update(task, completed=sum(kept_by.values()), description=f"bugs kept ({tried} candidates tried)")

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def summary(result: SynthResult, folder: Path) -> None:
    """What was kept of each project and why the rest was dropped."""
    total: Counter[str] = sum(result.counts.values(), Counter())
    console = Console()
    console.print(_table(result, total))
    dropped = [f"{count} {REASONS[reason]}" for reason, count in total.most_common() if reason != "kept"]
    console.print(f"{total.total()} candidates tried, {total['kept']} kept; dropped: {', '.join(dropped) or 'none'}")
    splits = Counter(task.tags["split"] for task, _ in result.tasks)
    console.print(", ".join(f"{count} {split}" for split, count in sorted(splits.items())))
    console.print(f"{plural(len(result.tasks), 'task')} in {folder}", soft_wrap=True)


def _table(result: SynthResult, total: Counter[str]) -> Table:
    reasons = [reason for reason in REASONS if total[reason]]
    table = Table(Column("project", no_wrap=True), Column("split", no_wrap=True), "kept", *reasons)
    for project, counts in result.counts.items():
        splits = {task.tags["split"] for task, _ in result.tasks if task.tags["project"] == project}
        held = "held out" if "heldout_projects" in splits else "train"
        table.add_row(project, held, str(counts["kept"]), *(str(counts[reason]) for reason in reasons))
    return table
