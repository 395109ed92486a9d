"""Makes a task set: candidates, verdicts, the choice, the splits.

The result depends on the projects, the seed and the limits, not on the workers: candidates are drawn and judged in an
order of their own, and a verdict that comes early waits for its turn.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.env.synth.candidates import Candidate, project_candidates
from gumshoe.env.synth.config import SynthConfig
from gumshoe.env.synth.difficulty import difficulty
from gumshoe.env.synth.operators import OPERATORS
from gumshoe.env.synth.pool import VerifierPool
from gumshoe.env.synth.projects import Project, copy_into_taskset, find_projects, sources_of
from gumshoe.env.synth.rows import write_rows
from gumshoe.env.synth.splits import assign_splits, heldout_names
from gumshoe.env.synth.statement import problem_statement
from gumshoe.env.synth.verify import Verdict
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.errors import ConfigError, TaskError
from gumshoe.records import Oracle, Task, WorkspaceSpec

__all__ = ["Progress", "Result", "make_bugs", "write_result"]

Progress = Callable[[str, int, int], None]
"""Called with a project, and how many of its candidates have been judged and kept so far."""

SPARE = 3


@dataclass
class Result:
    """The tasks, and what became of the candidates of each project: `kept`, or why not."""

    tasks: list[tuple[Task, Oracle]]
    counts: dict[str, Counter[str]]


@dataclass(eq=False)
class ProjectState:
    """One project while its candidates are judged."""

    project: Project
    sources: dict[str, str]
    candidates: Iterable[Candidate]
    wanted: int
    kept: list[tuple[Candidate, Verdict]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    exhausted: bool = False
    _seen: set[tuple[str, tuple[int, ...], frozenset[str]]] = field(default_factory=set)

    def draw(self, most: int) -> list[Candidate]:
        """The next candidates, as many as are probably needed; none means that the project is through."""
        missing = self.wanted - len(self.kept)
        batch = list(islice(self.candidates, min(most, missing + max(SPARE, missing // 4))))
        self.exhausted = not batch
        return batch

    @property
    def full(self) -> bool:
        return len(self.kept) >= self.wanted

    def judge(self, candidate: Candidate, verdict: Verdict) -> None:
        """Keeps the candidate or counts why not. What comes after the last wanted one does not count."""
        if not self.full:
            self.counts[self._status(candidate, verdict)] += 1

    def _status(self, candidate: Candidate, verdict: Verdict) -> str:
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


def make_bugs(
    config: SynthConfig,
    progress: Progress = lambda project, judged, kept: None,
    projects: Sequence[Project] | None = None,
) -> Result:
    """Makes and verifies bugs; the tasks name their projects as a task set stores them.

    `projects` stand in for those that the config names.

    Raises:
        ConfigError: an operator does not exist.
        TaskError: a project is missing, has no tests, or does not pass them.
        SandboxError: a sandbox broke.
    """
    unknown = sorted(set(config.operators) - OPERATORS.keys())
    if unknown:
        raise ConfigError(f"no operator {unknown[0]!r}: there are {', '.join(sorted(OPERATORS))}")
    chosen = find_projects(config.projects) if projects is None else projects
    states = [_find_candidates(project, config) for project in chosen]
    with VerifierPool(config) as pool, ThreadPoolExecutor(config.workers) as threads:
        _fill(states, config, pool, threads, progress)
    heldout = heldout_names([state.project.name for state in states], config.heldout_projects, config.seed)
    by_project = [list(_tasks(state, config, heldout)) for state in states]
    return Result(_turns(by_project), {state.project.name: state.counts for state in states})


def _find_candidates(project: Project, config: SynthConfig) -> ProjectState:
    sources = sources_of(project, config.exclude)
    try:
        drawn = project_candidates(sources, config.seed, operators=config.operators or None)
        candidates = islice(drawn, config.candidates_per_project)
    except ValueError as error:
        raise TaskError(f"project {project.name}: {error}") from None
    return ProjectState(project, sources, candidates, config.per_project)


def _fill(
    states: list[ProjectState], config: SynthConfig, pool: VerifierPool, threads: ThreadPoolExecutor, progress: Progress
) -> None:
    """Rounds: every project that wants more gets a batch, or several where there are more workers than projects."""
    pending = states
    while pending:
        rounds = -(-config.workers // len(pending))
        batches = [(state, state.draw(config.batch)) for _ in range(rounds) for state in pending]
        batches = [(state, batch) for state, batch in batches if batch]
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
        through = [state for state in pending if state.full or state.exhausted]
        for state in through:
            pool.release(state.project)
        pending = [state for state in pending if state not in through]


def _tasks(state: ProjectState, config: SynthConfig, heldout: set[str]) -> Iterable[tuple[Task, Oracle]]:
    name = state.project.name
    whole = config.heldout_by == "function"
    groups = {
        candidate.digest: f"{candidate.path}:{candidate.symbol}" if whole else candidate.digest
        for candidate, _ in state.kept
    }
    splits = assign_splits(groups, config.heldout_bugs, config.seed)
    for candidate, verdict in state.kept:
        split = "heldout_projects" if name in heldout else splits[candidate.digest]
        yield _task(state, candidate, verdict, split, config)


def _task(
    state: ProjectState, candidate: Candidate, verdict: Verdict, split: str, config: SynthConfig
) -> tuple[Task, Oracle]:
    failures = verdict.failures or {}
    name = state.project.name
    clean = state.sources[candidate.path]
    task = Task(
        id=f"synth/{name}/{candidate.operator}-{candidate.digest}",
        source="synth",
        problem_statement=problem_statement(failures),
        workspace=WorkspaceSpec(
            path=state.project.stored,
            overlay={candidate.path: candidate.text},
            environment=state.project.suite.environment,
        ),
        entrypoint=state.project.suite.entrypoint,
        limits=state.project.suite.limits,
        readonly=config.readonly,
        tags={
            "project": name,
            "operator": candidate.operator,
            "split": split,
            "difficulty": difficulty(candidate, failures),
        },
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=make_patch({candidate.path: (candidate.text.encode(), clean.encode())}),
        fail_to_pass=tuple(failures),
        pass_to_pass=verdict.passing,
    )
    return task, oracle


def _turns(groups: list[list[tuple[Task, Oracle]]]) -> list[tuple[Task, Oracle]]:
    """The projects take turns, so that any first part of the set is balanced."""
    longest = max((len(group) for group in groups), default=0)
    return [group[rank] for rank in range(longest) for group in groups if rank < len(group)]


def write_result(result: Result, config: SynthConfig) -> Path:
    """Writes the task set, its rows and the projects that are not bundled into `config.out`."""
    folder = Path(config.out)
    for project in find_projects(config.projects):
        copy_into_taskset(project, folder)
    write_taskset(folder, result.tasks)
    write_rows(folder, result.tasks)
    return folder
