"""Which tests can be made to fail on a repaired repository, and with which of their comparisons.

The gold patches of a project's bugs all lead back to the project, and its tests on the same files show nothing new: one
proof serves all tasks whose answers lead to the same files. Its key is all that it depends on: the project's files, the
command with its limits, the environment, the sandbox. Only that of a sound run without a failing test is shared.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import apply_patch
from gumshoe.env.inside.programs.project import is_test_file
from gumshoe.env.patterns import Patterns
from gumshoe.env.verifier.judge import NamedOutcomes, Sign, any_within, judge, lines_in, sign_of
from gumshoe.env.verifier.repository import Applied
from gumshoe.env.verifier.rules import UNREADABLE, is_configuration, is_runner, named_test_files
from gumshoe.env.verifier.variants import Choice, TestDefinition
from gumshoe.env.verifier.verifier import SAMPLE, Verifier
from gumshoe.env.workspace import READONLY_FILE
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task, TestOutcome, TestRun

ROUNDS = 4
"""How often comparisons that do not fail are left out, at the cost of one run of the tests each time. Without them the
others may behave differently, so this need not come to rest; after the last round, no comparison is changed, only the
assertions at the end.
"""
KEPT = 8
"""How many proofs are kept; the oldest goes first."""


@dataclass(frozen=True)
class Proof:
    """What is known of a repaired repository.

    Attributes:
        run: a run of its original tests.
        applied: what the gold patch did to it.
        tests: the definitions of each test that decides; none for one that cannot be varied.
        falsifiable: the definitions that fail where they are made false, and pass otherwise, each with the comparisons
            that can be changed.
    """

    run: TestRun
    applied: Applied
    tests: Mapping[str, tuple[str, ...]]
    falsifiable: Mapping[str, tuple[int, ...]]

    def repairs(self, oracle: Oracle) -> bool:
        """Whether all tests are as this answer wants them."""
        return judge(self.run, oracle).resolved

    def sample(self, oracle: Oracle) -> dict[str, tuple[int, ...]]:
        """What to keep with a task: all tests that are to pass, and some that are not to break."""
        others = oracle.pass_to_pass
        chosen = random.Random(oracle.task_id).sample(others, min(SAMPLE, len(others)))
        names = {name for test in (*oracle.fail_to_pass, *chosen) for name in self.tests.get(test, ())}
        return {name: self.falsifiable[name] for name in sorted(names) if name in self.falsifiable}


class RepairedRuns:
    """What is known of repaired repositories in one kind of sandbox. Several threads may share it."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config
        self._lock = threading.Lock()
        self._proofs: dict[str, Proof] = {}

    def proof(self, task: Task, oracle: Oracle) -> Proof:
        """What is known of the task's repository with its gold patch; it is found out if no earlier task has.

        Of a repository that the gold patch does not repair, no test is proven.

        Raises as `Verifier` and `Verifier.verify`.
        """
        key = self._key(task, oracle)
        with self._lock:
            known = self._proofs.get(key) if key is not None else None
        if known is not None and known.repairs(oracle) and set(oracle.fail_to_pass) <= set(known.tests):
            return known
        with Verifier(task, oracle, self._config, trusted=True) as verifier:
            run, applied = verifier.observe(oracle.gold_patch)
            if not judge(run, verifier.expected).resolved:
                return Proof(run, applied, {}, {})
            proof = _prove(verifier, oracle.gold_patch, run, applied)
        if key is not None and not proof.applied.reverted_files and _is_sound(proof.run):
            with self._lock:
                self._proofs[key] = proof
                if len(self._proofs) > KEPT:
                    del self._proofs[next(iter(self._proofs))]
        return proof

    def _key(self, task: Task, oracle: Oracle) -> str | None:
        """What the run with the gold patch depends on; None where more than a project's own files goes into it."""
        workspace = task.workspace
        if not _is_the_project(task, oracle):
            return None
        place = (workspace.content, workspace.workdir, workspace.environment)
        command = (task.entrypoint, task.readonly, task.limits.model_dump_json())
        return json.dumps([self._config.model_dump_json(), task.source, place, command])


def _is_the_project(task: Task, oracle: Oracle) -> bool:
    """Whether the gold patch leaves exactly the files in the project's folder, none of which is put back."""
    workspace = task.workspace
    named = oracle.fail_to_pass or oracle.pass_to_pass
    if task.regime != "debug" or task.setup or oracle.test_patch or not named:
        return False
    if workspace.path is None or workspace.content is None:
        return False
    before = {path: text for path, text in workspace.overlay.items() if text is not None}
    try:
        changed = apply_patch(before, oracle.gold_patch)
    except TaskError:
        return False
    folder, after = Path(workspace.path), {**workspace.overlay, **changed}
    is_reverted = _may_be_put_back(after, folder, task, oracle)
    return not is_reverted and all(_is(folder / path, text) for path, text in after.items())


