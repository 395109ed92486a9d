"""Bugs in two places: two proven bugs of different functions in one task, so that repairing one is not enough.

Either half alone makes tests fail, so tests fail until both are repaired. Halves that fail a test in common come first:
there a right repair of one half seems to change nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from gumshoe.env.bugs.candidates import Bug, CodePosition
from gumshoe.env.bugs.operators.mutation import statements
from gumshoe.env.bugs.verify import CandidateVerdict
from gumshoe.env.diff import split_lines

__all__ = ["TWO_PLACES", "BugPair", "pairs_of"]

TWO_PLACES = "two_places"


@dataclass(frozen=True)
class BugPair:
    """Two bugs, and the variant of the project that has both."""

    halves: tuple[Bug, Bug]
    failing: tuple[frozenset[str], frozenset[str]]
    both: Bug

    def needs_both(self, verdict: CandidateVerdict) -> bool:
        """Whether each half alone fails a test that the task names, so that no half repair resolves it."""
        named = {*(verdict.failures or ()), *verdict.passing}
        return all(failing & named for failing in self.failing)


def pairs_of(
    found: Sequence[tuple[Bug, CandidateVerdict]], splits: Mapping[str, str], sources: Mapping[str, str], seed: int
) -> Iterator[BugPair]:
    """Pairs of proven bugs in different functions of one split, each bug once, in an order drawn from the seed.

    Args:
        splits: digest of each bug to the split that it is in: a pair from both would be a twin of a held-out bug.
        sources: the texts of the clean files.
    """
    left = list(found)
    random.Random(f"gumshoe.synth pairs {seed}").shuffle(left)
    for shared in (True, False):
        single: list[tuple[Bug, CandidateVerdict]] = []
        while left:
            first = left.pop()
            second = next((other for other in left if _fit(first, other, splits, shared)), None)
            if second is None:
                single.append(first)
                continue
            left.remove(second)
            pair = _pair(first, second, sources)
            if pair is not None:
                yield pair
        left = single


def _fit(
    first: tuple[Bug, CandidateVerdict], second: tuple[Bug, CandidateVerdict], splits: Mapping[str, str], shared: bool
) -> bool:
    (one, verdict), (other, other_verdict) = first, second
    apart = all(_apart(here, there) for here in one.places for there in other.places)
    common = (verdict.failures or {}).keys() & (other_verdict.failures or {}).keys()
    return apart and splits[one.digest] == splits[other.digest] and bool(common) == shared


def _apart(one: CodePosition, other: CodePosition) -> bool:
    """Whether these are two functions, neither of them in the other."""
    if not one[1] or not other[1]:
        return False
    return one[0] != other[0] or not (
        f"{one[1]}.".startswith(f"{other[1]}.") or f"{other[1]}.".startswith(f"{one[1]}.")
    )


def _pair(
    first: tuple[Bug, CandidateVerdict], second: tuple[Bug, CandidateVerdict], sources: Mapping[str, str]
) -> BugPair | None:
    (one, verdict), (other, other_verdict) = first, second
    files = {**one.files, **other.files}
    for path in one.files.keys() & other.files.keys():
        text = _merged(sources[path], one.files[path], other.files[path])
        if text is None:
            return None
        files[path] = text
    lines = {path: tuple(sorted({*one.lines.get(path, ()), *other.lines.get(path, ())})) for path in files}
    kinds = ", ".join(sorted((one.operator, other.operator)))
    both = Bug(TWO_PLACES, files, lines, (*one.places, *other.places), {"halves": kinds})
    failing = (frozenset(verdict.failures or ()), frozenset(other_verdict.failures or ()))
    return BugPair((one, other), failing, both)


def _merged(clean: str, one: str, other: str) -> str | None:
    """`clean` with the changes of both; None where they touch each other."""
    edits = sorted([*_edits(clean, one), *_edits(clean, other)])
    lines = split_lines(clean)
    result: list[str] = []
    done = 0
    for start, end, replacement in edits:
        if start <= done and result:
            return None
        result += [*lines[done:start], *replacement]
        done = end
    text = "".join([*result, *lines[done:]])
    try:
        statements(text)
    except (SyntaxError, ValueError):
        return None
    return text


def _edits(before: str, after: str) -> list[tuple[int, int, list[str]]]:
    """What is replaced: first line, line after the last one, the new lines."""
    old, new = split_lines(before), split_lines(after)
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [(start, end, new[at:to]) for tag, start, end, at, to in codes if tag != "equal"]
