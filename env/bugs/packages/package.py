"""One package from its name to a checked task set, stage by stage."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from gumshoe.env.bugs.check import check_package, rate_package
from gumshoe.env.bugs.config import HarvestConfig, SynthConfig
from gumshoe.env.bugs.make import SynthResult, make_bugs
from gumshoe.env.bugs.operators import OPERATORS
from gumshoe.env.bugs.packages.baseline import Baseline, bug_run_limit, command_limit, find_baseline
from gumshoe.env.bugs.packages.commits import harvest_history
from gumshoe.env.bugs.packages.environment import DOCTEST_WAYS, PYTEST_WAYS, Built, build_environment
from gumshoe.env.bugs.packages.sources import FetchedSource, RequestedPackage, get_source
from gumshoe.env.bugs.packages.stages import (
    PROGRESS,
    PackageReport,
    StageCache,
    key_of,
    read_report,
    stage_folder,
    with_times,
    write_report,
)
from gumshoe.env.bugs.packages.unittest_suite import unittest_suite
from gumshoe.env.bugs.projects import Project, Suite, copy_into_taskset
from gumshoe.env.bugs.verify import UnfitTests, VerdictJournal
from gumshoe.env.environments import is_installed
from gumshoe.env.sandboxes.open import close_pools, open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.projects import digest_of, is_doctest
from gumshoe.env.tasks.taskset import TASKS, stored_taskset, write_taskset
from gumshoe.errors import GumshoeError, SandboxError, TaskError
from gumshoe.storage import write_atomic
from gumshoe.text import plural

__all__ = ["harvest_bugs", "harvest_package"]

# What pytest imports before any test.
OF_THE_RUNNER = frozenset({"pluggy", "iniconfig"})
# How often tests that turn out to be unfit while bugs are made are left out before the package is refused.
FLAKY_ROUNDS = 4
# The fewest bugs that `verify_s` leaves a package.
LEAST_BUGS = 10

Note = Callable[[str, str], None]
"""Called with a stage and what is being done in it."""


def harvest_package(source: RequestedPackage, config: HarvestConfig, folder: Path, note: Note) -> PackageReport:
    """Carries one package through the stages and leaves its set in `folder`. A refusal is recorded in the report.

    Raises GumshoeError for what is not the package's fault, such as a sandbox that does not work for others either.
    """
    report = PackageReport(source.name, source.text)
    folder.mkdir(parents=True, exist_ok=True)
    earlier = read_report(folder, PROGRESS) or read_report(folder)

    def progress(stage: str, text: str) -> None:
        if not text:
            write_report(with_times(report, earlier), folder, PROGRESS)
        note(stage, text)

    try:
        _Stages(source, config, folder, report, progress).run()
        report.done = True
    except (TaskError, SandboxError) as error:
        if isinstance(error, SandboxError) and not _others_work(config):
            raise
        report.reason = str(error)
        (folder / TASKS).unlink(missing_ok=True)
    finally:
        close_pools({report.environment})
        write_report(with_times(report, earlier), folder, PROGRESS)
    write_report(with_times(report, earlier), folder)
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


class _Stages:
    """The stages of one package; what they find goes into the report."""

    def __init__(
        self, source: RequestedPackage, config: HarvestConfig, folder: Path, report: PackageReport, note: Note
    ) -> None:
        self._source, self._config, self._folder, self._report, self._note = source, config, folder, report, note

    def run(self) -> None:
        """Raises TaskError for a package that is refused."""
        report = self._report
        with self._stage("get"):
            if self._source.name in OF_THE_RUNNER:
                raise TaskError("pytest itself depends on it: with a bug in it, no test outcome could be trusted")
            fetched = get_source(self._source, self._config.build)
            report.version = fetched.version
        with self._stage("environment") as say:
            built, key = self._environment(fetched, say)
            report.environment, report.skipped = built.lock.name, built.skipped
            _write_locks([built], self._folder)
        write_taskset(self._folder, ())
        if self._config.per_package:
            with self._stage("baseline") as say:
                baseline = self._baseline(built, key, say)
                report.suite_s = round(baseline.seconds, 3)
            report.wanted = _wanted(self._config, baseline.seconds)
            with self._stage("bugs") as say:
                made = self._bugs(built, baseline, say)
                report.counts, report.candidates = dict(made), made.total()
        if fetched.repository is not None and self._config.history:
            with self._stage("history") as say:
                self._history(fetched.repository, built, say)
        if not stored_taskset(self._folder):
            raise TaskError("no bug was made or found: ask for some with per_package or history")
        # With warm sandboxes, since hundreds of tasks are checked.
        sandbox = self._config.sandbox.with_pool(1)
        with self._stage("check") as say:
            report.verified, report.rejected = check_package(self._folder, sandbox, say)
            if not report.verified:
                first = next(iter(report.rejected.values()), "no reason given")
                raise TaskError(f"none of its {len(report.rejected)} bugs pass the check: {first}")
        if self._config.difficulty:
            with self._stage("difficulty") as say:
                rate_package(self._folder, sandbox, say)

    @contextmanager
    def _stage(self, name: str) -> Generator[Callable[[str], None]]:
        """Times a stage and reports it; messages from inside it carry its name."""
        self._report.stage = name
        began = time.monotonic()
        self._note(name, "")
        try:
            yield lambda text: self._note(name, text)
        finally:
            self._report.seconds[name] = round(time.monotonic() - began, 1)

    def _environment(self, fetched: FetchedSource, say: Callable[[str], None]) -> tuple[Built, str]:
        """The environment, and the stage's key."""
        config = self._config
        key = key_of(self._source.name, fetched.digest, config.build.model_dump())
        doctests = config.runner == "doctest"
        if doctests:
            key = key_of(key, config.runner)

        def make(folder: Path) -> Built:
            ways = DOCTEST_WAYS if doctests else PYTEST_WAYS
            return build_environment(fetched.folder, folder / "project", config.build, say, ways)

        cache = StageCache("environment", Built)
        built = cache.get(key, make, lambda built: is_installed(built.lock.name))
        return built, key

    def _baseline(self, built: Built, key: str, say: Callable[[str], None]) -> Baseline:
        config = self._config
        suite = Suite(built.lock.name, built.arguments)
        key = key_of(key, built.lock.name, built.arguments, config.baseline.model_dump(), config.sandbox.kind)

        def make(folder: Path) -> Baseline:
            del folder
            return find_baseline(self._source.name, built.project, suite, config.baseline, config.sandbox, say)

        return self._noted(StageCache("baseline", Baseline).get(key, make))

    def _bugs(self, built: Built, baseline: Baseline, say: Callable[[str], None]) -> Counter[str]:
        """What became of the candidates; tests that turn out to be unfit are deselected."""
        name, problem = self._source.name, ""
        config = self._config.model_copy(update={"per_package": self._report.wanted})
        for _ in range(FLAKY_ROUNDS):
            seconds = command_limit(baseline.seconds)
            suite = Suite(built.lock.name, baseline.arguments, seconds, limit="bug_run_s", repeatable=True)
            if config.runner == "unittest":
                suite = unittest_suite(name, built.project, suite, baseline, config, say)
            try:
                return harvest_bugs(name, built.project, suite, baseline, config, self._folder, say)
            except UnfitTests as unfit:
                problem = str(unfit)
                say(f"without {plural(len(unfit.tests), 'test')} ({unfit.why})")
                baseline = self._noted(baseline.without(unfit.tests, unfit.why))
        raise TaskError(f"its tests do not stabilize: {problem}")

    def _history(self, repository: Path, built: Built, say: Callable[[str], None]) -> None:
        """Adds the bugs of a repository's history to the set."""
        found = harvest_history(self._source.name, repository, built, self._config, self._folder, say)
        self._report.commits = found.commits
        write_taskset(self._folder, [*stored_taskset(self._folder), *found.tasks])
        _write_locks([built, *found.environments], self._folder)

    def _noted(self, baseline: Baseline) -> Baseline:
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


