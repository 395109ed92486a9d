"""The final patch of an episode: what the agent has changed, and none of the test files."""

from __future__ import annotations

from gumshoe.env.diff import drop_files, parse_patch
from gumshoe.env.verifier.harness_files import named_test_files
from gumshoe.records import Oracle

__all__ = ["without_tests"]


def without_tests(patch: str, oracle: Oracle) -> str:
    """A patch in git's format without the files that the oracle's tests are in. Raises TaskError.

    An agent that does not know the hidden tests may well write to their files; a grader puts them back anyway.
    """
    tests = {path for file in parse_patch(oracle.test_patch) for path in file.paths}
    tests.update(named_test_files(oracle))
    return drop_files(patch, tests)
