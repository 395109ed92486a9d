"""One package from its name to a checked task set, stage by stage."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gumshoe.env.config import SandboxConfig
from gumshoe.env.environments import RECORD, environment_folder
from gumshoe.env.harvest.baseline import Baseline, find_baseline
from gumshoe.env.harvest.bugs import harvest_bugs
from gumshoe.env.harvest.checking import check_package
from gumshoe.env.harvest.config import HarvestConfig
from gumshoe.env.harvest.difficulty import rate_package
from gumshoe.env.harvest.environment import DOCTEST_WAYS, PYTEST_WAYS, Built, build_environment
from gumshoe.env.harvest.get import Got, get_source
from gumshoe.env.harvest.lock import Lock
from gumshoe.env.harvest.runner import unittest_suite
from gumshoe.env.harvest.sources import RequestedPackage
from gumshoe.env.harvest.stages import StageCache, key_of
from gumshoe.env.sandboxes.open import close_pools, open_sandbox
from gumshoe.env.synth.suite import Suite
from gumshoe.env.synth.verify import UnfitTests
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import GumshoeError, SandboxError, TaskError
from gumshoe.storage import parse_json, write_atomic
from gumshoe.tools.text import plural

__all__ = ["REPORT", "PackageReport", "harvest_package", "read_progress", "read_report", "with_times"]

REPORT = "report.json"
# The stage that a package has reached while it is harvested, or had reached when the harvest was stopped.
PROGRESS = "progress.json"
# What pytest imports before any test.
OF_THE_RUNNER = frozenset({"pluggy", "iniconfig"})
# How often tests that turn out to be unfit while bugs are made are left out before the package is refused.
FLAKY_ROUNDS = 4
# The fewest bugs that `verify_s` leaves a package.
LEAST_BUGS = 10
# A task's command may take this many times what the clean suite takes, and at least this many seconds.
COMMAND_FACTOR, COMMAND_S = 8.0, 60.0

Note = Callable[[str, str], None]
"""Called with a stage and what is being done in it."""


@dataclass
class PackageReport:
    """What became of one package.

    `reason` says why it was refused, and `stage` where. `wanted` bugs were to be made; `verified` passed the check.
    `seconds` has the wall-clock time of each stage, over all runs with the same environment.
    """

    name: str
    source: str
    version: str = ""
    stage: str = "get"
    done: bool = False
    reason: str = ""
    environment: str = ""
    skipped: tuple[str, ...] = ()
    tests: int = 0
    wanted: int = 0
    deselected: dict[str, str] = field(default_factory=dict[str, str])
    suite_s: float = 0.0
    candidates: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    verified: int = 0
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def bugs_a_minute(self) -> float:
        """Verified bugs for each minute of the bugs stage."""
        spent = self.seconds.get("bugs", 0.0)
        return 60 * self.verified / spent if spent else 0.0


_REPORTS = TypeAdapter(PackageReport)


def read_report(folder: Path) -> PackageReport | None:
    """The report of a package's set; None where there is none, or a damaged one."""
    return _read(folder / REPORT)


def _read(path: Path) -> PackageReport | None:
    try:
        return _REPORTS.validate_python(parse_json(path.read_bytes()))
    except (OSError, ValueError):
        return None


def read_progress(folder: Path) -> PackageReport | None:
    """What is known of a package that is not finished: its report where it was refused before, else its stage."""
    report = read_report(folder)
    if report is not None and report.done:
        return report
    begun = _read(folder / PROGRESS)
    if begun is not None:
        return begun
    if report is None and (folder / REPORT).exists():
        why = f"{folder / REPORT} is damaged: run the harvest again"
        return PackageReport(folder.name, "", stage="report", reason=why)
    return report


