"""The rename stage: a project, its tests and its environment under new names, proven by its own tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pathspec

from gumshoe.env.config import SandboxConfig
from gumshoe.env.environments import RECORD, environment_folder
from gumshoe.env.harvest.baseline import Baseline
from gumshoe.env.harvest.config import HarvestConfig
from gumshoe.env.harvest.lock import Lock
from gumshoe.env.harvest.rename.foreign import foreign_names
from gumshoe.env.harvest.rename.ids import matched, new_argument, new_id
from gumshoe.env.harvest.rename.installed import (
    installed_names,
    keep_renamed_environment,
    renamed_lock,
    site_of,
)
from gumshoe.env.harvest.rename.names import Names, choose_names
from gumshoe.env.harvest.rename.proof import DOCUMENTS, Proof, RenamedRun, prove
from gumshoe.env.harvest.rename.survey import survey
from gumshoe.env.harvest.rename.tree import RewrittenFiles, is_document, new_path, read_tree, write_tree
from gumshoe.env.harvest.stages import StageCache, key_of
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.synth.suite import Suite
from gumshoe.env.tasks.content import digest_of
from gumshoe.env.workspace import Workspace
from gumshoe.errors import TaskError
from gumshoe.records import TestRun

__all__ = ["Renamed", "rename_project"]

# Changed whenever the stage gives a different result for the same input.
VERSION = 1
GOOD = ("passed", "xfailed")
SETTLING_ROUNDS = 3
# The largest share of the tests that may be lost.
MAX_LOST = 0.25

Note = Callable[[str], None]


@dataclass(frozen=True)
class Renamed:
    """A renamed project.

    Attributes:
        project: its files.
        lock: of its environment.
        baseline: its tests.
        exclude: patterns of the files that get no bugs because they got none under their old names.
        summary: how many names were `found`, `renamed` and `put_back`; tests `before`, and `lost`.
        record: everything that is needed to recover the old names.
    """

    project: Path
    lock: Lock
    baseline: Baseline
    exclude: tuple[str, ...]
    summary: dict[str, int]
    record: dict[str, Any]


def rename_project(
    name: str, project: Path, lock: Lock, baseline: Baseline, config: HarvestConfig, say: Note
) -> Renamed:
    """Replaces the names of a project whose tests are known to pass.

    Raises TaskError when too many of its tests need the old names.
    """
    key = key_of(VERSION, name, digest_of(project), lock.name, asdict(baseline), config.seed, config.exclude)

    def make(folder: Path) -> dict[str, Any]:
        return _Stage(name, project, lock, baseline, config, folder).run(say)

    cache = StageCache("rename")
    made = cache.get(key, make, lambda made: _is_there(Lock.from_json(made["lock"])))
    kept = made["baseline"]
    return Renamed(
        cache.folder / key / "project",
        Lock.from_json(made["lock"]),
        Baseline(tuple(kept["arguments"]), tuple(kept["passing"]), kept["deselected"], kept["seconds"]),
        tuple(made["exclude"]),
        made["summary"],
        made["record"],
    )


def _is_there(lock: Lock) -> bool:
    return (environment_folder(lock.name) / RECORD).is_file()


class _Stage:
    def __init__(
        self, name: str, project: Path, lock: Lock, baseline: Baseline, config: HarvestConfig, folder: Path
    ) -> None:
        self._name, self._lock, self._baseline, self._config = name, lock, baseline, config
        self._target = folder / "project"
        self._tree = read_tree(project)
        self._cache = RewrittenFiles()
        self._made: set[str] = set()
        self._distribution, installed = installed_names(lock)
        modules = self._tree.modules
        foreign = foreign_names((), site_of(lock.name)).modules
        packages = {
            path.rpartition("/")[2] for path in self._tree.packages if path.rpartition("/")[0] in ("", "src", "lib")
        }
        tops = (packages | installed | {self._distribution}) & modules
        self._own = frozenset(tops | (modules - foreign))
        found = survey(self._tree.trees, self._own)
        others = foreign_names(found.imported, site_of(lock.name))
        self._found = {item for item in found.variables | found.attributes | modules if not item.startswith("__")}
        self._names = choose_names(found, others, modules, frozenset(tops), self._tree.fixed, config.seed)
        self._others = others
        shown = {test.partition("::")[0] for test in baseline.passing}
        self._shown = frozenset(path for path in shown if is_document(path))

    def run(self, say: Note) -> dict[str, Any]:
        say(f"{len(self._names.new)} names of {len(self._found)}")
        final = ""
        try:
            proof = prove(self._names, self._try, self._doubtful(), say)
            lost = len(proof.lost)
            if lost > MAX_LOST * len(self._baseline.passing):
                raise TaskError(f"{lost} of its {len(self._baseline.passing)} tests fail under other names")
            baseline, tests = self._settle(proof)
            final = self._lock_for(proof.names).name
        finally:
            for made in self._made - {final}:
                shutil.rmtree(environment_folder(made), ignore_errors=True)
        names = proof.names
        summary = {
            "found": len(self._found),
            "renamed": len(names.new),
            "put_back": len(proof.put_back),
            "before": len(self._baseline.passing),
            "lost": len(self._baseline.passing) - len(baseline.passing),
        }
        record = {
            **summary,
            "seed": self._config.seed,
            "runs": proof.runs,
            "names": dict(names.new),
            "names_put_back": dict(proof.put_back),
            "tests_lost": [test for test in self._baseline.passing if test not in tests],
            "tests": tests,
        }
        return {
            "lock": asdict(self._lock_for(names)),
            "baseline": asdict(baseline),
            "exclude": self._excluded(names),
            "summary": summary,
            "record": record,
        }

    def _lock_for(self, names: Names) -> Lock:
        return renamed_lock(self._lock, names, self._distribution)

    def _write(self, names: Names, back: Iterable[str]) -> Lock:
        """Writes the project and makes its environment."""
        kept = self._shown
        if DOCUMENTS in back:
            files = (path.relative_to(self._tree.folder).as_posix() for path in self._tree.folder.rglob("*"))
            kept = frozenset(path for path in files if is_document(path))
        write_tree(self._tree, names, self._target, self._own, kept, self._cache)
        lock = self._lock_for(names)
        if not _is_there(lock):
            keep_renamed_environment(self._lock, lock)
            self._made.add(lock.name)
        return lock

    def _try(self, names: Names, back: frozenset[str], tests: Sequence[str]) -> RenamedRun:
        lock = self._write(names, back)
        wanted = [new_id(test, self._tree, names).partition("[")[0] for test in tests]
        run = self._run(lock, (*self._arguments(names), *dict.fromkeys(wanted)))
        outcomes = {outcome.id: outcome for outcome in run.outcomes}
        found = matched(tests or self._baseline.passing, outcomes, self._tree, names)
        failed: dict[str, str] = {}
        for test in tests or self._baseline.passing:
            outcome = outcomes.get(found.get(test, ""))
            if outcome is None or outcome.outcome not in GOOD:
                failed[test] = outcome.message if outcome is not None else ""
        broken = [outcome.message for outcome in run.outcomes if outcome.outcome == "error"]
        return RenamedRun(failed, "\n".join([*broken, run.result.output[-20_000:]]) if failed else "")

    def _arguments(self, names: Names) -> tuple[str, ...]:
        return tuple(new_argument(argument, self._tree, names) for argument in self._baseline.arguments)

    def _run(self, lock: Lock, arguments: Sequence[str]) -> TestRun:
        suite = Suite(lock.name, ("--continue-on-collection-errors", *arguments))
        task = suite.task(f"harvest/{self._name}", str(self._target))
        sandbox: SandboxConfig = self._config.sandbox
        wide = sandbox.model_copy(update={"output_kb": max(sandbox.output_kb, 1024)})
        with open_sandbox(task, wide, trusted=True) as opened:
            return Workspace(task, opened).run_tests(self._config.baseline.run_timeout_s)

    def _settle(self, proof: Proof) -> tuple[Baseline, dict[str, str]]:
        """The tests that pass now, and their ids by the old ones. Raises TaskError."""
        names = proof.names
        lock = self._write(names, proof.put_back)
        arguments = self._arguments(names)
        left_out: dict[str, str] = {}
        for _ in range(SETTLING_ROUNDS):
            run = self._run(lock, (*arguments, *(f"--deselect={test}" for test in left_out)))
            bad = [outcome.id for outcome in run.outcomes if outcome.outcome in ("failed", "error")]
            if run.passed:
                seen = [outcome.id for outcome in run.outcomes if outcome.outcome in GOOD]
                tests = matched(self._baseline.passing, seen, self._tree, names)
                gone = {new_id(test, self._tree, names): why for test, why in self._baseline.deselected.items()}
                lost = {
                    new_id(test, self._tree, names): "renamed" for test in self._baseline.passing if test not in tests
                }
                settled = (*arguments, *(f"--deselect={test}" for test in left_out))
                return Baseline(settled, tuple(seen), {**gone, **left_out, **lost}, self._baseline.seconds), tests
            left_out.update(dict.fromkeys(bad, "renamed"))
        raise TaskError("its tests do not stabilize under other names")

    def _doubtful(self) -> list[str]:
        """The names that occur in strings, or that others use too."""
        shared = self._names.survey.spoken | self._others.attributes | self._others.parameters
        return [name for name in self._names.new if name in shared]

    def _excluded(self, names: Names) -> list[str]:
        spec = pathspec.GitIgnoreSpec.from_lines(self._config.exclude)
        return [f"/{new_path(path, self._tree, names)}" for path in self._tree.texts if spec.match_file(path)]
