"""`gumshoe harvest`: many packages at a time, each with its own set, and one set that combines them.

Then one package from its name to a checked task set, stage by stage, and the report of what became of it.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from gumshoe.env.bugs.candidates import take_turns
from gumshoe.env.bugs.config import BuildConfig, HarvestConfig
from gumshoe.env.bugs.judging import UnfitTests
from gumshoe.env.bugs.packages import PackageHarvest, stage_key
from gumshoe.env.bugs.packages.baseline import Baseline, get_baseline
from gumshoe.env.bugs.packages.bugs import harvest_bugs
from gumshoe.env.bugs.packages.check import check_package, rate_package
from gumshoe.env.bugs.packages.environment import DOCTEST_WAYS, PYTEST_WAYS, Built, get_environment, install_lock
from gumshoe.env.bugs.packages.history import harvest_history
from gumshoe.env.bugs.packages.sources import FetchedSource, RequestedPackage, get_source, parse_sources
from gumshoe.env.bugs.tasks import heldout_packages
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.taskset import TASKS, is_taskset, stored_taskset, write_taskset
from gumshoe.env.virtualenvs import Lock, is_installed
from gumshoe.errors import GumshoeError, SandboxError, TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import read_json, take_lock, write_atomic
from gumshoe.text import plural

PACKAGES = "packages"
# What the last harvest was asked for: package to source.
SOURCES = "sources.json"
REPORT = "report.json"
# What pytest imports before any test.
PYTEST_NEEDS = frozenset({"pluggy", "iniconfig"})
# How often tests that turn out to be unfit while bugs are made are left out before the package is refused.
FLAKY_ROUNDS = 4
# The fewest bugs that `verify_s` leaves a package.
LEAST_BUGS = 10

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


KEEP_TASKS = ("get", "environment")
"""The stages in which a package still has the tasks of an earlier harvest."""


def harvest_package(
    source: RequestedPackage, config: HarvestConfig, folder: Path, note: Callable[[str, str], None]
) -> PackageReport:
    """Carries one package through the stages and leaves its set in `folder`. A refusal is recorded in the report.

    Args:
        note: called with a stage and what is being done in it; with no text when the stage begins.

    Raises GumshoeError for what is not the package's fault, such as a sandbox that does not work for others either.
    """
    report = PackageReport(source.name, source.text)
    folder.mkdir(parents=True, exist_ok=True)
    earlier = read_report(folder)

    def write_report() -> None:
        # A finished set keeps its report as long as it keeps its tasks.
        if earlier is not None and earlier.done and report.stage in KEEP_TASKS and not report.reason:
            return
        facts = asdict(with_times(report, earlier))
        write_atomic(folder / REPORT, json.dumps(facts, indent=1))

    def begin(stage: str) -> None:
        report.stage = stage
        write_report()
        note(stage, "")

    package = PackageHarvest(source.name, config, folder, lambda text: note(report.stage, text))
    try:
        _Stages(package, report, begin).run(source)
        report.done = True
    except (TaskError, SandboxError) as error:
        if isinstance(error, SandboxError) and not _others_work(config):
            raise
        report.reason = str(error)
        (folder / TASKS).unlink(missing_ok=True)
    finally:
        write_report()
    return with_times(report, earlier)


def _others_work(config: HarvestConfig) -> bool:
    """Whether a sandbox works with a bundled project in it, so that it was the package that broke one."""
    task, _ = load_tasks("casebook")[0]
    try:
        with open_sandbox(task, config.sandbox, trusted=True) as sandbox:
            return sandbox.run(["true"], timeout=60).exit_code == 0
    except GumshoeError:
        return False


class _Stages:
    """The stages of one package; what they find goes into the report.

    Args:
        begin: called with the name of a stage when it begins.
    """

    def __init__(self, package: PackageHarvest, report: PackageReport, begin: Callable[[str], None]) -> None:
        self._package, self._report, self._begin = package, report, begin

    def run(self, source: RequestedPackage) -> None:
        """Raises TaskError for a package that is refused."""
        package, config, report = self._package, self._package.config, self._report
        with self._stage("get"):
            if source.name in PYTEST_NEEDS:
                raise TaskError("pytest itself depends on it: with a bug in it, no test outcome could be trusted")
            fetched = get_source(source, config.build)
            report.version = fetched.version
        with self._stage("environment"):
            built, key = self._environment(fetched)
            report.environment, report.skipped = built.lock.name, built.skipped
            _write_locks([built], package.folder)
        # The set may hold tasks of an earlier harvest, to which the history stage would add its own.
        write_taskset(package.folder, ())
        if config.per_package:
            with self._stage("baseline"):
                baseline = self._report_tests(get_baseline(package, built, key))
                report.suite_s = round(baseline.seconds, 3)
            report.wanted = _wanted(config, baseline.seconds)
            with self._stage("bugs"):
                made = self._bugs(built, baseline)
                report.counts, report.candidates = dict(made), made.total()
        if fetched.repository is not None and config.history:
            with self._stage("history"):
                found = harvest_history(package, fetched.repository, built)
                report.commits = found.commits
                write_taskset(package.folder, [*stored_taskset(package.folder), *found.tasks])
                _write_locks([built, *found.environments], package.folder)
        if not stored_taskset(package.folder):
            raise TaskError("no bug was made or found: ask for some with per_package or history")
        with self._stage("check"):
            report.verified, report.rejected = check_package(package)
            if not report.verified:
                first = next(iter(report.rejected.values()), "no reason given")
                raise TaskError(f"none of its {len(report.rejected)} bugs pass the check: {first}")
        if config.difficulty:
            with self._stage("difficulty"):
                rate_package(package)

    @contextmanager
    def _stage(self, name: str) -> Generator[None]:
        """Reports and times a stage."""
        self._begin(name)
        began = time.monotonic()
        try:
            yield
        finally:
            self._report.seconds[name] = round(time.monotonic() - began, 1)

    def _environment(self, fetched: FetchedSource) -> tuple[Built, str]:
        """The environment, and the stage's key."""
        package, config = self._package, self._package.config
        key, ways = stage_key(package.name, fetched.digest, config.build.model_dump()), PYTEST_WAYS
        if config.runner == "doctest":
            key, ways = stage_key(key, config.runner), DOCTEST_WAYS
        return get_environment(key, fetched.folder, config.build, package.say, ways), key

    def _bugs(self, built: Built, baseline: Baseline) -> Counter[str]:
        """What became of the candidates; tests that turn out to be unfit are deselected."""
        config = self._package.config.model_copy(update={"per_package": self._report.wanted})
        problem = ""
        for _ in range(FLAKY_ROUNDS):
            try:
                return harvest_bugs(replace(self._package, config=config), built, baseline)
            except UnfitTests as unfit:
                problem = str(unfit)
                self._package.say(f"without {plural(len(unfit.tests), 'test')} ({unfit.why})")
                baseline = self._report_tests(baseline.without(unfit.tests, unfit.why))
        raise TaskError(f"its tests do not stabilize: {problem}")

    def _report_tests(self, baseline: Baseline) -> Baseline:
        self._report.tests, self._report.deselected = len(baseline.passing), baseline.deselected
        return baseline