def harvest_package(source: RequestedPackage, config: HarvestConfig, folder: Path, note: Note) -> PackageReport:
    """Carries one package through the stages and leaves its set in `folder`. A refusal is recorded in the report.

    Raises GumshoeError for what is not the package's fault, such as a sandbox that does not work for others either.
    """
    report = PackageReport(source.name, source.text)
    folder.mkdir(parents=True, exist_ok=True)
    earlier = _read(folder / PROGRESS) or read_report(folder)

    def keep(file: str) -> None:
        write_atomic(folder / file, json.dumps(asdict(with_times(report, earlier)), indent=1))

    def progress(stage: str, text: str) -> None:
        if not text:
            keep(PROGRESS)
        note(stage, text)

    try:
        _stages(source, config, folder, report, progress)
        report.done = True
    except (TaskError, SandboxError) as error:
        if isinstance(error, SandboxError) and not _others_work(config):
            raise
        report.reason = str(error)
        (folder / "tasks.jsonl").unlink(missing_ok=True)
    finally:
        close_pools({report.environment})
        keep(PROGRESS)
    keep(REPORT)
    (folder / PROGRESS).unlink(missing_ok=True)
    return with_times(report, earlier)


def _others_work(config: HarvestConfig) -> bool:
    """Whether a sandbox works with a bundled project in it, so that it was the package that broke one."""
    task, _ = load_tasks("casebook")[0]
    try:
        with open_sandbox(task, config.sandbox, trusted=True) as sandbox:
            return sandbox.run(["true"], timeout=60).exit_code == 0
    except GumshoeError:
        return False


def with_times(report: PackageReport, earlier: PackageReport | None) -> PackageReport:
    """The report with the time that earlier runs have spent on its stages, unless they had another environment."""
    if earlier is None or len({earlier.environment, report.environment} - {""}) > 1:
        return report
    stages = {**earlier.seconds, **report.seconds}
    total = {stage: round(earlier.seconds.get(stage, 0.0) + report.seconds.get(stage, 0.0), 1) for stage in stages}
    return replace(report, seconds=total)


def _stages(source: RequestedPackage, config: HarvestConfig, folder: Path, report: PackageReport, note: Note) -> None:
    with _Stage("get", report, note):
        if source.name in OF_THE_RUNNER:
            raise TaskError("pytest itself depends on it: with a bug in it, no test outcome could be trusted")
        got = get_source(source, config.build)
        report.version = got.version
    with _Stage("environment", report, note) as say:
        built, project, key = _environment(source, got, config, say)
        report.environment, report.skipped = built.lock.name, built.skipped
    with _Stage("baseline", report, note) as say:
        baseline = _baseline(source, project, built, key, config, say)
        report.tests, report.deselected = len(baseline.passing), baseline.deselected
        report.suite_s = round(baseline.seconds, 3)
    report.wanted = _wanted(config, baseline.seconds)
    config = config.model_copy(update={"per_package": report.wanted})
    with _Stage("bugs", report, note) as say:
        made, baseline = _bugs(source, got, project, built, baseline, config, folder, say)
        report.tests, report.deselected = len(baseline.passing), baseline.deselected
        report.counts, report.candidates = dict(made), made.total()
        _write_lock(built.lock, folder)
    with _Stage("check", report, note) as say:
        report.verified, report.rejected = check_package(folder, sandbox_of(config), say)
        if not report.verified:
            raise TaskError(f"none of its {made['kept']} bugs pass the check: {_first(report.rejected)}")
    if config.difficulty:
        with _Stage("difficulty", report, note) as say:
            rate_package(folder, sandbox_of(config), say)


def _wanted(config: HarvestConfig, suite_s: float) -> int:
    """How many bugs a package is to get whose tests take `suite_s` seconds."""
    runs = 2 if config.difficulty else 1
    affordable = int(config.verify_s / (runs * suite_s)) if suite_s else config.per_package
    return min(config.per_package, max(LEAST_BUGS, affordable))


