"""The verifier: the only judge of patches. What it says is a task's reward, its `resolved` and its grade.

Each verdict is made in a sandbox of its own that holds the original repository and the patch, and nothing else of the
world in which the patch was made. Tests and what configures them come from the original; every test reports to a
process that has not loaded the code under test; named tests decide.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import apply_to_sandbox, parse_patch, patched_texts, write_texts
from gumshoe.env.ignore import Patterns
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.built_in import is_built_in
from gumshoe.env.verifier.harness_files import (
    Sides,
    is_configuration,
    is_runner,
    is_test_file,
    named_test_files,
    shadowing_paths,
)
from gumshoe.env.verifier.judge import Verdict, judge, known_tests
from gumshoe.env.verifier.original import verified_task
from gumshoe.env.verifier.reports import CheckedRun
from gumshoe.env.verifier.supervised import SupervisedTests
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task

__all__ = ["Verifier", "verify"]

READONLY_FILE = ".debugreadonly"
GLOB_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "*?[]!#\\ "})
KNOWN_KEPT = 256
UNREADABLE: Sides = (b"\xff", b"\xff")
"""Stands for the content of what is not a regular file, or is not looked at."""


def verify(task: Task, oracle: Oracle | None, patch: str, config: SandboxConfig, *, trusted: bool) -> Verdict:
    """The verdict on one patch, in a sandbox of its own. Raises as `Verifier` and `Verifier.verify`."""
    with Verifier(task, oracle, config, trusted=trusted) as verifier:
        return verifier.verify(patch)


class Verifier:
    """Where one task's tests are run on its original repository with a patch.

    Args:
        task: the task that the patch is for.
        oracle: its answer, which names the tests that decide. None, or one that names none: the tests of the original
            repository decide (see `known_tests`).
        config: which sandbox, and its limits.
        trusted: the patches come from a built-in script, or are the oracle's own. The `local` sandbox takes only these,
            and only where the task and the oracle are built in (see `is_built_in`).

    Raises:
        GumshoeError: the sandbox cannot be opened, or the test patch does not fit; a TaskError names the task.
    """

    def __init__(self, task: Task, oracle: Oracle | None, config: SandboxConfig, *, trusted: bool) -> None:
        self._oracle = oracle or Oracle(task_id=task.id, gold_patch="")
        self._task = verified_task(task, self._oracle)
        self._output_bytes = config.output_kb << 10
        self._key = f"{task.hash} {task.workspace.path}"
        trusted = trusted and is_built_in(task, oracle)
        self._sandbox = open_sandbox(self._task, config, trusted=trusted, verdict=True)
        try:
            self._tests = self._hidden_tests()
            self._readonly = Patterns([*self._pattern_file(READONLY_FILE), *self._task.readonly])
            self._clean = self._sandbox.snapshot()
            self._is_clean = True
            self._waiting: SupervisedTests | None = None
            self._used: SupervisedTests | None = None
        except BaseException:
            self._sandbox.close()
            raise

    def verify(self, patch: str) -> Verdict:
        """The verdict on a patch; an empty one leaves the repository as it is.

        Raises:
            TaskError: the patch does not apply.
            SandboxError: the sandbox broke.
        """
        checked, restored = self.observe(patch)
        return judge(checked, self._expected, restored)

    def observe(self, patch: str) -> tuple[CheckedRun, tuple[str, ...]]:
        """The run of the tests that `verify` judges, and the configuration that was put back. Raises as `verify`."""
        self.prepare()
        changed, restored = self._apply(patch)
        return self._run(changed, sorted(self._named)), restored

    def prepare(self) -> None:
        """Does early what needs no patch: clears the sandbox, finds the tests that decide, starts the tests' process.

        Raises as `verify`.
        """
        named = sorted(self._named)
        self._clear()
        self._ready_tests(named)

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @functools.cached_property
    def _expected(self) -> Oracle:
        """The oracle, or the tests that are known of the original repository."""
        if self._oracle.fail_to_pass or self._oracle.pass_to_pass:
            return self._oracle
        known = _known.get(self._key)
        if known is None:
            self._clear()
            known = known_tests(self._run((), ()), self._task.id)
            if self._task.workspace.content is not None or self._task.workspace.image is not None:
                while len(_known) >= KNOWN_KEPT:
                    _known.pop(next(iter(_known)), None)
                _known[self._key] = known
        return known

    def _apply(self, patch: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Applies a patch and puts the original tests and their configuration back.

        Returns the paths that stay changed, and the configuration that was put back. A file that is exactly as the gold
        patch leaves it does not count as changed: what it does to the runner is the project's own doing, such as an
        importer of its own.
        """
        own = self._own_configuration if patch.strip() else {}
        _ = self._gold_texts  # Read where the files are the original ones.
        self._clear()
        if not patch.strip():
            return (), ()
        self._is_clean = False
        apply_to_sandbox(self._sandbox, patch, self._task.id, self._clean)
        changed = {**_sides(patch), **self._sandbox.changes(self._clean)}
        tests = {path for path in changed if self._is_test(path)}
        configuration = self._configuration(changed) - tests
        put_back = [f"/{path.translate(GLOB_SIGNS)}" for path in sorted(tests | configuration)]
        if put_back:
            self._sandbox.restore(self._clean, only=Patterns(put_back).pairs)
            write_texts(self._sandbox, {path: own[path] for path in own if path in tests | configuration})
        stay = sorted(path for path in set(changed) - tests - configuration if not self._is_as_gold(path))
        return tuple(stay), tuple(sorted(configuration))

    def _is_as_gold(self, path: str) -> bool:
        """Whether a file is now what the gold patch makes of it."""
        text = gold.get(path) if (gold := self._gold_texts) else None
        try:
            return text is not None and self._sandbox.read_file(path) == text.encode("utf-8", "surrogateescape")
        except OSError:
            return False

    def _is_test(self, path: str) -> bool:
        """Whether a changed file is a test that decides, is read-only, or is a test by the common layouts."""
        if path in self._named or self._readonly.match(path):
            return True
        return is_test_file(path) and path not in self._gold_paths and not path.endswith("conftest.py")

    def _configuration(self, changed: dict[str, Sides]) -> set[str]:
        found = {path for path, sides in changed.items() if is_configuration(path, sides)}
        if self._own_answer:
            found -= self._gold_paths
        found.update(
            path for path in changed if is_runner(path, self._task.entrypoint) and path not in self._gold_paths
        )
        if any(before is None for before, _ in changed.values()):
            present = {entry.path for entry in self._sandbox.walk() if entry.kind != "dir"}
            found.update(shadowing_paths(changed, present))
        return found

    def _run(self, changed: Sequence[str], deciding: Sequence[str]) -> CheckedRun:
        """One run of the tests, which report to the supervisor; `deciding` are the files with those that decide."""
        write_texts(self._sandbox, self._tests)
        self._is_clean = False
        tests, self._waiting = self._ready_tests(), None
        try:
            return tests.run(changed, deciding)
        finally:
            self._used = tests

    def _ready_tests(self, deciding: Sequence[str] = ()) -> SupervisedTests:
        """The tests' process that waits to be run; a fresh one for every verdict. `deciding` are files to get ready."""
        if self._used is not None:
            self._used.close()
            self._used = None
        if self._waiting is None:
            self._waiting = SupervisedTests(self._sandbox, self._task, self._output_bytes, deciding)
        return self._waiting

    def _clear(self) -> None:
        """Restores the original files."""
        if not self._is_clean:
            self._sandbox.restore(self._clean)
            self._is_clean = True

    def _hidden_tests(self) -> dict[str, str | None]:
        """The files of the test patch as it leaves them, where the task comes without them."""
        if self._task.regime != "issue" or not self._oracle.test_patch:
            return {}
        try:
            return patched_texts(self._sandbox, self._oracle.test_patch)
        except TaskError as error:
            raise TaskError(f"task {self._task.id}: its test patch: {error}") from None

    @functools.cached_property
    def _named(self) -> frozenset[str]:
        return frozenset((*named_test_files(self._expected), *_paths(self._oracle.test_patch)))

    @functools.cached_property
    def _gold_paths(self) -> frozenset[str]:
        return frozenset(_paths(self._oracle.gold_patch))

    @functools.cached_property
    def _own_answer(self) -> bool:
        """Whether the answer is nothing but test configuration, which is then the code to repair."""
        paths = self._gold_paths
        return bool(paths) and all(is_configuration(path, UNREADABLE) for path in paths)

    @functools.cached_property
    def _own_configuration(self) -> dict[str, str | None]:
        """Test configuration that the gold patch changes, as it leaves it: that counts as original."""
        paths = {path for path in self._gold_paths if is_configuration(path, UNREADABLE)}
        if not paths or self._own_answer:
            return {}
        self._clear()
        texts = patched_texts(self._sandbox, self._oracle.gold_patch)
        return {path: texts[path] for path in paths if path in texts}

    @functools.cached_property
    def _gold_texts(self) -> dict[str, str | None]:
        """The files of the gold patch as it leaves them; none where it does not fit."""
        if not self._oracle.gold_patch.strip():
            return {}
        self._clear()
        try:
            return patched_texts(self._sandbox, self._oracle.gold_patch)
        except TaskError:
            return {}

    def _pattern_file(self, name: str) -> list[str]:
        try:
            return self._sandbox.read_file(name).decode("utf-8", "replace").splitlines()
        except OSError:
            return []


_known: dict[str, Oracle] = {}
"""The known tests of tasks whose oracle names none, by the task."""


def _paths(patch: str) -> list[str]:
    return list(_sides(patch))


def _sides(patch: str) -> dict[str, Sides]:
    """The paths that a patch names; None where there is no file before or after, links included."""
    try:
        files = parse_patch(patch) if patch.strip() else []
    except TaskError:
        return {}
    found: dict[str, Sides] = {}
    for file in files:
        if file.source is not None:
            found[file.source] = (UNREADABLE[0], None if file.target != file.source else UNREADABLE[1])
        if file.target is not None and file.target not in found:
            found[file.target] = (None, UNREADABLE[1])
    return found
