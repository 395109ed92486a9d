"""What is compared: an arm is a source of packs and, where bugs are to be fixed, a solver.

First the contracts: `EvalRun`, what all arms share; `PackSource` and `Solver`, and what they hand over; `Arm`, one of
each. Below them `Checks`: both check themselves before anything runs, and all faults are reported at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from gumshoe.collect.run.control import Control
from gumshoe.collect.run.runner import InProcess, MakeFactory
from gumshoe.env.config import SandboxConfig
from gumshoe.env.git import Repositories
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.score.buggy_code import BuggyCode, fetch_buggy_code
from gumshoe.eval.serve import ModelServer
from gumshoe.protocols import Scorer
from gumshoe.records import ContextPack, Oracle, PolicyInfo, Task, Trajectory

TIMEOUT_S = 5.0
REFUSED = (401, 403)
Pair = tuple[Task, Oracle]
TaskSample = tuple[str, int]
"""Task id and sample."""
AttemptKey = tuple[str, str, int]
"""Arm, task id and sample."""


@dataclass(frozen=True)
class Hooks:
    """Callbacks while episodes run, or whatever else a solver does in an attempt.

    `serving` receives the server once it answers; `begun` the number of episodes and how many were finished before;
    `done` is called for each one that this process has finished; `tick` about four times a second.
    """

    serving: Callable[[ModelServer], None] = lambda _: None
    begun: Callable[[int, int], None] = lambda planned, before: None
    done: Callable[[], None] = lambda: None
    tick: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class EvalRun:
    """What all arms of a run share: the tasks, what stops the run, where the sandboxes are, the metrics of the config's
    own, and the packs of the arms that are done, by the arm's name: while packs are collected, those of earlier arms.
    """

    config: EvalConfig
    tasks: tuple[Pair, ...]
    control: Control
    make_factory: MakeFactory = InProcess
    scorers: tuple[Scorer, ...] = ()
    packs: Mapping[str, CollectedPacks] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        """The run folder."""
        return Path(self.config.out)

    @cached_property
    def pairs(self) -> Mapping[str, Pair]:
        """The tasks by id."""
        return {task.id: (task, oracle) for task, oracle in self.tasks}

    def buggy_code(self, episodes: Iterable[Trajectory], file: str) -> BuggyCode:
        """The files of the tasks before the repair. For tasks in images, those that the gold patches and the packs of
        `episodes` name, which are kept in `file` of the run folder. Raises SandboxError or TaskError.
        """
        config, path = self.config, self.out / file
        fetched = fetch_buggy_code(
            self.tasks, episodes, config.sandbox, path, self.control, config.workers, open_repositories(config)
        )
        return BuggyCode((task for task, _ in self.tasks), fetched)


def open_repositories(config: EvalConfig) -> Repositories | None:
    """Where the files of tasks that live in images can be read without the image."""
    return None if config.repositories is None else Repositories(Path(config.repositories))


class Part:
    """What an arm is made of."""

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Reports to `checks` what keeps it from working, and returns how many episodes it still has to run.

        Args:
            tasks: what it is to work on; empty if the tasks could not be loaded.
            attempts: how many tasks and samples that makes, in all the arms that share it; 0 if all were run before.
            checks: collects the faults.
        """
        return 0


@dataclass(frozen=True)
class CollectedPacks:
    """What a source handed over, by task id and sample; tasks that were not reached are missing.

    A pack of None means that the solver is given none. `episodes` are those that the packs come from; `failed` counts
    episodes that were given up; `stopped` says why it ended early.
    """

    packs: Mapping[TaskSample, ContextPack | None]
    episodes: Mapping[TaskSample, Trajectory] = field(default_factory=dict)
    failed: int = 0
    stopped: str | None = None


class PackSource(Part, ABC):
    """Where the packs of an arm come from."""

    @property
    def policy(self) -> PolicyInfo | None:
        """Who decided in its episodes; None where there are no episodes."""
        return None

    @abstractmethod
    def collect(self, run: EvalRun, hooks: Hooks) -> CollectedPacks:
        """The packs for every task and sample. Raises GumshoeError."""


