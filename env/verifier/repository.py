"""A task's original repository in a sandbox of its own: to look things up, to rewrite its tests, and to run them once,
with a patch or without.
"""

from __future__ import annotations

import ast
import json
import posixpath
import secrets
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Self

from pydantic import ValidationError

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import apply_to_sandbox, patched_texts, write_texts
from gumshoe.env.patterns import Patterns
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.verifier.rules import Rules, Sides, patch_sides, shadowing_paths
from gumshoe.env.verifier.trees import read_tree
from gumshoe.env.verifier.variants import Choice, Variants, draw_doctests
from gumshoe.env.workspace import READONLY_FILE
from gumshoe.errors import SandboxError, TaskError
from gumshoe.records import Task, TestOutcome, TestRun
from gumshoe.tools.runs.commands import our_program
from gumshoe.tools.runs.outcomes import outcomes_of, plan_launch, record_variables

VARIANTS, PROGRAM = "variants.json", "verdict.variants"
TREE, TREE_PROGRAM = "tree.json", "verdict.trees"
REWRITE_S, PARSE_S = 120.0, 60.0
GLOB_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "*?[]!#\\ "})
OPTIONS = "--tb=line"
"""Tests whose outcomes count need no tracebacks; files that cannot be imported are described all the same."""


class Applied(NamedTuple):
    """What a patch did to the repository.

    Attributes:
        reverted_files: those that configure the tests, which were put back.
        changed: the files that stay changed, each with its content before and after.
        paths: every file that is there afterwards.
    """

    reverted_files: tuple[str, ...] = ()
    changed: Mapping[str, Sides] = MappingProxyType({})
    paths: frozenset[str] = frozenset()