def _wanted(config: HarvestConfig, suite_s: float) -> int:
    """How many bugs a package is to get whose tests take `suite_s` seconds."""
    runs = 2 if config.difficulty else 1
    affordable = int(config.verify_s / (runs * suite_s)) if suite_s else config.per_package
    return min(config.per_package, max(LEAST_BUGS, affordable))


def _write_locks(environments: Sequence[Built], folder: Path) -> None:
    """Puts the locks beside the tasks, so that the environments can be built on another machine."""
    target = folder / "environments"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for built in environments:
        write_atomic(target / f"{built.lock.name}.json", json.dumps(asdict(built.lock), indent=1))


@dataclass
class PackageReport:
    """What became of one package. What a stage finds out stays empty until that stage is over.

    Attributes:
        name: the package's, good for folders and ids.
        source: the package as the user named it.
        version: (get) as the index or git names it.
        stage: the one that it has reached; empty if it has not been begun.
        done: whether its set is finished. If it is not, and there is a `reason`, the package was refused in `stage`.
        reason: why it was refused.
        environment: (environment) the name of its lock.
        skipped: (environment) requirements that could not be installed, each with the reason.
        tests: (baseline) how many count; fewer if the bugs stage finds some to be unfit.
        wanted: (baseline) how many bugs are to be made.
        deselected: (baseline) which tests do not count, and why; more if the bugs stage finds some to be unfit.
        suite_s: (baseline) what one run of the tests that count takes.
        candidates: (bugs) how many were judged.
        counts: (bugs) what became of them (see `SynthResult.counts`).
        commits: (history) what became of those of a repository, such as `verified` or `no environment`.
        verified: (check) how many bugs passed it, made ones and those of the history.
        rejected: (check) the other tasks, each with the first problem.
        seconds: the wall-clock time of each stage, over all runs with the same environment; a stage that failed, too.
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
    commits: dict[str, int] = field(default_factory=dict[str, int])
    verified: int = 0
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])


_REPORTS = TypeAdapter(PackageReport)


def read_report(folder: Path) -> PackageReport | None:
    """The report of a package's set; None where there is none, or a damaged one.

    While a package is harvested, and after the harvest was stopped, it tells the stage that it has reached.
    """
    try:
        return _REPORTS.validate_json((folder / REPORT).read_bytes())
    except (OSError, ValueError):
        return None


def with_times(report: PackageReport, earlier: PackageReport | None) -> PackageReport:
    """The report with the time that earlier runs have spent on its stages, unless they had another environment."""
    if earlier is None or len({earlier.environment, report.environment} - {""}) > 1:
        return report
    stages = {**earlier.seconds, **report.seconds}
    total = {stage: round(earlier.seconds.get(stage, 0.0) + report.seconds.get(stage, 0.0), 1) for stage in stages}
    return replace(report, seconds=total)
