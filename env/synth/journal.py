"""Verdicts on candidates that outlive the process: what was judged before an interruption is not judged again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gumshoe.cache import JsonlCache
from gumshoe.env.synth.bug import Bug
from gumshoe.env.synth.verify import CandidateVerdict, FailedTest

__all__ = ["VerdictJournal"]


class VerdictJournal:
    """A file of verdicts. It is valid for projects, tests and limits as they were when the verdicts were reached.

    Args:
        path: the file, a JSON object a line; read if it is there.

    Raises:
        DatasetError: the file has a line that Gumshoe did not write.
    """

    def __init__(self, path: Path) -> None:
        self._cache = JsonlCache(path)

    def verdicts(
        self, project: str, batch: Sequence[Bug], judge: Callable[[Sequence[Bug]], Sequence[CandidateVerdict]]
    ) -> list[CandidateVerdict]:
        """The verdicts on `batch`, in its order; `judge` is asked for those that are not known."""
        keys = [f"{project}:{bug.digest}" for bug in batch]
        new = [(key, bug) for key, bug in zip(keys, batch, strict=True) if self._cache.get(key) is None]
        if new:
            for (key, _), verdict in zip(new, judge([bug for _, bug in new]), strict=True):
                self._cache.keep(key, asdict(verdict))
        return [_verdict(self._cache.get(key) or {}) for key in keys]


def _verdict(facts: Mapping[str, Any]) -> CandidateVerdict:
    failures = facts["failures"]
    if failures is not None:
        failures = {test: _failure(**failure) for test, failure in failures.items()}
    return CandidateVerdict(facts["status"], tuple(facts["passing"]), failures)


def _failure(type: str, message: str, frames: Sequence[tuple[str, int, str]]) -> FailedTest:
    return FailedTest(type, message, tuple((path, line, function) for path, line, function in frames))
