"""`gumshoe synth`: verified bugs from projects with passing tests. `gumshoe harvest`: tasks from Python packages."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Column, Table

from gumshoe.config import ConfigT, apply_overrides, read_yaml, validate
from gumshoe.console import Console
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.errors import ConfigError
from gumshoe.storage import check_folder
from gumshoe.text import plural

if TYPE_CHECKING:
    from gumshoe.env.bugs.make import SynthResult
    from gumshoe.env.bugs.packages.harvest import PackageReport

SYNTH_EXAMPLES = """\
examples:
  gumshoe synth --out tasks/synth                              bugs in all bundled projects
  gumshoe synth --projects casebook:ledger ./my-project --out tasks/mine --seed 7 --per-project 40
  gumshoe synth configs/synth/casebook.yaml -p workers=4
"""


def configure_synth(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.epilog = SYNTH_EXAMPLES
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
    folder = arguments.config
    if folder is not None and folder.is_dir():
        raise ConfigError(f"{folder} is a folder, not a config: for bugs in it, give --projects {folder} --out DIR")
    config = _config(arguments, SynthConfig, options)
    if not config.out:
        raise ConfigError("no folder for the task set: give --out DIR")
    from gumshoe.env.bugs.make import make_bugs, write_result
    from gumshoe.env.bugs.projects import find_projects

    check_folder(Path(config.out))
    with progress_line(len(find_projects(config.projects))) as report:
        result = make_bugs(
            config, lambda project, judged, kept: report(project, "bugs", f"{kept} bugs in {judged} candidates")
        )
    folder = write_result(result, config)
    show_synth(result, folder)
    return 0


def _config(arguments: argparse.Namespace, model: type[ConfigT], options: Sequence[str]) -> ConfigT:
    """The config of a command: its file, what `-p` overrides in it, and the options that are given, in this order.

    Raises ConfigError.
    """
    data = {} if arguments.config is None else read_yaml(arguments.config)
    data = apply_overrides(data, arguments.overrides)
    data |= {name: value for name in options if (value := getattr(arguments, name)) not in (None, [])}
    return validate(model, data, origin=str(arguments.config or "options"))


HARVEST_EXAMPLES = """\
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
    parser.epilog = HARVEST_EXAMPLES
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

    config = _config(arguments, HarvestConfig, ("sources", "out", "workers"))
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


EVERY_S = 15.0
# Why candidates are dropped (see `SynthResult.counts`).
REASONS = {
    "survived": "survived (no test failed)",
    "uncovered": "no test runs the line",
    "duplicate": "fails like another on the same line",
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


def show_synth(result: SynthResult, folder: Path) -> None:
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
    numbers = ("tests", "left out", "s", "tried", "bugs", "rejected")
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
            str(len(report.rejected) or ""),
        )
    return table


def _name(report: PackageReport) -> str:
    return f"{report.name} {report.version}".strip()
