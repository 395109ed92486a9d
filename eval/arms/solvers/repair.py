"""The scripted solver's search: it tries small changes on the lines it was pointed to, and runs the tests.

What it can repair depends only on where it looks, so any difference in the outcome of two packs is due to what they
say. It cannot repair a bug that takes more than one of the changes that it knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, islice

from gumshoe.collect.packs import clean_path
from gumshoe.env.bugs.candidates import Candidate, candidates
from gumshoe.env.diff import make_patch
from gumshoe.env.workspace import Workspace
from gumshoe.errors import SandboxError, ToolFailure
from gumshoe.eval.grader import describe_run
from gumshoe.records import ContextPack, Location, TestRun
from gumshoe.tools.runs.interpreters import our_program

__all__ = ["Repair", "repair_each"]

SUITE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Repair:
    """How a repair ended: whether the tests pass, after how many changes, with which one, and what the tests said."""

    solved: bool
    tries: int
    patch: str = ""
    tests: str = ""


def repair_each(
    workspace: Workspace, packs: Sequence[ContextPack | None], *, tries: int, seed: int = 0
) -> list[Repair]:
    """Repairs the workspace from each pack on its own, up to `tries` changes each; it is left as it was.

    With a pack only the lines of its locations are changed, best first; without one (None) any line of any file that
    may be written. Equal arguments give equal repairs. Raises SandboxError.
    """
    known = _Changes(workspace, seed)
    orders = [list(islice(known.proposed(pack), tries)) for pack in packs]
    return [
        _outcome(workspace, order, found) for order, found in zip(orders, _try_orders(workspace, orders), strict=True)
    ]


def _outcome(workspace: Workspace, order: Sequence[Candidate], passing: _Passing | None) -> Repair:
    if passing is None:
        return Repair(solved=False, tries=len(order), tests=_said_of_failure(len(order)))
    found = passing.candidate
    before = workspace.read_text(found.path).encode("utf-8", "surrogateescape")
    patch = make_patch({found.path: (before, found.text.encode("utf-8", "surrogateescape"))})
    tried = [one.digest for one in order].index(found.digest) + 1
    return Repair(solved=True, tries=tried, patch=patch, tests=describe_run(passing.run))


def _said_of_failure(tries: int) -> str:
    if tries == 0:
        return "not run: there was nothing to change in the places named"
    return "fail with the one change that was tried" if tries == 1 else f"fail with each of {tries} changes"


class _Changes:
    """The possible changes to a workspace's files; each file is read once."""

    def __init__(self, workspace: Workspace, seed: int) -> None:
        self._workspace = workspace
        self._seed = seed
        self._of_file = lru_cache(maxsize=None)(self._read_file)

    def proposed(self, pack: ContextPack | None) -> Iterator[Candidate]:
        """The changes to try, in order, each only once."""
        seen: set[str] = set()
        places = self._everywhere() if pack is None else pack.locations
        for turn in _turns([self._of_place(place) for place in places]):
            if turn.digest not in seen:
                seen.add(turn.digest)
                yield turn

    def _everywhere(self) -> list[Location]:
        """Every file that may be repaired, as a whole."""
        paths = [entry.path for entry in self._workspace.list() if entry.kind == "file" and entry.path.endswith(".py")]
        return [Location(path=path, start=1, end=10**9) for path in paths if not self._workspace.is_readonly(path)]

    def _of_place(self, place: Location) -> Iterator[Candidate]:
        for candidate in self._of_file(clean_path(place.path)):
            if any(line in place.lines for line in candidate.lines):
                yield candidate

    def _read_file(self, path: str) -> Iterable[Candidate]:
        """The possible changes to one file; none unless it is a Python file that may be written."""
        try:
            text = "" if self._workspace.is_readonly(path) else self._workspace.read_text(path)
            return _Shared(candidates(text, self._seed, path=path))
        except (ToolFailure, ValueError):
            return ()


