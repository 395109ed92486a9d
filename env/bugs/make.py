"""Makes a task set: draws candidates, has them judged, chooses, and writes the tasks.

The result depends on the projects, the seed and the limits, not on the workers: candidates are drawn and judged in an
order of their own, and a verdict that comes early waits for its turn.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from gumshoe.cache import JsonlCache
from gumshoe.env.bugs.candidates import Candidate, project_candidates, take_turns
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.judging import CandidateVerdict, JudgePool
from gumshoe.env.bugs.operators import OPERATORS
from gumshoe.env.bugs.projects import Project, copy_into_taskset, find_projects, sources_of
from gumshoe.env.bugs.tasks import assign_splits, heldout_names, task_of, write_rows
from gumshoe.env.tasks.taskset import keep_falsifiable, load_taskset, write_taskset
from gumshoe.env.verifier.proof import find_falsifiable
from gumshoe.errors import ConfigError, TaskError
from gumshoe.records import Oracle, Task
from gumshoe.text import unknown_choice

Progress = Callable[[str, int, int], None]
"""Called with a project, and how many of its candidates have been judged and kept so far."""


@dataclass
class SynthResult:
    """The tasks, and what became of the candidates of each project.

    Attributes:
        counts: by project, and by what became of them: `kept`; `duplicate`, which fails like another on the same line;
            `memory`, which used it up; or a `VerdictStatus` other than `killed`.
    """

    tasks: list[tuple[Task, Oracle]]
    counts: dict[str, Counter[str]]


def make_bugs(
    config: SynthConfig,
    progress: Progress = lambda project, judged, kept: None,
    projects: Sequence[Project] | None = None,
    journal: JsonlCache | None = None,
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
        raise ConfigError(unknown_choice("operator", unknown[0], sorted(OPERATORS)))
    chosen = find_projects(config.projects) if projects is None else projects
    found = [ProjectBugs(project, config) for project in chosen]
    with JudgePool(config, journal) as pool:
        _find_bugs(found, config, pool, progress)
    heldout = heldout_names([project.name for project in chosen], config.heldout_projects, config.seed)
    by_project = [list(bugs.tasks(held_out=bugs.project.name in heldout)) for bugs in found]
    return SynthResult(list(take_turns(by_project)), {bugs.project.name: bugs.counts for bugs in found})


def _find_bugs(projects: list[ProjectBugs], config: SynthConfig, pool: JudgePool, progress: Progress) -> None:
    """Rounds: every project that wants more gets a batch, or several if there are more workers than projects."""
    pending = projects
    while pending:
        share = -(-config.workers // len(pending))
        batches = [(bugs, batch) for bugs in pending for batch in _split(bugs.draw(share * config.batch), share)]
        judged = [(bugs, batch, pool.submit(bugs.project, batch)) for bugs, batch in batches]
        for bugs, batch, verdicts in judged:
            for candidate, verdict in zip(batch, verdicts.result(), strict=True):
                bugs.add(candidate, verdict)
            progress(bugs.project.name, bugs.counts.total(), len(bugs.kept))
        for bugs in pending:
            if bugs.done:
                pool.release(bugs.project.name)
        pending = [bugs for bugs in pending if not bugs.done]


def _split(candidates: list[Candidate], parts: int) -> list[list[Candidate]]:
    """The candidates in their order, in at most so many batches of about the same length."""
    size = -(-len(candidates) // parts) or 1
    return [candidates[start : start + size] for start in range(0, len(candidates), size)]


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


class ProjectBugs:
    """Draws the candidates of a project, and keeps those that are bugs.

    Attributes:
        kept: the bugs to make tasks of, each with its verdict.
        counts: what became of the candidates.

    Raises:
        TaskError: there is nothing to put bugs into.
    """

    def __init__(self, project: Project, config: SynthConfig) -> None:
        self.project = project
        self.kept: list[tuple[Candidate, CandidateVerdict]] = []
        self.counts: Counter[str] = Counter()
        self._config = config
        self._sources = sources_of(project, config.exclude)
        try:
            drawn = project_candidates(self._sources, config.seed, operators=config.operators or None)
        except ValueError as error:
            raise TaskError(f"project {project.name}: {error}") from None
        self._candidates = islice(drawn, config.candidates_per_project)
        self._exhausted = False
        self._seen: set[tuple[str, tuple[int, ...], frozenset[str]]] = set()
        self._end = time.monotonic() + (config.project_s or math.inf)

    def draw(self, most: int) -> list[Candidate]:
        """The next candidates, as many as are probably needed; none where there are no more, or no more time."""
        if self.counts and time.monotonic() >= self._end:
            self._exhausted = True
            return []
        missing = self._config.per_project - len(self.kept)
        judged = self.counts.total()
        share = max(len(self.kept) / judged, LEAST_SHARE) if judged >= ENOUGH_JUDGED else FIRST_SHARE
        batch = list(islice(self._candidates, min(most, math.ceil(missing / share) + SPARE)))
        self._exhausted = not batch
        return batch

    @property
    def full(self) -> bool:
        """Whether the project has all the bugs that were asked for."""
        return len(self.kept) >= self._config.per_project

    @property
    def done(self) -> bool:
        """Whether no more candidates are to be judged."""
        return self.full or self._exhausted

    def add(self, candidate: Candidate, verdict: CandidateVerdict) -> None:
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

    def tasks(self, *, held_out: bool) -> Iterator[tuple[Task, Oracle]]:
        """The tasks of the bugs, each in its split; `held_out` says that training never sees the project."""
        by_function = self._config.heldout_by == "function"
        groups = {bug.digest: ":".join(bug.position) if by_function else bug.digest for bug, _ in self.kept}
        splits = assign_splits(groups, self._config.heldout_bugs, self._config.seed)
        for bug, verdict in self.kept:
            split = "heldout_projects" if held_out else splits[bug.digest]
            yield task_of(self.project, self._sources, bug, verdict, split, self._config.readonly)
