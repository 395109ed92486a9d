"""A solver without a mind of its own: it tries small changes on the lines it was pointed to, and runs the tests.

What it can repair depends on where it looks and on nothing else, so that the difference between two packs is the
difference in what they say. It repairs nothing that takes more than one of the changes that it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from gumshoe.env.synth.candidates import Candidate, candidates
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ToolFailure
from gumshoe.eval.scorers.localisation import clean_path
from gumshoe.records import ContextPack, Location

__all__ = ["Repair", "repair"]

TEST_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Repair:
    """How a repair ended: whether the tests pass, after how many runs of them, and with which change."""

    solved: bool
    tries: int
    patch: str = ""


def repair(workspace: Workspace, pack: ContextPack | None, *, tries: int, seed: int = 0) -> Repair:
    """Tries changes until the tests pass or `tries` runs are used up. The workspace is left with the last change.

    With a pack only the lines of its locations are changed, best first; without one (None) any line of any file that
    may be written. Equal arguments give equal repairs. Raises SandboxError.
    """
    spent = 0
    for candidate in islice(_proposed(workspace, pack, seed), tries):
        spent += 1
        before = workspace.read_text(candidate.path)
        workspace.write_text(candidate.path, candidate.text)
        if workspace.run_tests(timeout=TEST_TIMEOUT_S).passed:
            return Repair(solved=True, tries=spent, patch=workspace.patch())
        workspace.write_text(candidate.path, before)
    return Repair(solved=False, tries=spent)


def _proposed(workspace: Workspace, pack: ContextPack | None, seed: int) -> Iterator[Candidate]:
    """The changes to try, in order; none twice."""
    seen: set[str] = set()
    places = _everywhere(workspace) if pack is None else pack.locations
    for turn in _turns([_of_place(workspace, place, seed) for place in places]):
        if turn.digest not in seen:
            seen.add(turn.digest)
            yield turn


def _everywhere(workspace: Workspace) -> list[Location]:
    """Each file that may be repaired, whole."""
    paths = [entry.path for entry in workspace.list() if entry.kind == "file" and entry.path.endswith(".py")]
    return [Location(path=path, start=1, end=10**9) for path in paths if not workspace.is_readonly(path)]


def _of_place(workspace: Workspace, place: Location, seed: int) -> Iterator[Candidate]:
    """The changes of one place; none where there is no Python file that may be written."""
    path = clean_path(place.path)
    try:
        readable = "" if workspace.is_readonly(path) else workspace.read_text(path)
        found = candidates(readable, seed, path=path)
    except (ToolFailure, ValueError):
        return
    for candidate in found:
        if any(line in place.lines for line in candidate.lines):
            yield candidate


def _turns(iterators: list[Iterator[Candidate]]) -> Iterator[Candidate]:
    """One from each in turn: a wrong first place costs a try, not all of them."""
    while iterators:
        alive: list[Iterator[Candidate]] = []
        for iterator in iterators:
            item = next(iterator, None)
            if item is not None:
                alive.append(iterator)
                yield item
        iterators = alive
