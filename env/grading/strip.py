"""The final patch of an episode: what the agent has changed, and none of the test files."""

from __future__ import annotations

from gumshoe.env.grading.tasks import named_test_files
from gumshoe.env.tasks.lines import split_lines
from gumshoe.env.tasks.patch import parse_patch
from gumshoe.records import Oracle

__all__ = ["without_tests"]

START = "diff --git "


def without_tests(patch: str, oracle: Oracle) -> str:
    """A patch in git's format without the files that the oracle's tests stand in. Raises TaskError.

    An agent that does not know the hidden tests may well write to their files; a grader puts them back anyway.
    """
    tests = {path for file in parse_patch(oracle.test_patch) for path in (file.source, file.target) if path}
    tests.update(named_test_files(oracle))
    return "".join(part for part in _files(patch) if not tests & _paths(part))


def _files(patch: str) -> list[str]:
    """The patch cut before each file's header. The content of a file cannot look like one: its lines are prefixed."""
    parts: list[str] = []
    for line in split_lines(patch):
        if line.startswith(START) or not parts:
            parts.append("")
        parts[-1] += line
    return parts


def _paths(part: str) -> set[str]:
    return {path for file in parse_patch(part) for path in (file.source, file.target) if path}
