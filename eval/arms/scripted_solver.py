"""The scripted solver: it tries small changes on the lines that a pack points to, and runs the tests.

What it can repair depends only on where it looks, so any difference in the outcome of two packs is due to what they
say. It cannot repair a bug that takes more than one of the changes that it knows. What it finds is kept, so that
nothing is computed twice.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import islice, tee
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.packs import clean_path
from gumshoe.collect.run.control import run_parallel
from gumshoe.env.bugs.candidates import Candidate, candidates, take_turns
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ConfigError, SandboxError, ToolFailure
from gumshoe.eval.arms.arm import Attempt, AttemptKey, Checks, EvalRun, Hooks, Pair, Solution, Solver, TaskSample
from gumshoe.eval.config import SolverConfig
from gumshoe.eval.grader import describe_run
from gumshoe.records import ContextPack, Location, TestRun
from gumshoe.storage import count_lines
from gumshoe.tools.runs.commands import our_program

SUITE_TIMEOUT_S = 20.0


class ScriptedSolver(Solver):
    """Tries small changes by rule on the lines that a pack points to. What it finds is kept in the file `path`.

    Equal packs give equal repairs, which are computed once, whichever arms the packs come from. The attempts on a task
    share a sandbox and the results of what was tried for any of them. The seed, together with the sample, decides in
    which order changes are tried.
    """

    title = "solver"

    def __init__(self, config: SolverConfig, path: Path, sandbox: SandboxConfig, seed: int) -> None:
        self.name = f"scripted, {config.tries} tries"
        self._tries = config.tries
        self._path = path
        self._sandbox = sandbox
        self._seed = seed

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """It is a fault if the tests of a task are hidden, so that no change can be tried.

        So many attempts are left as the file has too few lines. That is too many where packs are equal, which share a
        line, and too few after a change of `tries` or the seed, since the lines of earlier ones count, too.
        """
        hidden = next((task.id for task, _ in tasks if task.regime != "debug"), None)
        with checks.collect():
            if hidden is not None:
                raise ConfigError(
                    f"task {hidden} hides its tests, which the scripted solver needs: set solver.kind=policy, or "
                    "tasks.options.regime=debug"
                )
        return max(0, attempts - count_lines(self._path))

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """The outcome of each attempt; attempts that were not reached are missing. Raises SandboxError."""
        cache = JsonlCache(self._path)
        groups: dict[TaskSample, dict[str, Attempt]] = {}
        for one in attempts:
            if cache.get(self._key(one)) is None:
                groups.setdefault((one.task.id, one.sample), {})[self._key(one)] = one
        planned = len({self._key(one) for one in attempts})
        hooks.begun(planned, planned - sum(map(len, groups.values())))
        run_parallel(
            groups.values(),
            lambda group: self._solve_task(group, cache, hooks),
            workers=run.config.workers,
            control=run.control,
            on_tick=hooks.tick,
        )
        known = {one.key: facts for one in attempts if (facts := cache.get(self._key(one))) is not None}
        return {
            key: Solution(
                float(one["solved"]), one["patch"], steps=one["tries"], seconds=one["seconds"], tests=one["tests"]
            )
            for key, one in known.items()
        }

    def _solve_task(self, attempts: Mapping[str, Attempt], cache: JsonlCache, hooks: Hooks) -> None:
        """Works on attempts of one task and one sample."""
        task, sample = next((one.task, one.sample) for one in attempts.values())
        began = time.monotonic()
        sandbox = open_sandbox(task, self._sandbox, trusted=True)
        try:
            packs = [one.pack for one in attempts.values()]
            found = repair_each(Workspace(task, sandbox), packs, tries=self._tries, seed=self._seed + sample)
        finally:
            sandbox.close()
        seconds = (time.monotonic() - began) / len(attempts)
        for (key, attempt), repair in zip(attempts.items(), found, strict=True):
            cache.keep(key, {"task_id": attempt.task.id, **asdict(repair), "seconds": round(seconds, 3)})
            hooks.done()

    def _key(self, attempt: Attempt) -> str:
        """What the outcome depends on, as a digest."""
        pack = attempt.pack
        places = None if pack is None else [(place.path, place.start, place.end) for place in pack.locations]
        return digest(attempt.task.hash, places, self._tries, self._seed + attempt.sample)


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
    found = _try_orders(workspace, orders)
    return [_outcome(workspace, order, passing) for order, passing in zip(orders, found, strict=True)]


def _outcome(workspace: Workspace, order: Sequence[Candidate], passing: _Passing | None) -> Repair:
    if passing is None:
        tried = "with the one change that was tried" if len(order) == 1 else f"with each of {len(order)} changes"
        tests = f"fail {tried}" if order else "not run: there was nothing to change in the places named"
        return Repair(solved=False, tries=len(order), tests=tests)
    candidate, run = passing
    before = workspace.read_text(candidate.path).encode("utf-8", "surrogateescape")
    patch = make_patch({candidate.path: (before, candidate.text.encode("utf-8", "surrogateescape"))})
    tried = [one.digest for one in order].index(candidate.digest) + 1
    return Repair(solved=True, tries=tried, patch=patch, tests=describe_run(run))


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
        # One of each place in turn: a wrong first place costs one try, not all of them.
        for candidate in take_turns(map(self._of_place, places)):
            if candidate.digest not in seen:
                seen.add(candidate.digest)
                yield candidate

    def _everywhere(self) -> list[Location]:
        """Every file that may be repaired, as a whole."""
        paths = [entry.path for entry in self._workspace.list() if entry.kind == "file" and entry.path.endswith(".py")]
        return [Location(path=path, start=1, end=10**9) for path in paths if not self._workspace.is_readonly(path)]

    def _of_place(self, place: Location) -> Iterator[Candidate]:
        # Each copy begins with the first change; what one copy has come to is kept for the others.
        for candidate in copy(self._of_file(clean_path(place.path))):
            if any(line in place.lines for line in candidate.lines):
                yield candidate

    def _read_file(self, path: str) -> Iterator[Candidate]:
        """The possible changes to one file; none unless it is a Python file that may be written."""
        try:
            text = "" if self._workspace.is_readonly(path) else self._workspace.read_text(path)
            (changes,) = tee(candidates(text, self._seed, path=path), 1)
            return changes
        except (ToolFailure, ValueError):
            return iter(())


_Passing = tuple[Candidate, TestRun]
"""A change that makes the tests pass, and the run of the entrypoint in which they did."""


def _try_orders(workspace: Workspace, orders: Sequence[Sequence[Candidate]]) -> list[_Passing | None]:
    """For each order, the first of its changes that makes the tests pass; None if none does.

    One that appears in several orders is tried once. The workspace is left as it was. What the quick way finds is
    confirmed by a run of the entrypoint. Raises SandboxError.
    """
    entrypoint = workspace.task.entrypoint
    if tuple(entrypoint[1:3]) == ("-m", "pytest"):
        passed = _try_quickly(workspace, orders)
        orders = [[one for one in order if passed.get(one.digest)] for order in orders]
    run_with = lru_cache(maxsize=None)(partial(_run_with, workspace))
    found: list[_Passing | None] = []
    for order in orders:
        tried = ((one, run_with(one)) for one in order)
        found.append(next(((one, run) for one, run in tried if run.passed), None))
    return found


def _try_quickly(workspace: Workspace, orders: Sequence[Sequence[Candidate]]) -> Mapping[str, bool]:
    """Whether pytest passes with each change that was tried, by digest: all of them in one process with its forks."""
    cases = {one.digest: (one.path, one.text) for order in orders for one in order}
    if not cases:
        return {}
    request = {
        "arguments": workspace.task.entrypoint[3:],
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


def _run_with(workspace: Workspace, candidate: Candidate) -> TestRun:
    before = workspace.read_text(candidate.path)
    workspace.write_text(candidate.path, candidate.text)
    try:
        return workspace.run_tests(timeout=SUITE_TIMEOUT_S)
    finally:
        workspace.write_text(candidate.path, before)
