"""`gumshoe tasks images`: builds the images of SWE-bench's rows from git histories and a package index."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from pathlib import Path
from typing import Any

from gumshoe.errors import ConfigError, TaskError

__all__ = ["configure", "run"]

BASE = "gumshoe-python:latest"
SUMMARY = "build the images of SWE-bench rows from git histories and a package index; exit code 1 if one fails"


def configure(actions: Any) -> None:
    """Adds the action to the command's."""
    action: argparse.ArgumentParser = actions.add_parser("images", help=SUMMARY, description=SUMMARY)
    action.add_argument("source", metavar="ROWS", help="a .jsonl, .json or .parquet file, lite, verified, full")
    action.add_argument(
        "--repositories",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="bare git repositories: FOLDER/owner/name.git, FOLDER/owner__name.git or FOLDER/name.git",
    )
    action.add_argument("--only", nargs="+", default=[], metavar="ID", help="only these rows")
    action.add_argument("--split", default="test", help="split of the dataset, if ROWS is a dataset (default:  test)")
    action.add_argument("--base", default=BASE, metavar="IMAGE", help=f"base image (default:  {BASE})")


def run(arguments: argparse.Namespace) -> int:
    """Builds the images that are not here. Raises GumshoeError."""
    from gumshoe.env.images import ImageBuilder
    from gumshoe.env.sandboxes.engine import DOCKER, connect, image_digest
    from gumshoe.env.tasks.benchmark_rows import read_rows
    from gumshoe.env.tasks.swebench import SETS, load_swebench

    if not arguments.repositories.is_dir():
        raise ConfigError(f"--repositories: no folder {arguments.repositories}")
    image_digest(arguments.base, DOCKER)
    path: str = arguments.source.removeprefix("swebench:")
    path = SETS.get(path) or path
    rows = {str(row.get("instance_id")): row for row in read_rows(path, arguments.split)}
    broken: list[TaskError] = []
    tasks = {task.id: task for task, _ in load_swebench(path, arguments.split, on_error=broken.append)}
    if unknown := sorted(set(arguments.only) - tasks.keys()):
        raise ConfigError(f"--only: {path} has no row {unknown[0]}")
    failed = 0 if arguments.only else len(broken)
    for error in broken:
        print(f"left out: {error}", file=sys.stderr)
    chosen = [task for task in tasks.values() if not arguments.only or task.id in arguments.only]
    with contextlib.closing(connect()) as client:
        builder = ImageBuilder(client, arguments.repositories, base=arguments.base, say=_say)
        for number, task in enumerate(chosen, 1):
            started = time.monotonic()
            try:
                name = builder.build(rows[task.id], task)
            except TaskError as error:
                failed += 1
                print(f"left out: {task.id}: {error}", file=sys.stderr, flush=True)
            else:
                done = f"built {name} in {time.monotonic() - started:.0f} s" if name else "is here"
                _say(f"[{number}/{len(chosen)}] {task.id}: {done}")
    print(f"{len(chosen) + (0 if arguments.only else len(broken)) - failed} images are available, {failed} are not")
    return 1 if failed else 0


def _say(line: str) -> None:
    print(line, flush=True)
