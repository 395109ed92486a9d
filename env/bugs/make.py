"""Makes a task set: candidates, verdicts, the choice, the splits.

The result depends on the projects, the seed and the limits, not on the workers: candidates are drawn and judged in an
order of their own, and a verdict that comes early waits for its turn. The splits, which say what is for training and
what is kept out, are drawn from the seed.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from gumshoe.env.bugs.candidates import Candidate, CandidateVerdict, project_candidates, take_turns
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.operators import OPERATORS
from gumshoe.env.bugs.tasks import Project, copy_into_taskset, find_projects, sources_of, task_of, write_rows
from gumshoe.env.bugs.verify import VerdictJournal, VerifierPool
from gumshoe.env.tasks.taskset import keep_falsifiable, load_taskset, write_taskset
from gumshoe.env.verifier.proof import find_falsifiable
from gumshoe.errors import ConfigError, TaskError
from gumshoe.records import Oracle, Task

__all__ = [
    "Progress",
    "ProjectState",
    "SynthResult",
    "assign_splits",
    "heldout_names",
    "make_bugs",
    "write_result",
]

Progress = Callable[[str, int, int], None]
"""Called with a project, and how many of its candidates have been judged and kept so far."""


@dataclass
class SynthResult:
    """The tasks, and what became of the candidates of each project: `kept`, or why not."""

    tasks: list[tuple[Task, Oracle]]
    counts: dict[str, Counter[str]]


def make_bugs(
    config: SynthConfig,
    progress: Progress = lambda project, judged, kept: None,
    projects: Sequence[Project] | None = None,
    journal: VerdictJournal | None = None,
) -> SynthResult:
    """Makes and verifies bugs; the tasks name their projects as a task set stores them.

    Args:
        projects: stand in for those that the config names.
        journal: has the verdicts of an earlier run with the same projects and limits, and takes in the new ones.

    Raises:
        ConfigError: an operator does not exist.
        TaskError: a project is missing, has no tests, or does not pass them.
        SandboxError: a sandbox broke.
    """
    unknown = sorted(set(config.operators) - OPERATORS.keys())
    if unknown:
        raise ConfigError(f"no operator {unknown[0]!r}: there are {', '.join(sorted(OPERATORS))}")
    chosen = find_projects(config.projects) if projects is None else projects
    states = [_start(project, config) for project in chosen]
    with VerifierPool(config, journal) as pool, ThreadPoolExecutor(config.workers) as threads:
        _judge_candidates(states, config, pool, threads, progress)
    heldout = heldout_names([state.project.name for state in states], config.heldout_projects, config.seed)
    by_project = [list(_tasks_of(state, config, heldout)) for state in states]
    return SynthResult(list(take_turns(by_project)), {state.project.name: state.counts for state in states})


def _start(project: Project, config: SynthConfig) -> ProjectState:
    sources = sources_of(project, config.exclude)
    try:
        drawn = project_candidates(sources, config.seed, operators=config.operators or None)
    except ValueError as error:
        raise TaskError(f"project {project.name}: {error}") from None
    return ProjectState(project, sources, drawn, config)


def _judge_candidates(
    states: list[ProjectState], config: SynthConfig, pool: VerifierPool, threads: ThreadPoolExecutor, progress: Progress
) -> None:
    """Rounds: every project that wants more gets a batch, or several if there are more workers than projects."""
    pending = states
    while pending:
        share = -(-config.workers // len(pending))
        batches = [(state, batch) for state in pending for batch in _split(state.draw(share * config.batch), share)]
        running = deque((state, batch, threads.submit(pool.verify, state.project, batch)) for state, batch in batches)
        try:
            while running:
                state, batch, future = running.popleft()
                for candidate, verdict in zip(batch, future.result(), strict=True):
                    state.judge(candidate, verdict)
                progress(state.project.name, state.counts.total(), len(state.kept))
        finally:
            for _, _, future in running:
                future.cancel()
        for state in pending:
            if state.done:
                pool.release(state.project.name)
        pending = [state for state in pending if not state.done]


def _split(candidates: list[Candidate], parts: int) -> list[list[Candidate]]:
    """The candidates in their order, in at most so many batches of about the same length."""
    size = -(-len(candidates) // parts) or 1
    return [candidates[start : start + size] for start in range(0, len(candidates), size)]


def _tasks_of(state: ProjectState, config: SynthConfig, heldout: set[str]) -> Iterator[tuple[Task, Oracle]]:
    splits = state.splits()
    for bug, verdict in state.kept:
        split = "heldout_projects" if state.project.name in heldout else splits[bug.digest]
        yield task_of(state.project, state.sources, bug, verdict, split, config.readonly)


def write_result(result: SynthResult, config: SynthConfig) -> Path:
    """Writes the task set, its rows and the projects that are not bundled into `config.out`.

    With each task it keeps which of its tests a verdict can make fail. Raises SandboxError: a sandbox broke.
    """
    folder = Path(config.out)
    for project in find_projects(config.projects):
        copy_into_taskset(project, folder)
    write_taskset(folder, result.tasks)
    write_rows(folder, result.tasks)
    keep_falsifiable(folder, find_falsifiable(load_taskset(folder), config.sandbox, config.workers))
    return folder


SPARE = 3
# The share of candidates that are kept: what is assumed at first, how many have to be judged before what was seen
# counts, and the least that is assumed then. A further batch costs more than several candidates.
FIRST_SHARE, ENOUGH_JUDGED, LEAST_SHARE = 0.8, 10, 0.2


@dataclass(eq=False)
class ProjectState:
    """Draws the candidates of a project, and keeps those that are bugs.

    Attributes:
        candidates: those that are not drawn yet.
        kept: the bugs to make tasks of, each with its verdict.
        counts: what became of the candidates.
    """

    project: Project
    sources: dict[str, str]
    candidates: Iterator[Candidate]
    config: SynthConfig
    kept: list[tuple[Candidate, CandidateVerdict]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    _exhausted: bool = False
    _seen: set[tuple[str, tuple[int, ...], frozenset[str]]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + (self.config.project_s or math.inf)
        self.candidates = islice(self.candidates, self.config.candidates_per_project)

    def draw(self, most: int) -> list[Candidate]:
        """The next candidates, as many as are probably needed; none where there are no more, or no more time."""
        if self.counts and time.monotonic() >= self._end:
            self._exhausted = True
            return []
        missing = self.config.per_project - len(self.kept)
        judged = self.counts.total()
        share = max(len(self.kept) / judged, LEAST_SHARE) if judged >= ENOUGH_JUDGED else FIRST_SHARE
        batch = list(islice(self.candidates, min(most, math.ceil(missing / share) + SPARE)))
        self._exhausted = not batch
        return batch

    @property
    def full(self) -> bool:
        """Whether the project has all the bugs that were asked for."""
        return len(self.kept) >= self.config.per_project

    @property
    def done(self) -> bool:
        """Whether no more candidates are to be judged."""
        return self.full or self._exhausted

    def judge(self, candidate: Candidate, verdict: CandidateVerdict) -> None:
        """Keeps a bug, or counts why the candidate is none. What comes after the last wanted one does not count."""
        if not self.full:
            self.counts[self._status(candidate, verdict)] += 1

    def _status(self, candidate: Candidate, verdict: CandidateVerdict) -> str:
        if not verdict.failures:
            return verdict.status
        if any(failure.type == "MemoryError" for failure in verdict.failures.values()):
            return "memory"
        key = (candidate.path, candidate.lines, frozenset(verdict.failures))
        if key in self._seen:
            return "duplicate"
        self._seen.add(key)
        self.kept.append((candidate, verdict))
        return "kept"

    def splits(self) -> dict[str, str]:
        """Digest of each kept bug to its split, in a project for training."""
        by_function = self.config.heldout_by == "function"
        groups = {bug.digest: ":".join(bug.position) if by_function else bug.digest for bug, _ in self.kept}
        return assign_splits(groups, self.config.heldout_bugs, self.config.seed)


def heldout_names(projects: Sequence[str], share: float, seed: int) -> set[str]:
    """The projects that training never sees: the share, rounded, but at least one where there are several.

    At least one project is left for training.
    """
    if share == 0 or len(projects) < 2:
        return set()
    count = min(max(1, round(share * len(projects))), len(projects) - 1)
    return set(_rng("projects", seed).sample(sorted(projects), count))


def assign_splits(functions: Mapping[str, str], share: float, seed: int) -> dict[str, str]:
    """`train` or `heldout_bugs` for each bug of a training project.

    All bugs with the same function go to the same side, so that no held-out bug has a twin in training. Whole functions
    are held out until the share is reached; the last function is never taken.

    Args:
        functions: bug id to the function that it is in; with `heldout_by: bug`, to a name that no other bug shares.
    """
    bugs: dict[str, list[str]] = {}
    for bug, function in functions.items():
        bugs.setdefault(function, []).append(bug)
    order = sorted(bugs)
    _rng("bugs", seed).shuffle(order)
    wanted = share * len(functions)
    held: set[str] = set()
    for function in order[:-1]:
        if len(held) + len(bugs[function]) / 2 <= wanted:
            held.update(bugs[function])
    return {bug: "heldout_bugs" if bug in held else "train" for bug in functions}


def _rng(purpose: str, seed: int) -> random.Random:
    return random.Random(f"gumshoe.synth {purpose} {seed}")
