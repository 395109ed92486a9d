"""The bugs stage: candidates in a package's own code, and those that its tests detect."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gumshoe.env.harvest.baseline import Baseline
from gumshoe.env.harvest.config import HarvestConfig
from gumshoe.env.harvest.history import history_bugs
from gumshoe.env.harvest.repository import run_git
from gumshoe.env.harvest.stages import StageCache, key_of
from gumshoe.env.synth.bug import Bug
from gumshoe.env.synth.config import SynthConfig
from gumshoe.env.synth.journal import VerdictJournal
from gumshoe.env.synth.make import SynthResult, make_bugs
from gumshoe.env.synth.operators import OPERATORS
from gumshoe.env.synth.projects import Project, copy_into_taskset, sources_of
from gumshoe.env.synth.suite import Suite
from gumshoe.env.tasks.projects import digest_of, is_doctest
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import read_records

__all__ = ["harvest_bugs"]

# With a bug in the project, one run of the tests may take this many times what the clean suite takes, and at least
# `bug_run_s`: on a busy machine, a one-second suite was seen to take ten. An endless loop is ended earlier, by its
# processor time.
RUN_FACTOR = 5.0


def harvest_bugs(
    name: str,
    project: Path,
    suite: Suite,
    baseline: Baseline,
    config: HarvestConfig,
    folder: Path,
    repository: Path | None,
    say: Callable[[str], None],
) -> Counter[str]:
    """Writes the project and its verified bugs to `folder` as a task set; returns what became of the candidates.

    A bare clone in `repository` is searched for fixes to revert. The tests run on the copy of the project that the
    set ships. Raises TaskError when no bug is found.
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
    if repository is not None:
        key = key_of(key, config.history, run_git("--git-dir", str(repository), "rev-parse", "HEAD"))

    def make(kept: Path) -> dict[str, object]:
        def progress(project: str, judged: int, kept: int) -> None:
            say(f"{kept} bugs in {judged} candidates")

        old: list[Bug] = []
        if repository is not None:
            say("searching the history")
            old = history_bugs(repository, sources_of(shipped, wanted.exclude), config.history)
            # A small set should hold other kinds too.
            old = old[: -(-config.per_package // 2)]
        began = time.monotonic()
        journal = VerdictJournal(StageCache("verdicts").folder / f"{judging}.jsonl")
        result = make_bugs(wanted, progress, [shipped], old, journal)
        _require_some(result, name)
        write_taskset(kept, result.tasks)
        cut = time.monotonic() - began >= config.bugs_s and len(result.tasks) < config.per_package
        return {"counts": dict(result.counts[name]), "ended_by_bugs_s": config.bugs_s if cut else None}

    def valid(made: dict[str, Any]) -> bool:
        """Whether the set is there, and more time would not give more."""
        limit = made.get("ended_by_bugs_s")
        return (cache.folder / key / "tasks.jsonl").is_file() and (limit is None or limit >= config.bugs_s)

    cache = StageCache("bugs")
    made = cache.get(key, make, valid)
    write_taskset(folder, _kept(cache.folder / key))
    return Counter({str(status): int(count) for status, count in made["counts"].items()})


def _synth_config(project: Project, baseline: Baseline, config: HarvestConfig) -> SynthConfig:
    tests = _test_files(baseline)
    return SynthConfig(
        projects=(str(project.path),),
        seed=config.seed,
        per_project=config.per_package,
        candidates_per_project=config.candidates_per_package,
        project_s=config.bugs_s,
        operators=config.operators,
        pairs=config.pairs,
        exclude=(*config.exclude, *tests),
        readonly=(*tests, "tests/", "conftest.py"),
        heldout_projects=0.0,
        heldout_bugs=config.heldout_bugs,
        heldout_by=config.heldout_by,
        timeout_s=round(max(config.bug_run_s, RUN_FACTOR * baseline.seconds), 1),
        workers=1,
        sandbox=config.sandbox,
    )


def _test_files(baseline: Baseline) -> list[str]:
    """Patterns for the files that hold the tests; modules that hold doctests are not among them."""
    tests = (test for test in baseline.passing if not is_doctest(test))
    return [f"/{path}" for path in dict.fromkeys(test.partition("::")[0] for test in tests)]


def _require_some(result: SynthResult, name: str) -> None:
    counts = result.counts[name]
    if counts["kept"]:
        return
    tried = counts.total()
    if tried and counts["uncovered"] == tried:
        raise TaskError(f"no test runs any line that could be changed ({tried} candidates): are its sources excluded?")
    found = ", ".join(f"{count} {status}" for status, count in counts.most_common()) or "no candidates"
    raise TaskError(f"none of the bugs is detected by its tests: {found}")


def _kept(folder: Path) -> list[tuple[Task, Oracle]]:
    """The tasks in a folder of the cache, which names their project as the set will."""
    oracles = {oracle.task_id: oracle for oracle in read_records(folder / "oracles.jsonl", Oracle, error=TaskError)}
    return [(task, oracles[task.id]) for task in read_records(folder / "tasks.jsonl", Task, error=TaskError)]