@dataclass(frozen=True)
class MadeBugs:
    """What became of the candidates, and the limit `bugs_s` where that is why there are not more."""

    counts: dict[str, int]
    ended_by_bugs_s: float | None = None


def harvest_bugs(
    name: str,
    project: Path,
    suite: Suite,
    baseline: Baseline,
    config: HarvestConfig,
    folder: Path,
    say: Callable[[str], None],
) -> Counter[str]:
    """Writes the project and its verified bugs to `folder` as a task set; returns what became of the candidates.

    The tests run on the copy of the project that the set ships. Raises TaskError when no bug is found.
    """
    stored = Project(name, project, f"projects/{name}", suite)
    copy_into_taskset(stored, folder)
    shipped = Project(name, folder / stored.stored, stored.stored, suite)
    wanted = _synth_config(shipped, baseline, config)
    options = wanted.model_dump(exclude={"out", "project_s"})
    content = digest_of(shipped.path)
    key = key_of(name, content, suite.environment, suite.arguments, options, sorted(OPERATORS))
    judging = key_of(content, suite.environment, suite.arguments, wanted.timeout_s, wanted.sandbox.model_dump())
    if suite.command:
        key, judging = (key_of(one, suite.command, suite.names) for one in (key, judging))

    def make(kept: Path) -> MadeBugs:
        began = time.monotonic()
        journal = VerdictJournal(stage_folder("verdicts") / f"{judging}.jsonl")
        result = make_bugs(
            wanted, lambda project, judged, kept: say(f"{kept} bugs in {judged} candidates"), [shipped], journal
        )
        _require_some(result, name)
        write_taskset(kept, result.tasks)
        cut = time.monotonic() - began >= config.bugs_s and len(result.tasks) < config.per_package
        return MadeBugs(dict(result.counts[name]), config.bugs_s if cut else None)

    def valid(made: MadeBugs) -> bool:
        """Whether the set is there, and more time would not give more."""
        limit = made.ended_by_bugs_s
        return (cache.folder / key / TASKS).is_file() and (limit is None or limit >= config.bugs_s)

    cache = StageCache("bugs", MadeBugs)
    made = cache.get(key, make, valid)
    write_taskset(folder, stored_taskset(cache.folder / key))
    return Counter(made.counts)


