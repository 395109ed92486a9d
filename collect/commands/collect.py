"""`gumshoe collect`: roll out an agent on tasks and keep its trajectories; the display of its progress."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from gumshoe.collect.config import CollectConfig, CustomConfig, HumanConfig
from gumshoe.collect.data.store import Again, RunFolder, read_failures, read_trajectories, run_identity
from gumshoe.collect.episode.episode import Episode
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies.human import HumanPolicy
from gumshoe.collect.policies.llm import with_llm
from gumshoe.collect.policies.registry import check_policy, make_policy
from gumshoe.collect.run.branching import is_whole
from gumshoe.collect.run.control import Control, stop_on_signals
from gumshoe.collect.run.runner import Runner, RunResult, open_factories, plan_episodes
from gumshoe.config import load_config
from gumshoe.console import Console
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.errors import ConfigError, PolicyError, SandboxError, TaskError
from gumshoe.plugins import search_beside
from gumshoe.protocols import close_policy
from gumshoe.records import Trajectory

PLAIN_EVERY_S = 10.0
EPILOG = """\
examples:
  gumshoe collect configs/collect/demo.yaml
  gumshoe collect configs/collect/demo.yaml -p workers=8 -p tasks.limit=20 -p out=runs/try
  gumshoe collect RUN/config.yaml            resumes a stopped run

Trajectories replaced by --force-all or --force-failed move to replaced.jsonl in the run folder.
Press Ctrl-C once to finish the running episodes, twice to stop immediately. Run the same command again to resume.
"""


def configure_collect(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("config", type=Path, help="YAML file (see configs/collect)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override a value")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--force-all", action="store_const", const="all", dest="again", help="rerun all episodes")
    again.add_argument(
        "--force-failed",
        action="store_const",
        const="failed",
        dest="again",
        help="rerun episodes that did not resolve their task, hit a limit without a verdict, or were abandoned",
    )
    parser.add_argument("--step", action="store_true", help="show each turn and ask before it runs")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="log on the terminal; -vv logs more")


def run_collect(arguments: argparse.Namespace) -> int:
    """Runs the command. 0: all done; 1: episodes were given up; 130: interrupted."""
    config = load_config(CollectConfig, arguments.config, arguments.param)
    search_beside(arguments.config)
    config = config.model_copy(update={"policy": with_llm(config.policy)})
    result = collect(config, verbose=arguments.verbose, step=arguments.step, again=arguments.again)
    branches = f" with {result.branches} branches" if config.branch is not None else ""
    where = f"{result.finished} of {result.planned} episodes{branches} in {config.out}"
    if result.stopped == "interrupted":
        print(f"{where}: stopped; run the same command again to resume")
        return 130
    if result.stopped is not None:
        print(f"{where}: {result.stopped}; run the same command with a larger budget to continue")
        return 0
    if result.gave_up:
        *_, last = read_failures(Path(config.out))
        print(f"{where}; {result.gave_up} given up, now or earlier: see {Path(config.out) / 'failures.jsonl'}")
        print(f"the last failure: {last['kind']}: {last['message']}")
        print("to play them again: the same command with --force-failed")
        return 1
    print(f"{where}; to look at them: gumshoe view {config.out}")
    return 0


def collect(
    config: CollectConfig,
    *,
    verbose: int = 0,
    step: bool = False,
    again: Again | None = None,
    on_stopped: Callable[[Episode], None] = lambda episode: None,
) -> RunResult:
    """Plays all episodes of `config` that its run folder does not hold yet.

    Args:
        config: what is run.
        verbose: how much of the log goes to the terminal as well, 0 to 2.
        step: a person at the terminal looks at each turn; one episode at a time.
        again: which finished episodes are played again: `all`, or those that `failed`.
        on_stopped: called with each episode that is left unfinished because the run is stopped.

    Raises:
        GumshoeError: the config, the tasks or the run folder are wrong, every attempt fails, or `fail_on_error` is
            reached.
    """
    path = Path(config.out)
    if config.branch is not None and again == "failed":
        raise ConfigError("--force-failed cannot be used with branch: what failed is part of a tree; use --force-all")
    episodes = plan_episodes(config, run_identity(config))
    if not path.exists():
        _check(config, episodes)
    with RunFolder(path, config, again) as folder, _logging(path / "run.log", verbose):
        folder.plan(len(episodes))
        control = Control(config.budget)
        limits = (config.budget.steps, config.budget.tokens, config.budget.cost_usd)
        for trajectory in read_trajectories(path) if any(limit is not None for limit in limits) else ():
            control.count_earlier(trajectory.own_usage, len(trajectory.own_steps))
        before = sum(is_whole(episode, config.branch, folder.nodes) for episode in episodes)
        logging.getLogger(__name__).info("%d episodes, %d of them finished", len(episodes), before)
        attended = step or isinstance(config.policy, HumanConfig)
        if attended:
            config = config.model_copy(update={"workers": 1})
        display = ProgressDisplay(len(episodes), before, control)
        with (
            open_factories(config.runner, config.ray) as make_factory,
            nullcontext() if attended else display,
            stop_on_signals(control, attended=attended),
        ):
            runner = Runner(
                config,
                folder,
                control,
                on_done=display.done,
                wrap=lambda policy, episode: HumanPolicy(policy) if step else policy,
                make_factory=make_factory,
                on_stopped=on_stopped,
            )
            return runner.run(episodes, (lambda: None) if attended else display.tick)


def _check(config: CollectConfig, episodes: Sequence[EpisodeSpec]) -> None:
    """Refuses what no episode could be played with, before there is a run folder. Raises ConfigError.

    A sandbox or an image that is missing is left to the episodes, which try again and go on with other tasks.
    """
    check_policy(config.policy)
    make_agent(config.agent)
    trusted = _is_trusted(config, episodes)
    if config.runner != "threads":  # The sandboxes are on other machines.
        return
    kinds = {(one.task.workspace.path is None, is_built_in(one.task)): one.task for one in episodes}
    for task in kinds.values():
        with suppress(SandboxError, TaskError):
            choose(task, config.sandbox, trusted=trusted)


def _is_trusted(config: CollectConfig, episodes: Sequence[EpisodeSpec]) -> bool:
    """Whether the policy is; one's own is made once to find out. Raises ConfigError if that fails."""
    if not isinstance(config.policy, CustomConfig) or not episodes:
        return config.policy.trusted
    first = episodes[0]
    try:
        policy = make_policy(config.policy, first.task, first.oracle, first.seed)
    except PolicyError as error:
        raise ConfigError(str(error)) from None
    close_policy(policy)
    return policy.trusted