@dataclass(frozen=True)
class Attempt:
    """One task for a solver: the pack of an arm, and the episode that it comes from, if there is one."""

    arm: str
    task: Task
    oracle: Oracle
    pack: ContextPack | None
    sample: int = 0
    episode: Trajectory | None = None

    @property
    def key(self) -> AttemptKey:
        """What identifies the attempt: arm, task, number of the sample."""
        return self.arm, self.task.id, self.sample


@dataclass(frozen=True)
class Solution:
    """The outcome of an attempt.

    Anything that could not be measured is None: `solved` if the patch could not be graded, the tokens of a solver that
    uses none, the cost if no price is known. `tests` says how the tests ended; it is empty if that is unknown.
    """

    solved: float | None
    patch: str = ""
    trajectory: str = ""
    steps: int | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    tests: str = ""


class Solver(Part, ABC):
    """Who fixes the bug with the pack of an arm. Several arms may share one.

    Its progress is shown under `title`; `name` stands in the report, empty if the arm's own agent makes the patch.
    """

    title: str
    name: str

    @abstractmethod
    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """The outcome of each attempt; attempts that were not reached are missing. Raises GumshoeError."""

    def close(self) -> None:
        """Stops what it has started. Idempotent."""


@dataclass(frozen=True)
class Arm:
    """One thing that is compared: under `name`, as its run folder; `title` stands in tables and on the page.

    Nobody fixes the bugs if `solver` is None. `model` is the model folder that is served for its packs, `against` names
    the arms that its outcomes are compared with, task by task.
    """

    name: str
    title: str
    packs: PackSource
    solver: Solver | None = None
    model: str | None = None
    against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Endpoint:
    """A server: an address that is cheap to request, and the headers that say who is asking."""

    owner: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Checks:
    """The faults that the parts of an evaluation find in themselves.

    Each line of a message is a fault of its own; the same line counts once.
    """

    def __init__(self) -> None:
        self._errors: list[GumshoeError] = []
        self._asked: set[str] = set()

    @contextmanager
    def collect(self) -> Generator[None]:
        """Keeps a GumshoeError for later and goes on after the block."""
        try:
            yield
        except GumshoeError as error:
            self._errors.append(error)

    def endpoint(self, endpoint: Endpoint) -> None:
        """Checks a server, unless it was checked before."""
        if endpoint.url not in self._asked:
            self._asked.add(endpoint.url)
            with self.collect():
                check_endpoint(endpoint)

    def sandboxes(self, tasks: Sequence[Pair], config: SandboxConfig) -> None:
        """Checks that every image can be obtained and that a sandbox takes the tasks."""
        seen: set[tuple[str | None, str | None, bool]] = set()
        for task, _ in tasks:
            kind = (task.workspace.image, task.workspace.environment, is_built_in(task))
            if kind not in seen:
                seen.add(kind)
                with self.collect():
                    choose(task, config, trusted=True)

    def report(self) -> None:
        """Raises what was collected, if anything: a single fault as it is, several as one ConfigError."""
        lines = list(dict.fromkeys(line for error in self._errors for line in str(error).splitlines()))
        if len(lines) > 1:
            listed = "".join(f"\n  {line}" for line in lines)
            raise ConfigError(f"{len(lines)} problems, so nothing was run:{listed}")
        if lines:
            raise self._errors[0]


def check_endpoint(endpoint: Endpoint) -> None:
    """Raises ConfigError if nothing answers, or the key is refused. Any other answer will do: not all list models."""
    import httpx2

    parts = urlsplit(endpoint.url)
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()  # without a password
    try:
        status = httpx2.get(endpoint.url, headers=dict(endpoint.headers), timeout=TIMEOUT_S).status_code
    except httpx2.TimeoutException:
        raise ConfigError(f"{endpoint.owner}: {shown} did not answer in {TIMEOUT_S:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ConfigError(f"{endpoint.owner}: {shown} does not answer: {' '.join(str(error).split())}") from None
    if endpoint.headers and status in REFUSED:
        raise ConfigError(f"{endpoint.owner}: {shown} rejects the key (HTTP {status})")