class _Stage:
    """Times a stage and reports it; messages from inside it carry its name."""

    def __init__(self, name: str, report: PackageReport, note: Note) -> None:
        self._name, self._report, self._note = name, report, note
        self._began = 0.0

    def __enter__(self) -> Callable[[str], None]:
        self._report.stage = self._name
        self._began = time.monotonic()
        self._note(self._name, "")
        return lambda text: self._note(self._name, text)

    def __exit__(self, *_: object) -> None:
        self._report.seconds[self._name] = round(time.monotonic() - self._began, 1)


def sandbox_of(config: HarvestConfig) -> SandboxConfig:
    """Where the tests run: with warm sandboxes, since hundreds of tasks are checked."""
    return config.sandbox if config.sandbox.pool else config.sandbox.model_copy(update={"pool": 1})


def _environment(
    source: RequestedPackage, got: Got, config: HarvestConfig, say: Callable[[str], None]
) -> tuple[Built, Path, str]:
    """The environment, the project that tasks ship, and the stage's key."""
    key = key_of(source.name, got.digest, config.build.model_dump())
    doctests = config.runner == "doctest"
    if doctests:
        key = key_of(key, config.runner)

    def make(folder: Path) -> dict[str, object]:
        ways = DOCTEST_WAYS if doctests else PYTEST_WAYS
        return asdict(build_environment(got.folder, folder / "project", config.build, say, ways))

    cache = StageCache("environment")
    made = cache.get(key, make, _built)
    return _built_from(made), cache.folder / key / "project", key


def _built(made: dict[str, Any]) -> bool:
    return (environment_folder(_built_from(made).lock.name) / RECORD).is_file()


def _built_from(made: dict[str, Any]) -> Built:
    return Built(Lock.from_json(made["lock"]), tuple(made["skipped"]), tuple(made["arguments"]))


def _baseline(
    source: RequestedPackage, project: Path, built: Built, key: str, config: HarvestConfig, say: Callable[[str], None]
) -> Baseline:
    suite = Suite(built.lock.name, built.arguments)
    key = key_of(key, built.lock.name, built.arguments, config.baseline.model_dump(), config.sandbox.kind)

    def make(folder: Path) -> dict[str, object]:
        del folder
        return asdict(find_baseline(source.name, project, suite, config.baseline, config.sandbox, say))

    made = StageCache("baseline").get(key, make, lambda made: True)
    return Baseline(tuple(made["arguments"]), tuple(made["passing"]), made["deselected"], made["seconds"])


def _bugs(
    source: RequestedPackage,
    got: Got,
    project: Path,
    built: Built,
    baseline: Baseline,
    config: HarvestConfig,
    folder: Path,
    say: Callable[[str], None],
) -> tuple[Counter[str], Baseline]:
    """What became of the candidates, and the baseline without the tests that turned out to be unfit."""
    problem = ""
    for _ in range(FLAKY_ROUNDS):
        seconds = max(COMMAND_S, COMMAND_FACTOR * baseline.seconds)
        suite = Suite(built.lock.name, baseline.arguments, seconds, limit="bug_run_s", repeatable=True)
        if config.runner == "unittest":
            suite = unittest_suite(source.name, project, suite, baseline, config, say)
        try:
            return harvest_bugs(source.name, project, suite, baseline, config, folder, got.repository, say), baseline
        except UnfitTests as unfit:
            problem = str(unfit)
            say(f"without {plural(len(unfit.tests), 'test')} ({unfit.why})")
            baseline = baseline.without(unfit.tests, unfit.why)
    raise TaskError(f"its tests do not stabilize: {problem}")


def _write_lock(lock: Lock, folder: Path) -> None:
    """Puts the lock beside the tasks, so that the environment can be built on another machine."""
    target = folder / "environments"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    write_atomic(target / f"{lock.name}.json", json.dumps(asdict(lock), indent=1))


def _first(rejected: dict[str, str]) -> str:
    return next(iter(rejected.values()), "no reason given")