class _Shared:
    """Shares the items of an iterator among any number of readers; an item is made only when a reader wants it."""

    def __init__(self, source: Iterator[Candidate]) -> None:
        self._source = source
        self._made: list[Candidate] = []

    def __iter__(self) -> Iterator[Candidate]:
        for number in count():
            if number == len(self._made):
                item = next(self._source, None)
                if item is None:
                    return
                self._made.append(item)
            yield self._made[number]


def _turns(iterators: list[Iterator[Candidate]]) -> Iterator[Candidate]:
    """Takes one from each in turn: a wrong first place costs one try, not all of them."""
    while iterators:
        alive: list[Iterator[Candidate]] = []
        for iterator in iterators:
            item = next(iterator, None)
            if item is not None:
                alive.append(iterator)
                yield item
        iterators = alive


@dataclass(frozen=True)
class _Passing:
    """A change that makes the tests pass, and the run of the entrypoint in which they did."""

    candidate: Candidate
    run: TestRun


def _try_orders(workspace: Workspace, orders: Sequence[Sequence[Candidate]]) -> list[_Passing | None]:
    """For each order, the first of its changes that makes the tests pass; None if none does.

    Changes are told apart by their digest: one that appears in several orders is tried once. The workspace is left as
    it was. What the quick way finds is confirmed by a run of the entrypoint. Raises SandboxError.
    """
    arguments = _pytest_arguments(workspace.task.entrypoint)
    if arguments is None:
        return _one_by_one(workspace, orders)
    passed = _quickly(workspace, orders, arguments)
    sure: dict[str, TestRun] = {}
    found: list[_Passing | None] = []
    for order in orders:
        first = next((one for one in order if passed.get(one.digest)), None)
        if first is not None and first.digest not in sure:
            sure[first.digest] = _run_with(workspace, first)
        found.append(_passing(first, sure) if first is not None else None)
    return found


def _passing(candidate: Candidate, runs: Mapping[str, TestRun]) -> _Passing | None:
    run = runs.get(candidate.digest)
    return _Passing(candidate, run) if run is not None and run.passed else None


def _pytest_arguments(entrypoint: Sequence[str]) -> tuple[str, ...] | None:
    """The arguments that pytest gets; None if the tests are not run as `PYTHON -m pytest`."""
    return tuple(entrypoint[3:]) if tuple(entrypoint[1:3]) == ("-m", "pytest") else None


def _quickly(
    workspace: Workspace, orders: Sequence[Sequence[Candidate]], arguments: Sequence[str]
) -> Mapping[str, bool]:
    cases = {one.digest: (one.path, one.text) for order in orders for one in order}
    if not cases:
        return {}
    request = {
        "arguments": list(arguments),
        "wall_s": SUITE_TIMEOUT_S,
        "cases": cases,
        "orders": [[one.digest for one in order] for order in orders],
    }
    sandbox = workspace.sandbox
    sandbox.prepare_support()
    result = sandbox.run(
        [workspace.task.entrypoint[0], *our_program(sandbox.support, "bugs.trials")],
        input=json.dumps(request).encode(),
        timeout=SUITE_TIMEOUT_S * (2 * len(cases) + 2),
    )
    try:
        return json.loads(result.output.splitlines()[-1])["passed"]
    except (IndexError, ValueError, KeyError, TypeError):
        said = result.output.strip().splitlines()[-1:] or ["it said nothing"]
        raise SandboxError(f"task {workspace.task.id}: changes cannot be tried there: {said[0]}") from None


def _one_by_one(workspace: Workspace, orders: Sequence[Sequence[Candidate]]) -> list[_Passing | None]:
    known: dict[str, TestRun] = {}
    found: list[_Passing | None] = []
    for order in orders:
        for one in order:
            if one.digest not in known:
                known[one.digest] = _run_with(workspace, one)
            if known[one.digest].passed:
                break
        found.append(next((passing for one in order if (passing := _passing(one, known)) is not None), None))
    return found


def _run_with(workspace: Workspace, candidate: Candidate) -> TestRun:
    before = workspace.read_text(candidate.path)
    workspace.write_text(candidate.path, candidate.text)
    try:
        return workspace.run_tests(timeout=SUITE_TIMEOUT_S)
    finally:
        workspace.write_text(candidate.path, before)
