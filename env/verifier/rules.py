"""Which of the files that a patch changes come from the original repository in the verdicts on one task."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from gumshoe.env.diff import parse_patch
from gumshoe.env.ignore import Patterns
from gumshoe.env.verifier.harness_files import Sides, is_configuration, is_runner, is_test_file, named_test_files
from gumshoe.errors import TaskError
from gumshoe.records import Oracle

__all__ = ["UNREADABLE", "Rules"]

UNREADABLE: Sides = (b"\xff", b"\xff")
"""Stands for the content of what is not a regular file, or is not looked at."""


@dataclass(frozen=True)
class Rules:
    """What is put back for one task.

    Attributes:
        oracle: the answer.
        expected: names the tests that decide.
        entrypoint: the argv that runs them.
    """

    oracle: Oracle
    expected: Oracle
    entrypoint: tuple[str, ...]

    def is_test(self, path: str, readonly: Patterns) -> bool:
        """Whether a file is a test that decides, is read-only, or is a test by the common layouts."""
        if path in self.named or readonly.match(path):
            return True
        return is_test_file(path) and path not in self.gold_paths and not path.endswith("conftest.py")

    def configuration(self, changed: Mapping[str, Sides]) -> set[str]:
        """The changed files that configure the tests or run them."""
        found = {path for path, sides in changed.items() if is_configuration(path, sides)}
        if self._own_answer:
            found -= self.gold_paths
        found.update(path for path in set(changed) - self.gold_paths if is_runner(path, self.entrypoint))
        return found

    @functools.cached_property
    def named(self) -> frozenset[str]:
        """The files with the tests that decide."""
        return frozenset((*named_test_files(self.expected), *self.sides(self.oracle.test_patch)))

    @functools.cached_property
    def gold_paths(self) -> frozenset[str]:
        """The files that the gold patch changes."""
        return frozenset(self.sides(self.oracle.gold_patch))

    @functools.cached_property
    def own_configuration(self) -> frozenset[str]:
        """Test configuration that the gold patch changes besides the code."""
        configuration = frozenset(path for path in self.gold_paths if is_configuration(path, UNREADABLE))
        return frozenset() if self._own_answer else configuration

    @functools.cached_property
    def _own_answer(self) -> bool:
        """Whether the answer is nothing but test configuration, which is then the code to repair."""
        paths = self.gold_paths
        return bool(paths) and all(is_configuration(path, UNREADABLE) for path in paths)

    @staticmethod
    def sides(patch: str) -> dict[str, Sides]:
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
