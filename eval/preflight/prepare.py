"""Everything that an evaluation needs, made and checked before it runs anything. All problems are reported together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.collect.policies.llm import with_llm
from gumshoe.collect.policies.registry import check_policy
from gumshoe.eval.arms.arm import Arm, Pair, Solver
from gumshoe.eval.arms.build import make_arms
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.preflight.endpoints import Endpoint, check_endpoint, endpoint_of_command, endpoints_of_policy
from gumshoe.eval.preflight.faults import Faults
from gumshoe.eval.preflight.left import Left, what_is_left
from gumshoe.eval.preflight.resources import check_disk, check_sandboxes
from gumshoe.eval.preflight.task_choice import choose_tasks
from gumshoe.eval.records import LossCurve
from gumshoe.eval.results.losses import read_losses
from gumshoe.eval.scorers.plugins import load_scorers
from gumshoe.eval.serve.model_folder import check_model_folder
from gumshoe.eval.swebench.official import check_installed, check_rows

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True)
class Prepared:
    """What an evaluation is made of. `rows` are those for the official harness; empty if it is not used."""

    arms: tuple[Arm, ...]
    solvers: tuple[Solver, ...]
    tasks: tuple[Pair, ...]
    rows: Sequence[Mapping[str, Any]]
    losses: tuple[LossCurve, ...]


def prepare(config: EvalConfig, say: Callable[[str], None]) -> Prepared:
    """Makes the arms, loads the tasks, and checks what will be needed.

    Servers and sandboxes are checked only where episodes are left: what is finished can be scored without them.

    Raises:
        GumshoeError: something is missing or wrong. The message has a line for each fault.
    """
    faults = Faults()
    arms: tuple[Arm, ...] = ()
    tasks: tuple[Pair, ...] = ()
    rows: Sequence[Mapping[str, Any]] = ()
    losses: tuple[LossCurve, ...] = ()
    for model in _models(config):
        with faults.collect():
            check_model_folder(Path(config.fill(model)).expanduser())
    with faults.collect():
        arms = make_arms(config)
    with faults.collect():
        load_scorers(config.metrics)
    with faults.collect():
        losses = read_losses(config)
    with faults.collect():
        tasks = choose_tasks(config, say)
    if config.harness is not None:
        with faults.collect():
            check_installed()
        with faults.collect():
            rows = check_rows(config, {task.id for task, _ in tasks})
    solvers = tuple({id(arm.solver): arm.solver for arm in arms if arm.solver is not None}.values())
    sources = {id(arm.packs): arm.packs for arm in arms}.values()
    for one in (*sources, *solvers) if tasks else ():
        with faults.collect():
            one.check(tasks)
    # Even if no task can be loaded, the servers are checked.
    left = what_is_left(config, arms, max(1, len(tasks)) * config.tasks.samples)
    for endpoint in _endpoints(left, faults):
        with faults.collect():
            check_endpoint(endpoint)
    if left.episodes and config.runner == "threads":  # With Ray, the sandboxes are on other machines.
        command = None if left.solver is None else left.solver.command
        check_sandboxes(tasks, config.sandbox if command is None else command.sandbox_in(config.sandbox), faults)
    with faults.collect():
        check_disk(Path(config.out), left.episodes)
    faults.report()
    return Prepared(arms, solvers, tasks, rows, losses)


def _models(config: EvalConfig) -> list[str]:
    """The model folders that are named."""
    named = [arm.model for arm in config.arms] + ([config.solver.model] if config.solver is not None else [])
    return [model for model in named if model is not None]


def _endpoints(left: Left, faults: Faults) -> list[Endpoint]:
    """Every server that will be asked, once; policies that cannot be played are faults."""
    found: list[Endpoint] = []
    for owner, policy in left.policies:
        with faults.collect():
            complete = with_llm(policy)
            check_policy(complete)
            found += endpoints_of_policy(owner, complete)
    if left.solver is not None and left.solver.command is not None:
        found += endpoint_of_command("the solver", left.solver.command)
    return list({endpoint.url: endpoint for endpoint in reversed(found)}.values())[::-1]
