"""`gumshoe collect`: roll out an agent on tasks and keep its trajectories."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from gumshoe.collect.config import CollectConfig, CustomConfig, HumanConfig
from gumshoe.collect.data.store import Again, RunFolder, read_failures, read_trajectories, run_identity
from gumshoe.collect.episode.episode import Episode
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies.human import HumanPolicy
from gumshoe.collect.policies.llm import with_llm
from gumshoe.collect.policies.registry import check_policy, make_policy
from gumshoe.collect.run.branching import is_whole
from gumshoe.collect.run.control import Control, stop_on_signals
from gumshoe.collect.run.progress import ProgressDisplay
from gumshoe.collect.run.runner import Runner, RunResult, open_factories, plan_episodes
from gumshoe.config import load_config
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.errors import ConfigError, PolicyError, SandboxError, TaskError
from gumshoe.plugins import search_beside
from gumshoe.protocols import close_policy

__all__ = ["collect", "configure_collect", "run_collect"]

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
        help="rerun episodes that did not resolve their task, hit a limit, or were abandoned",
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
    print(where)
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
        for trajectory in read_trajectories(path) if _limits_whole_run(config) else ():
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


def _limits_whole_run(config: CollectConfig) -> bool:
    budget = config.budget
    return any(part is not None for part in (budget.steps, budget.tokens, budget.cost_usd))


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