class TaskRepository:
    """The original repository of a task. It stays as it is until a patch is applied or the tests are run, which happens
    once.

    Raises as `open_sandbox`; TaskError: the test patch does not fit.
    """

    def __init__(self, task: Task, rules: Rules, config: SandboxConfig, *, trusted: bool) -> None:
        self._task = task
        self._rules = rules
        self._sandbox = open_sandbox(task, config, trusted=trusted)
        try:
            # Runs whose order of sets differs could differ in their outcomes.
            self._sandbox.activate({"PYTHONHASHSEED": "0", **self._sandbox.environment}, self._sandbox.python)
            self._tests = self._hidden_tests()
            self._readonly = Patterns([*self._lines(READONLY_FILE), *task.readonly])
            self._clean = self._sandbox.snapshot()
            self._launch = plan_launch(task.entrypoint, self._sandbox.support)
        except BaseException:
            self._sandbox.close()
            raise

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        self._sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def make_variants(self, tests: Sequence[str], choice: Choice) -> Variants:
        """Two variants of the test files, where `tests` are the ids of all tests that count. The repository must not
        have been patched.

        Raises SandboxError: the files could not be rewritten.
        """
        sandbox = self._sandbox
        write_texts(sandbox, self._tests)
        paths = [entry.path for entry in sandbox.walk() if entry.kind == "file" and entry.path.endswith(".py")]
        script = self._launch.script
        request = {
            "tests": tests,
            "vary": choice.tests,
            "proven": choice.proven,
            "files": [path for path in paths if self._rules.is_test(path, self._readonly) or path == script],
            "script": script,
            "seed": secrets.token_hex(16),
            "draw": choice.draw,
            "all": choice.everything,
        }
        answer = posixpath.join(sandbox.support, VARIANTS)
        argv = [sandbox.python, *our_program(sandbox.support, PROGRAM), answer]
        result = sandbox.run(argv, input=json.dumps(request).encode(), timeout=REWRITE_S)
        try:
            if result.exit_code == 0:
                made = Variants.model_validate_json(sandbox.read_file(answer, inside=False))
                return draw_doctests(made, choice)
            why = (result.output.strip().splitlines() or ["no output"])[-1]
        except (OSError, ValidationError) as error:
            why = str(error)
        finally:
            sandbox.restore(self._clean)
        raise SandboxError(f"task {self._task.id}: its tests cannot be rewritten: {why}")

    def apply(self, patch: str) -> Applied:
        """Applies a patch, and puts the tests and their configuration back. An empty one changes nothing.

        Raises PatchError: the patch does not apply.
        """
        if not patch.strip():
            return Applied()
        own = self._own_configuration()
        apply_to_sandbox(self._sandbox, patch, self._task.id, self._clean)
        contents = self._sandbox.changes(self._clean)
        # What the patch names counts as changed, too, where nothing of it differs afterwards.
        changed = {**patch_sides(patch), **contents}
        tests = {path for path in changed if self._rules.is_test(path, self._readonly)}
        configuration = self._rules.configuration(changed)
        present = frozenset(entry.path for entry in self._sandbox.walk() if entry.kind != "dir")
        if any(before is None for before, _ in changed.values()):
            configuration.update(shadowing_paths(changed, present))
        configuration -= tests
        put_back = [f"/{path.translate(GLOB_SIGNS)}" for path in sorted(tests | configuration)]
        if put_back:
            self._sandbox.restore(self._clean, only=Patterns(put_back).pairs)
            write_texts(self._sandbox, {path: own[path] for path in own if path in tests | configuration})
        stay = {path: sides for path, sides in contents.items() if path not in tests | configuration}
        return Applied(tuple(sorted(configuration)), stay, present)

    def read(self, path: str) -> bytes:
        """The content of a file. Raises OSError."""
        return self._sandbox.read_file(path)

    def parse(self, source: bytes) -> ast.Module:
        """The syntax tree of a file, as the project's own Python parses it. Raises ValueError: it does not."""
        sandbox = self._sandbox
        answer = posixpath.join(sandbox.support, TREE)
        argv = [sandbox.python, *our_program(sandbox.support, TREE_PROGRAM), answer]
        if sandbox.run(argv, input=source, timeout=PARSE_S).exit_code != 0:
            raise ValueError("it cannot be parsed")
        try:
            return read_tree(sandbox.read_file(answer, inside=False))
        except OSError as error:
            raise ValueError(str(error)) from None

    def run(self, files: Mapping[str, bytes], mtime: float) -> TestRun:
        """Runs all tests to their end.

        Args:
            files: contents that take the place of those in the repository: of test files, and of code with doctests.
            mtime: when they were modified, in seconds since the epoch.

        Raises:
            SandboxError: the sandbox broke.
        """
        sandbox = self._sandbox
        write_texts(sandbox, {path: text for path, text in self._tests.items() if path not in files})
        for path, data in files.items():
            sandbox.write_file(path, data, mtime=mtime)
        sandbox.prepare_support()
        result = sandbox.run(
            self._launch.argv,
            env=record_variables(sandbox, options=OPTIONS),
            timeout=self._task.limits.command_timeout_s,
        )
        outcomes = outcomes_of(sandbox, self._launch, result)
        script = self._launch.script
        if script is not None and not outcomes and not result.timed_out:
            ended = "passed" if result.exit_code == 0 else "failed"
            message = (result.output.strip().splitlines() or [""])[-1] if result.exit_code else ""
            outcomes = (TestOutcome(id=script, outcome=ended, message=message),)
        return TestRun(result=result, outcomes=outcomes)

    def _hidden_tests(self) -> dict[str, str | None]:
        """The files of the test patch as it leaves them, where the task comes without them."""
        if self._task.regime != "issue" or not self._rules.oracle.test_patch:
            return {}
        try:
            return patched_texts(self._sandbox, self._rules.oracle.test_patch)
        except TaskError as error:
            raise TaskError(f"task {self._task.id}: its test patch: {error}") from None

    def _own_configuration(self) -> dict[str, str | None]:
        """Test configuration that the gold patch changes, as it leaves it: that counts as original."""
        paths = self._rules.own_configuration
        texts = patched_texts(self._sandbox, self._rules.oracle.gold_patch) if paths else {}
        return {path: texts[path] for path in paths if path in texts}

    def _lines(self, path: str) -> list[str]:
        try:
            return self._sandbox.read_file(path).decode("utf-8", "replace").splitlines()
        except OSError:
            return []
