"""One project while its bugs are being made: what to try next, what has been kept, and why the rest was not."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from gumshoe.env.synth.bug import Bug
from gumshoe.env.synth.config import SynthConfig
from gumshoe.env.synth.pairs import BugPair, pairs_of
from gumshoe.env.synth.projects import Project
from gumshoe.env.synth.splits import assign_splits, joined
from gumshoe.env.synth.verify import CandidateVerdict

__all__ = ["ProjectState"]

SPARE = 3
# The share of candidates that are kept: what is assumed at first, how many have to be judged before what was seen
# counts, and the least that is assumed then. A further batch costs more than several candidates.
FIRST_SHARE, ENOUGH_JUDGED, LEAST_SHARE = 0.8, 10, 0.2


@dataclass(eq=False)
class ProjectState:
    """Draws single bugs first. When these are used up, it pairs some of the kept ones.

    Attributes:
        candidates: the single bugs to try.
        kept: the bugs to make tasks of, each with its verdict.
        counts: what became of the candidates.
        splits: digest of each kept bug to its split.
    """

    project: Project
    sources: dict[str, str]
    candidates: Iterator[Bug]
    config: SynthConfig
    kept: list[tuple[Bug, CandidateVerdict]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    splits: dict[str, str] = field(default_factory=dict[str, str])
    _exhausted: bool = False
    _pairs: dict[str, BugPair] | None = None
    _seen: set[tuple[tuple[tuple[str, tuple[int, ...]], ...], frozenset[str]]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + (self.config.project_s or math.inf)
        self._wanted = self.config.per_project - _share(self.config, self.config.per_project)
        most = self.config.candidates_per_project
        self.candidates = islice(self.candidates, most - _share(self.config, most))

    def draw(self, most: int) -> list[Bug]:
        """The next candidates, as many as are probably needed; none means that this part is done."""
        if self.counts and time.monotonic() >= self._end:
            self._exhausted = True
            return []
        missing = self._wanted - len(self.kept)
        judged = self.counts.total()
        share = max(len(self.kept) / judged, LEAST_SHARE) if judged >= ENOUGH_JUDGED else FIRST_SHARE
        batch = list(islice(self.candidates, min(most, math.ceil(missing / share) + SPARE)))
        self._exhausted = not batch
        return batch

    @property
    def full(self) -> bool:
        """Whether the project has all the bugs that were asked for."""
        return len(self.kept) >= self._wanted

    def finish(self) -> bool:
        """Whether the project is done. When the single bugs are, the pairs come next."""
        if not self.full and not self._exhausted:
            return False
        if self._pairs is not None:
            return True
        self._pairs = {}
        self.splits = self._split()
        count = _share(self.config, self.config.per_project)
        self._wanted = len(self.kept) + count
        self.candidates = self._drawn_pairs(_share(self.config, self.config.candidates_per_project))
        return count == 0

    def judge(self, bug: Bug, verdict: CandidateVerdict) -> None:
        """Keeps the bug or counts why not. What comes after the last wanted one does not count."""
        if not self.full:
            self.counts[self._status(bug, verdict)] += 1

    def _drawn_pairs(self, most: int) -> Iterator[Bug]:
        assert self._pairs is not None
        for pair in islice(pairs_of(list(self.kept), self.splits, self.sources, self.config.seed), most):
            self._pairs[pair.both.digest] = pair
            yield pair.both

    def _status(self, bug: Bug, verdict: CandidateVerdict) -> str:
        if not verdict.failures:
            return verdict.status
        if any(failure.type == "MemoryError" for failure in verdict.failures.values()):
            return "memory"
        pair = (self._pairs or {}).get(bug.digest)
        if pair is not None and not pair.needs_both(verdict):
            return "half"
        key = (tuple(sorted(bug.lines.items())), frozenset(verdict.failures))
        if key in self._seen:
            return "duplicate"
        self._seen.add(key)
        self.kept.append((bug, verdict))
        if pair is not None:
            self.splits[bug.digest] = self.splits[pair.halves[0].digest]
        return "kept"

    def _split(self) -> dict[str, str]:
        bugs: Iterable[Bug] = [bug for bug, _ in self.kept]
        groups = {bug.digest: bug.digest for bug in bugs}
        if self.config.heldout_by == "function":
            groups = joined({bug.digest: [f"{path}:{symbol}" for path, symbol in bug.places] for bug in bugs})
        return assign_splits(groups, self.config.heldout_bugs, self.config.seed)


def _share(config: SynthConfig, whole: int) -> int:
    """How many of `whole` bugs are pairs."""
    return round(config.pairs * whole)
