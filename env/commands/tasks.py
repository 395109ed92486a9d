"""`gumshoe tasks`: list, show, check and export the tasks of a source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError, TaskError
from gumshoe.standard_streams import print_json
from gumshoe.text import plural

if TYPE_CHECKING:
    from gumshoe.env.verifier.check import CheckResult
    from gumshoe.records import Oracle, Task

EXAMPLES = """\
examples:
  gumshoe tasks list casebook
  gumshoe tasks list tasks/casebook-synth --tag split=heldout_bugs
  gumshoe tasks show casebook casebook/ledger --oracle
  gumshoe tasks check casebook --workers 2 --sandbox docker
  gumshoe tasks export casebook --to swebench --out rows/casebook

SOURCE is one of
  casebook          the bundled cases
  FOLDER            a task set (see gumshoe synth)
  local:FOLDER      a repository of your own
  nightmare:FOLDER  folders with code and a test.py each
  quixbugs:FOLDER   a checkout of QuixBugs
  bugsinpy:FOLDER   a checkout of BugsInPy; -o work=FOLDER is the folder with its repositories
  pyter:FOLDER      a checkout of PyTER; -o benchmark=FOLDER is the folder that its setup.sh created
  aider:FOLDER      a checkout of Exercism's Python exercises, or of aider's benchmark
  swebench:ROWS     lite, verified, full, a dataset's name, or a .jsonl, .json or .parquet file
  swesmith:ROWS     the same for rows of SWE-smith
  r2egym:ROWS       the same for rows of R2E-Gym