@contextmanager
def _logging(path: Path, verbose: int) -> Generator[None]:
    """Everything that gumshoe logs goes to run.log, and with -v to the terminal."""
    root = logging.getLogger("gumshoe")
    to_file = logging.FileHandler(path, encoding="utf-8")
    to_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    handlers: list[logging.Handler] = [to_file]
    if verbose:
        handlers.append(logging.StreamHandler())
    level, root_level = (logging.DEBUG if verbose > 1 else logging.INFO), root.level
    root.setLevel(level)
    for handler in handlers:
        root.addHandler(handler)
    try:
        yield
    finally:
        root.setLevel(root_level)
        for handler in handlers:
            root.removeHandler(handler)
            handler.close()


class ProgressDisplay:
    """Shows done, resolved, failed, steps and tokens per second, money, time left and what each worker is doing.

    Of a run with one episode, it shows what that does: every turn in a line of its own, or the latest on a terminal.
    Of the `planned` episodes, `before` were finished before this process.
    """

    def __init__(self, planned: int, before: int, control: Control, console: Console | None = None) -> None:
        self._planned = planned
        self._whole = before
        self._before = before
        self._done = 0
        self._branches = 0
        self._control = control
        self._resolved = 0
        self._scored = 0
        self._console = console or Console(file=sys.stderr, highlight=False)
        self._live: Live | None = None
        self._last_plain = time.monotonic()
        self._stop_announced = False
        self._bar = Progress(
            TextColumn("collect"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=self._console
        )
        self._task = self._bar.add_task("collect", total=planned, completed=before)

    def __enter__(self) -> ProgressDisplay:
        if self._console.is_terminal:
            self._live = Live(self._render(), console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        elif self._planned == 1:
            self._control.on_step = self._print
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def done(self, trajectory: Trajectory, is_whole: bool) -> None:
        """Counts a finished trajectory; `is_whole` says that all episodes of its tree are finished."""
        self._done += 1
        self._whole += is_whole
        self._branches += trajectory.branch is not None
        self._scored += trajectory.resolved is not None
        self._resolved += trajectory.resolved is True

    def tick(self) -> None:
        """Draws, or prints a line if one is due."""
        if self._live is not None:
            self._live.update(self._render(), refresh=True)
            return
        if self._stopping() and not self._stop_announced:
            self._stop_announced = True
            self._print(self._stopping())
        if self._planned > 1 and time.monotonic() - self._last_plain >= PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            self._print(f"{self._whole}/{self._planned} {self.line()}{self._left()}")

    def line(self) -> str:
        """The counts in one line."""
        elapsed = max(self._control.elapsed_s, 1e-9)
        spent = self._control.spent
        parts = [f"{self._done / elapsed * 60:.1f} episodes/min"]
        if self._branches:
            parts.append(f"{self._branches} branches")
        if self._scored:
            parts.append(f"{self._resolved} of {self._scored} resolved")
        if self._control.failures:
            parts.append(f"failed tries: {self._control.failures}")
        parts.append(f"{self._control.steps / elapsed:.1f} steps/s")
        if spent.tokens:
            parts.append(f"{spent.tokens / elapsed:.0f} tokens/s")
        if spent.cost_usd is not None:
            parts.append(f"${spent.cost_usd:.2f}")
        return ", ".join(parts)

    def _stopping(self) -> str:
        """The message to a user who has pressed Ctrl-C."""
        asked = self._control.finishing and not self._control.aborting and self._control.exhausted is None
        return "finishing the episodes at hand; Ctrl-C again stops at once" if asked else ""

    def _left(self) -> str:
        """The time left at the speed so far; nothing before as many episodes are done as are being played."""
        now = self._whole - self._before
        if now <= len(self._control.doing):
            return ""
        seconds = round(self._control.elapsed_s / now * (self._planned - self._whole))
        return f", {seconds // 60} min {seconds % 60} s left"

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def _render(self) -> Group:
        self._bar.update(self._task, completed=self._whole)
        stopping = [Text(self._stopping())] if self._stopping() else []
        doing = [
            Text(f"  {line}", overflow="ellipsis", no_wrap=True) for _, line in sorted(self._control.doing.items())
        ]
        if self._planned == 1:
            return Group(*(doing or [Text("  starting")]), *stopping)
        return Group(self._bar, Text(self.line()), *doing, *stopping)
