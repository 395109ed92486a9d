"""`gumshoe harvest`: many packages at a time, each with its own set, and one set that combines them."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from gumshoe.env.bugs.candidates import take_turns
from gumshoe.env.bugs.config import BuildConfig, HarvestConfig
from gumshoe.env.bugs.packages.environment import install_lock
from gumshoe.env.bugs.packages.package import PackageReport, harvest_package, read_report
from gumshoe.env.bugs.packages.sources import RequestedPackage, parse_sources
from gumshoe.env.bugs.tasks import heldout_packages, write_rows
from gumshoe.env.tasks.taskset import is_taskset, stored_taskset, write_taskset
from gumshoe.env.virtualenvs import Lock, is_installed
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import read_json, take_lock, write_atomic

__all__ = ["PACKAGES", "harvest", "rebuild", "reports_in"]

PACKAGES = "packages"
# What the last harvest was asked for: package to source.
SOURCES = "sources.json"

Progress = Callable[[str, str, str], None]
"""Called with a package, its stage and what is being done there."""


def harvest(config: HarvestConfig, progress: Progress = lambda package, stage, text: None) -> list[PackageReport]:
    """Harvests every source of the config; the reports are in their order. The set of all packages is rewritten after
    each of them.

    Raises:
        ConfigError: a source is not valid, or another process harvests into the same folder.
        GumshoeError: a sandbox does not work here; what was finished is kept.
    """
    sources, out = parse_sources(config.sources), Path(config.out)
    reports: dict[str, PackageReport] = {}

    def one(source: RequestedPackage) -> PackageReport:
        folder = out / PACKAGES / source.name
        return harvest_package(source, config, folder, lambda stage, text: progress(source.name, stage, text))

    out.mkdir(parents=True, exist_ok=True)
    with take_lock(out), ThreadPoolExecutor(config.workers) as threads:
        write_atomic(out / SOURCES, json.dumps({source.name: source.text for source in sources}, indent=1))
        futures = {threads.submit(one, source): source for source in sources}
        try:
            for future in as_completed(futures):
                reports[futures[future].name] = future.result()
                write_whole_set(out, config)
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    return [reports[source.name] for source in sources]


def reports_in(out: Path) -> list[PackageReport]:
    """The reports of all packages in a set and of those that it has yet to get, by name.

    Raises TaskError where there are none.
    """
    asked: dict[str, str] = read_json(out / SOURCES, error=TaskError) if (out / SOURCES).is_file() else {}
    reports = {name: PackageReport(name, source, stage="") for name, source in asked.items()}
    for folder in (out / PACKAGES).glob("*"):
        if report := read_report(folder):
            reports[report.name] = report
    if not reports:
        raise TaskError(f"{out} contains no harvest: give the folder written by gumshoe harvest --out")
    return [reports[name] for name in sorted(reports)]


def write_whole_set(out: Path, config: HarvestConfig) -> None:
    """Writes the tasks of all finished packages as one set, taking packages in turn, with their splits."""
    folders = [folder for folder in sorted((out / PACKAGES).glob("*")) if is_taskset(folder) and _finished(folder)]
    texts = {folder.name: _fingerprint(folder) for folder in folders}
    heldout = heldout_packages(texts, config.heldout_packages, config.seed)
    groups = [[_placed(pair, folder, folder.name in heldout) for pair in stored_taskset(folder)] for folder in folders]
    tasks = list(take_turns(groups))
    write_taskset(out, tasks)
    write_rows(out, tasks)


def rebuild(taskset: Path, config: BuildConfig, say: Callable[[str], None]) -> list[str]:
    """Builds the environments that a set's tasks name and this machine lacks; returns their names.

    Raises TaskError for a set without environments, or an environment that cannot be built here.
    """
    locks = sorted({*taskset.glob("environments/*.json"), *taskset.glob(f"{PACKAGES}/*/environments/*.json")})
    if not locks:
        raise TaskError(f"{taskset} lists no environments")
    built: list[str] = []
    for path in locks:
        lock = Lock.read(path)
        if not is_installed(lock.name):
            say(f"building {lock.name} ({len(lock.packages)} packages)")
            install_lock(lock, config)
            built.append(lock.name)
    return built


def _finished(folder: Path) -> bool:
    report = read_report(folder)
    return report is not None and report.done


def _placed(pair: tuple[Task, Oracle], folder: Path, heldout: bool) -> tuple[Task, Oracle]:
    """The task as the whole set names it."""
    task, oracle = pair
    path = f"{PACKAGES}/{folder.name}/{task.workspace.path}"
    tags = {**task.tags, "split": "heldout_projects"} if heldout else task.tags
    workspace = task.workspace.model_copy(update={"path": path})
    return task.model_copy(update={"workspace": workspace, "tags": tags}), oracle


def _fingerprint(folder: Path) -> str:
    """The sources of a package's set in one text, to be compared with those of others."""
    files = sorted((folder / "projects").rglob("*.py"))
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())
