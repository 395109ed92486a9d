"""How fast bugs are made and verified, on this machine, in one run: `make bench-synth`.

Candidates are judged as in `gumshoe synth`, with each number of workers; as many of them as requested are also
judged the plain way, which runs the whole suite for each candidate in a fresh container. Prints candidates and verified
bugs per minute, and the goal with what was reached; with `--strict`, a missed goal gives exit code 1.

    python -m benchmarks.speed.synth --workers 1 2 --json bench-synth.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from gumshoe.env import SandboxConfig, Workspace, open_sandbox
from gumshoe.env.bugs.candidates import Candidate, project_candidates
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.judging import JudgePool
from gumshoe.env.bugs.projects import Project, find_projects, sources_of
from gumshoe.errors import GumshoeError
from gumshoe.records import Limits, Task, WorkspaceSpec

Job = tuple[Project, list[Candidate]]
ItemT = TypeVar("ItemT")
ENTRYPOINT = ("python", "-m", "pytest", "-q")
GOAL = 10.0
TURN = 4


@dataclass(frozen=True)
class Figure:
    """What one way of judging did."""

    way: str
    workers: int
    candidates: int = 0
    verified: int = 0
    seconds: float = 0.0

    @property
    def candidates_a_minute(self) -> float:
        """Candidates tried per minute."""
        return 60 * self.candidates / self.seconds

    @property
    def verified_a_minute(self) -> float:
        """Verified bugs per minute."""
        return 60 * self.verified / self.seconds


def main() -> int:
    """Runs the benchmark; exit code 2 where the sandbox does not work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", nargs="+", default=["casebook"], help="as for gumshoe synth")
    parser.add_argument("--candidates", type=int, default=40, help="of each project")
    parser.add_argument("--plain-candidates", type=int, default=3, help="of each project, judged the plain way")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--sandbox", default="docker", choices=["auto", "docker", "podman", "bubblewrap", "local"])
    parser.add_argument("--strict", action="store_true", help="exit code 1 where the goal is missed")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args()
    sandbox = SandboxConfig(kind=options.sandbox)
    figures: list[Figure] = []
    try:
        config = SynthConfig(projects=tuple(options.projects), sandbox=sandbox)
        work = jobs(config, options.candidates)
        few = [(project, spread(candidates, options.plain_candidates)) for project, candidates in work]
        for workers in options.workers:
            with_workers = config.model_copy(update={"workers": workers})
            figures += measure(work, few, with_workers, workers)
    except GumshoeError as error:
        print(f"bench-synth: {error}", file=sys.stderr)
        return 2
    show(figures)
    met = reached(figures)
    if options.json:
        facts = {"cpus": os.cpu_count(), "load": os.getloadavg()[0], "sandbox": options.sandbox, "met": met}
        rows = [asdict(figure) for figure in figures]
        options.json.write_text(json.dumps({**facts, "figures": rows}, indent=2) + "\n")
    return 1 if options.strict and not met else 0


def jobs(config: SynthConfig, count: int) -> list[Job]:
    """The first `count` candidates of each project. Making them is not timed: both ways need the same ones."""
    return [
        (project, list(islice(project_candidates(sources_of(project, config.exclude), config.seed), count)))
        for project in find_projects(config.projects)
    ]


def spread(candidates: list[Candidate], count: int) -> list[Candidate]:
    """That many of them, evenly spaced: the first ones are not representative."""
    return (
        [candidates[len(candidates) * (2 * number + 1) // (2 * count)] for number in range(count)] if candidates else []
    )


def measure(work: list[Job], few: list[Job], config: SynthConfig, workers: int) -> list[Figure]:
    """Both ways with that many workers, alternating every few projects, so that machine load affects both alike."""
    plain, forked = Figure("plain", workers), Figure("forked", workers)
    with JudgePool(config) as pool:
        for first in range(0, len(work), TURN):
            items = [(project, one) for project, some in few[first : first + TURN] for one in some]
            plain = _timed(plain, workers, lambda item: judge_plain(*item, config), items, len(items))
            jobs_of_turn = work[first : first + TURN]
            count = sum(len(some) for _, some in jobs_of_turn)
            forked = _timed(forked, workers, lambda job: judge_forked(*job, pool), jobs_of_turn, count)
    return [plain, forked]


def judge_forked(project: Project, candidates: list[Candidate], pool: JudgePool) -> int:
    """How many are bugs according to `gumshoe synth`, including its sandbox and first test runs."""
    verified = sum(verdict.status == "killed" for verdict in pool.judge(project, candidates))
    pool.release(project.name)
    return verified


def judge_plain(project: Project, candidate: Candidate, config: SynthConfig) -> int:
    """The same for one candidate, with a fresh sandbox and one run of the whole suite."""
    task = Task(
        id=f"bench/{candidate.digest}",
        source="bench",
        problem_statement="",
        workspace=WorkspaceSpec(path=str(project.path), overlay={candidate.path: candidate.text}),
        entrypoint=ENTRYPOINT,
        limits=Limits(command_timeout_s=config.timeout_s),
    )
    with open_sandbox(task, config.sandbox, trusted=True) as sandbox:
        run = Workspace(task, sandbox).run_tests()
    failing = sum(outcome.failed for outcome in run.outcomes)
    return int(not run.result.timed_out and 0 < failing < len(run.outcomes))


def _timed(figure: Figure, workers: int, judge: Callable[[ItemT], int], items: list[ItemT], count: int) -> Figure:
    """The figure plus what judging these items took."""
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as threads:
        verified = sum(threads.map(judge, items))
    seconds = figure.seconds + time.perf_counter() - began
    return replace(figure, candidates=figure.candidates + count, verified=figure.verified + verified, seconds=seconds)


def factor_of(figure: Figure, figures: list[Figure]) -> float | None:
    """How many times as many candidates per minute as the plain way with the same number of workers."""
    beside = next((item for item in figures if item.way == "plain" and item.workers == figure.workers), None)
    return None if beside is None else figure.candidates_a_minute / beside.candidates_a_minute


def show(figures: list[Figure]) -> None:
    """The figures as a table, each compared with the plain way with the same number of workers."""
    table = Table("way", "workers", "candidates", "verified", "s", "candidates/min", "verified/min", "times as fast")
    for figure in figures:
        factor = factor_of(figure, figures)
        table.add_row(
            figure.way,
            str(figure.workers),
            str(figure.candidates),
            str(figure.verified),
            f"{figure.seconds:.1f}",
            f"{figure.candidates_a_minute:.0f}",
            f"{figure.verified_a_minute:.0f}",
            "" if factor is None else f"{factor:.1f}",
        )
    Console().print(table)


def reached(figures: list[Figure]) -> bool:
    """Says whether the goal was met with every number of workers."""
    factors = {figure.workers: factor_of(figure, figures) for figure in figures if figure.way == "forked"}
    least = min((factor for factor in factors.values() if factor is not None), default=0.0)
    met = least >= GOAL
    print(f"goal: {GOAL:.0f} times as fast as the plain way; reached: {least:.1f} ({'met' if met else 'missed'})")
    return met


if __name__ == "__main__":
    sys.exit(main())