def _may_be_put_back(paths: Iterable[str], folder: Path, task: Task, oracle: Oracle) -> bool:
    """Whether one of the paths is a test or configures them, so that it is not what the patch makes of it."""
    listed = folder / READONLY_FILE
    lines = listed.read_text("utf-8", "replace").splitlines() if listed.is_file() else ()
    named, readonly = named_test_files(oracle), Patterns([*lines, *task.readonly])
    return any(
        path in named
        or path == READONLY_FILE
        or readonly.match(path)
        or is_test_file(path)
        or is_runner(path, task.entrypoint)
        or is_configuration(path, UNREADABLE)
        for path in paths
    )


def _is(path: Path, text: str | None) -> bool:
    """Whether a file holds this text and is not executable, which it would not be in a sandbox."""
    try:
        same = text is not None and path.read_bytes() == text.encode("utf-8", "surrogateescape")
        return same and not path.stat().st_mode & 0o111
    except OSError:
        return False


def _is_sound(run: TestRun) -> bool:
    return bool(run.outcomes) and not run.result.timed_out and not any(outcome.failed for outcome in run.outcomes)


def find_falsifiable(
    pairs: Iterable[tuple[Task, Oracle]], config: SandboxConfig, workers: int = 1
) -> dict[str, dict[str, tuple[int, ...]]]:
    """`Oracle.falsifiable` of tasks, by task; without those that their gold patches do not repair.

    Raises as `Verifier` and `Verifier.verify`.
    """
    repaired = RepairedRuns(config)
    projects: dict[str | None, list[tuple[Task, Oracle]]] = {}
    for task, oracle in pairs:
        projects.setdefault(task.workspace.path, []).append((task, oracle))

    def of_project(bugs: Iterable[tuple[Task, Oracle]]) -> dict[str, dict[str, tuple[int, ...]]]:
        # One after the other, so that the first proof serves the others.
        proofs = {task.id: (repaired.proof(task, oracle), oracle) for task, oracle in bugs}
        return {name: proof.sample(oracle) for name, (proof, oracle) in proofs.items() if proof.repairs(oracle)}

    with ThreadPoolExecutor(workers) as threads:
        return {name: each for found in threads.map(of_project, projects.values()) for name, each in found.items()}


def _prove(verifier: Verifier, patch: str, run: TestRun, applied: Applied) -> Proof:
    """Makes everything false at once, and leaves out what does not fail, until the rest does.

    Args:
        verifier: of the task.
        patch: leads to the repaired repository.
        run, applied: what `Verifier.observe` has shown of it.
    """
    named = (*verifier.expected.fail_to_pass, *verifier.expected.pass_to_pass)
    everything = verifier.make_variants(Choice(named, None, draw=False, everything=True))
    (kept, false), variants, _ = verifier.run_variants(patch, everything, (0, 1))
    tests = variants.tests
    tests_of: dict[str, list[str]] = {}
    for test, names in tests.items():
        for name in names:
            tests_of.setdefault(name, []).append(test)
    passing = _passing(run)
    # What no longer passes where nothing is false does not bear being rewritten.
    spoiled = passing - _passing(kept)
    original = NamedOutcomes(run.outcomes)
    left = {
        name: variants.definitions[name].comparisons
        for name, own in tests_of.items()
        if not any(outcome.id in spoiled for test in own for outcome in original.of(test))
    }
    for _ in range(ROUNDS):
        seen = NamedOutcomes(false.outcomes)
        remaining: dict[str, tuple[int, ...]] = {}
        for name in left:
            outcomes = [outcome for test in tests_of[name] for outcome in seen.of(test) if outcome.id in passing]
            numbers = _proven(outcomes, variants.definitions[name])
            if numbers is not None:
                remaining[name] = numbers
        if remaining == left or not remaining:
            return Proof(run, applied, tests, remaining)
        left = remaining
        fewer = verifier.make_variants(Choice(named, left, draw=False))
        (false,), variants, _ = verifier.run_variants(patch, fewer, (1,))
    return Proof(run, applied, tests, dict.fromkeys(left, ()))


def _passing(run: TestRun) -> set[str]:
    return {outcome.id for outcome in run.outcomes if outcome.outcome == "passed"}


def _proven(outcomes: Sequence[TestOutcome], definition: TestDefinition) -> tuple[int, ...] | None:
    """The comparisons that were unequal to another value; None where the tests do not fail as they must."""
    if outcomes and sign_of(outcomes, definition, repaired=True) is Sign.PROVEN:
        return definition.comparisons
    lines = [line for outcome in outcomes if outcome.failed for line in lines_in(outcome, definition.path)]
    good = tuple(
        number
        for number, place in zip(definition.comparisons, definition.asks_at, strict=True)
        if not any_within(lines, [place])
    )
    all_fail = all(outcome.failed for outcome in outcomes)
    return good if len(good) < len(definition.comparisons) and all_fail else None
