"""Makes a task set: candidates, verdicts, the choice, the splits.

The result depends on the projects, the seed and the limits, not on the workers: candidates are drawn and judged in an
order of their own, and a verdict that comes early waits for its turn.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.env.synth.bug import Bug, bug_of
from gumshoe.env.synth.candidates import project_candidates
from gumshoe.env.synth.config import SynthConfig
from gumshoe.env.synth.difficulty import difficulty
from gumshoe.env.synth.journal import VerdictJournal
from gumshoe.env.synth.operators import OPERATORS
from gumshoe.env.synth.pool import VerifierPool
from gumshoe.env.synth.projects import Project, copy_into_taskset, find_projects, sources_of
from gumshoe.env.synth.smith_rows import write_rows
from gumshoe.env.synth.splits import heldout_names
from gumshoe.env.synth.state import ProjectState
from gumshoe.env.synth.statement import problem_statement
from gumshoe.env.synth.verify import CandidateVerdict
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.errors import ConfigError, TaskError
from gumshoe.records import Oracle, Task, WorkspaceSpec

__all__ = ["Progress", "SynthResult", "make_bugs", "write_result"]

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
    first: Sequence[Bug] = (),
    journal: VerdictJournal | None = None,
) -> SynthResult:
    """Makes and verifies bugs; the tasks name their projects as a task set stores them.

    Args:
        projects: stand in for those that the config names.
        first: bugs of each project to try before any mutation.
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
    states = [_find_candidates(project, config, first) for project in chosen]
    with VerifierPool(config, journal) as pool, ThreadPoolExecutor(config.workers) as threads:
        _fill(states, config, pool, threads, progress)
    heldout = heldout_names([state.project.name for state in states], config.heldout_projects, config.seed)
    by_project = [list(_tasks(state, config, heldout)) for state in states]
    return SynthResult(_turns(by_project), {state.project.name: state.counts for state in states})


def _find_candidates(project: Project, config: SynthConfig, first: Sequence[Bug]) -> ProjectState:
    sources = sources_of(project, config.exclude)
    try:
        drawn = project_candidates(sources, config.seed, operators=config.operators or None)
    except ValueError as error:
        raise TaskError(f"project {project.name}: {error}") from None
    return ProjectState(project, sources, chain(first, map(bug_of, drawn)), config)


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
                for bug, verdict in zip(batch, future.result(), strict=True):
                    state.judge(bug, verdict)
                progress(state.project.name, state.counts.total(), len(state.kept))
        finally:
            for _, _, future in running:
                future.cancel()
        through = [state for state in pending if state.finish()]
        for state in through:
            pool.release(state.project)
        pending = [state for state in pending if state not in through]


def _tasks(state: ProjectState, config: SynthConfig, heldout: set[str]) -> Iterable[tuple[Task, Oracle]]:
    for bug, verdict in state.kept:
        split = "heldout_projects" if state.project.name in heldout else state.splits[bug.digest]
        yield _task(state, bug, verdict, split, config)


def _task(
    state: ProjectState, bug: Bug, verdict: CandidateVerdict, split: str, config: SynthConfig
) -> tuple[Task, Oracle]:
    failures = verdict.failures or {}
    name = state.project.name
    task = Task(
        id=f"synth/{name}/{bug.operator}-{bug.digest}",
        source="synth",
        problem_statement=problem_statement(failures),
        workspace=WorkspaceSpec(
            path=state.project.stored,
            overlay=dict(bug.files),
            environment=state.project.suite.environment,
        ),
        entrypoint=state.project.suite.task_entrypoint,
        limits=state.project.suite.limits,
        readonly=config.readonly,
        tags={
            "project": name,
            "operator": bug.operator,
            "split": split,
            "difficulty": difficulty(bug, failures),
            **bug.tags,
        },
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=make_patch(
            {path: (text.encode(), state.sources[path].encode()) for path, text in bug.files.items()}
        ),
        fail_to_pass=tuple(failures),
        pass_to_pass=verdict.passing,
    )
    return task, oracle


def _turns(groups: list[list[tuple[Task, Oracle]]]) -> list[tuple[Task, Oracle]]:
    """The projects take turns, so that any first part of the set is balanced."""
    longest = max((len(group) for group in groups), default=0)
    return [group[rank] for rank in range(longest) for group in groups if rank < len(group)]


def write_result(result: SynthResult, config: SynthConfig) -> Path:
    """Writes the task set, its rows and the projects that are not bundled into `config.out`."""
    folder = Path(config.out)
    for project in find_projects(config.projects):
        copy_into_taskset(project, folder)
    write_taskset(folder, result.tasks)
    write_rows(folder, result.tasks)
    return folder