A broken row or folder is reported on standard error and skipped; `check` counts it as broken. A task set is all or
nothing: if a line of its files is damaged, the whole set is refused. Of a task set, `check` rewrites oracles.jsonl: it
renews the record of which tests a verdict can make fail. Nothing else is changed.
"""


def configure_tasks(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    from gumshoe.protocols import SANDBOX_KINDS

    parser.epilog = EXAMPLES
    actions = parser.add_subparsers(dest="action", metavar="list|show|check|export", required=True)
    for name, summary in (
        ("list", "list the tasks, one per line"),
        ("show", "show one task as the agent sees it"),
        ("check", "verify each task in a sandbox and update a task set's oracles; exit code 1 if one is broken"),
        ("export", "write the tasks as rows for the official SWE-bench harness"),
    ):
        action = actions.add_parser(name, help=summary, description=summary)
        action.add_argument(
            "source",
            metavar="SOURCE",
            help="casebook, the folder of a task set, or another source (see gumshoe tasks --help)",
        )
        action.add_argument(
            "-o",
            dest="options",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="option of the source, such as regime=debug",
        )
        if name == "show":
            action.add_argument("id", metavar="ID", help="id of the task")
            action.add_argument("--oracle", action="store_true", help="show the answer as well")
        else:
            action.add_argument(
                "--tag", action="append", default=[], metavar="KEY=VALUE", help="only tasks with this tag"
            )
            action.add_argument("--limit", type=int, metavar="N", help="maximum number of tasks")
        if name == "check":
            action.add_argument("--sandbox", choices=SANDBOX_KINDS, default="auto", help="where the tests run")
            action.add_argument(
                "--unsafe", action="store_true", help="let the local sandbox take tasks that are not built in"
            )
            action.add_argument(
                "-p",
                dest="overrides",
                action="append",
                default=[],
                metavar="KEY=VALUE",
                help="set a key of the sandbox, such as memory_mb=4096",
            )
            action.add_argument("--workers", type=int, default=1, metavar="N", help="sandboxes used in parallel")
        if name == "export":
            action.add_argument("--to", choices=("swebench",), required=True, help="format of the rows")
            action.add_argument("--out", type=Path, required=True, help="output folder")
            action.add_argument("--base-image", metavar="IMAGE", help="image to build from (default: python:VERSION)")
        else:
            action.add_argument("--json", action="store_true", help="JSON instead of a table")


def run_tasks(arguments: argparse.Namespace) -> int:
    """Carries out the action. Raises GumshoeError."""
    actions = {"list": _list, "show": _show, "check": _check, "export": _export}
    return actions[arguments.action](arguments)


def _tasks(arguments: argparse.Namespace) -> tuple[list[tuple[Task, Oracle]], list[str]]:
    """The tasks, and what is wrong with the entries that are not tasks; those problems are reported at once."""
    from gumshoe.env.tasks import load_tasks

    if arguments.limit is not None and arguments.limit < 1:
        raise ConfigError("--limit must be at least 1")
    broken: list[str] = []

    def pass_over(error: TaskError) -> None:
        print(f"skipped: {error}", file=sys.stderr)
        broken.append(str(error))

    tags = dict(_pair("--tag", text) for text in arguments.tag)
    options: dict[str, Any] = dict(_pair("-o", text) for text in arguments.options)
    tasks = load_tasks(arguments.source, tags=tags, limit=arguments.limit, on_error=pass_over, **options)
    return tasks, broken


def _refuse_none(tasks: Sequence[tuple[Task, Oracle]], arguments: argparse.Namespace) -> None:
    if not tasks:
        tags = f" with {' and '.join(arguments.tag)}" if arguments.tag else ""
        raise TaskError(f"{arguments.source} has no task{tags}: see `gumshoe tasks list {arguments.source}`")


def _pair(option: str, text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise ConfigError(f"{option} {text!r} is not of the form key=value")
    return key, value


def _list(arguments: argparse.Namespace) -> int:
    tasks, unread = _tasks(arguments)
    if unread and not tasks:
        raise TaskError(f"{arguments.source} has no task that can be read")
    if arguments.json:
        print_json([{"id": task.id, "source": task.source, "hash": task.hash, "tags": task.tags} for task, _ in tasks])
        return 0
    from rich.table import Column, Table

    from gumshoe.console import Console

    keys = list(dict.fromkeys(key for task, _ in tasks for key in task.tags))
    table = Table(Column("task", overflow="fold"), *keys, "failing tests", "other tests")
    for task, oracle in tasks:
        tests = (str(len(oracle.fail_to_pass)), str(len(oracle.pass_to_pass)))
        table.add_row(task.id, *(task.tags.get(key, "") for key in keys), *tests)
    Console().print(table)
    print(plural(len(tasks), "task"))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from gumshoe.env.tasks import load_tasks

    options: dict[str, Any] = dict(_pair("-o", text) for text in arguments.options)
    ((task, oracle),) = load_tasks(arguments.source, ids=[arguments.id], on_error=lambda error: None, **options)
    if arguments.json:
        shown = {"task": task.model_dump(mode="json")}
        print_json({**shown, "oracle": oracle.model_dump(mode="json")} if arguments.oracle else shown)
        return 0
    workspace = task.workspace
    print(f"{task.id}   {'  '.join(f'{key}={value}' for key, value in task.tags.items())}")
    print(f"workspace   {workspace.path or workspace.image}")
    print(f"regime      {task.regime}")
    print(f"laid over   {', '.join(workspace.overlay) or 'nothing'}")
    print(f"entrypoint  {' '.join(task.entrypoint)}")
    print(f"read-only   {', '.join(task.readonly) or 'nothing'}")
    print(f"\n{task.problem_statement.rstrip()}")
    if arguments.oracle:
        print("\nfail to pass", *oracle.fail_to_pass, sep="\n  ")
        print(f"\n{oracle.gold_patch}", end="")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    """Checks the tasks, and writes what makes the tests of a task set fail (`Oracle.falsifiable`) to its oracles."""
    from gumshoe.config import apply_overrides, validate
    from gumshoe.env.config import SandboxConfig
    from gumshoe.env.tasks.taskset import is_taskset, keep_falsifiable
    from gumshoe.env.verifier.check import CheckResult, check_tasks

    if arguments.workers < 1:
        raise ConfigError("--workers must be at least 1")
    settings = apply_overrides({"kind": arguments.sandbox, "unsafe": arguments.unsafe}, arguments.overrides)
    config = validate(SandboxConfig, settings, origin="the sandbox of -p")
    tasks, unread = _tasks(arguments)
    if not unread:
        _refuse_none(tasks, arguments)
    checked = _with_progress(check_tasks(tasks, config, arguments.workers), len(tasks))
    checked += [CheckResult(task_id=text.partition(":")[0].removeprefix("task "), problems=(text,)) for text in unread]
    broken = [result for result in checked if not result.passed]
    folder = Path(arguments.source)
    if is_taskset(folder):
        keep_falsifiable(folder, {each.task_id: each.falsifiable for each in checked if each.falsifiable is not None})
    if arguments.json:
        print_json([{**result.model_dump(mode="json"), "passed": result.passed} for result in checked])
    else:
        _print_checks(checked, broken)
    return 1 if broken else 0


def _export(arguments: argparse.Namespace) -> int:
    from gumshoe.env.swebench_export import export_tasks

    out: Path = arguments.out
    if out.exists():
        raise ConfigError(f"{out} already exists: choose another --out")
    tasks, _ = _tasks(arguments)
    _refuse_none(tasks, arguments)
    done = export_tasks(tasks, out, base_image=arguments.base_image)
    for name, why in done.refused.items():
        print(f"left out: {name}: {why}", file=sys.stderr)
    print(f"{out}: {done.count} of {len(tasks)} tasks")
    return 0


def _with_progress(results: Iterator[CheckResult], total: int) -> list[CheckResult]:
    from rich.progress import track

    from gumshoe.console import Console

    return list(track(results, description="checking", total=total, console=Console(stderr=True)))


def _print_checks(checked: list[CheckResult], broken: list[CheckResult]) -> None:
    from rich.table import Column, Table

    from gumshoe.console import Console

    table = Table(Column("task", overflow="fold"), "seconds", "check")
    for result in checked:
        table.add_row(result.task_id, f"{result.duration_s:.1f}", "; ".join(result.problems) or "ok")
    Console().print(table)
    print(f"{len(checked) - len(broken)} of {len(checked)} tasks are proven")