def _synth_config(project: Project, baseline: Baseline, config: HarvestConfig) -> SynthConfig:
    # The files that hold the tests; modules that hold doctests are not among them.
    tests = (test for test in baseline.passing if not is_doctest(test))
    files = [f"/{path}" for path in dict.fromkeys(test.partition("::")[0] for test in tests)]
    return SynthConfig(
        projects=(str(project.path),),
        seed=config.seed,
        per_project=config.per_package,
        candidates_per_project=config.candidates_per_package,
        project_s=config.bugs_s,
        operators=config.operators,
        exclude=(*config.exclude, *files),
        readonly=(*files, "tests/", "conftest.py"),
        heldout_projects=0.0,
        heldout_bugs=config.heldout_bugs,
        heldout_by=config.heldout_by,
        timeout_s=round(bug_run_limit(config, baseline.seconds), 1),
        workers=1,
        sandbox=config.sandbox,
    )


def _require_some(result: SynthResult, name: str) -> None:
    counts = result.counts[name]
    if counts["kept"]:
        return
    tried = counts.total()
    if tried and counts["uncovered"] == tried:
        raise TaskError(f"no test runs any line that could be changed ({tried} candidates): are its sources excluded?")
    found = ", ".join(f"{count} {status}" for status, count in counts.most_common()) or "no candidates"
    raise TaskError(f"none of the bugs is detected by its tests: {found}")
