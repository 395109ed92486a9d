"""The arms of a config: the seekers', and those that the solver adds for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gumshoe.collect.config import AgentConfig, LimitsConfig
from gumshoe.collect.episode.spec import make_agent
from gumshoe.eval.arms.answers import AnswerPacks
from gumshoe.eval.arms.arm import Arm, PackSource, Solver
from gumshoe.eval.arms.command_solver import CommandSolver
from gumshoe.eval.arms.one_shot import AGENT as ONE_SHOT
from gumshoe.eval.arms.packs import EarlierEpisodes, NoPacks, OraclePacks, PacksWithoutProbes, StaticPacks
from gumshoe.eval.arms.policies import PolicyProvider, SeekerPacks
from gumshoe.eval.arms.policy_solver import OneShotSolver, OwnPatches, PolicySolver
from gumshoe.eval.arms.scripted_solver import ScriptedSolver
from gumshoe.eval.config import ArmConfig, EvalConfig, ReferenceName
from gumshoe.records import PolicyInfo

__all__ = ["make_arms"]

SolverAgent = Literal["debug", "rewrite"]


@dataclass(frozen=True)
class Reference:
    """An arm that needs no seeker.

    Args:
        title: name in tables and on the page.
        packs: where its packs come from.
        agent: the solver works as this agent, with tools; None: as the config says.
        whole_budget: the solver gets a seeker's budget on top of its own.
        against: the arms that it is compared with, if they exist.
    """

    title: str
    packs: Callable[[], PackSource]
    agent: SolverAgent | None = None
    whole_budget: bool = False
    against: tuple[str, ...] = ("no_pack", "solo")


ALONE = "no_pack"
REFERENCES: Mapping[ReferenceName, Reference] = {
    "solo": Reference("solver does all", NoPacks, agent="debug", whole_budget=True, against=(ALONE,)),
    "no_pack": Reference("solver alone", NoPacks, against=()),
    "static": Reference("static pack", StaticPacks),
    "oracle_pack": Reference("oracle pack", OraclePacks),
    "debug": Reference("agent with debugger", NoPacks, agent="debug", against=(ALONE, "solo", "rewrite")),
    "rewrite": Reference("agent without debugger", NoPacks, agent="rewrite"),
}
SEEKER_AGAINST = (ALONE, "solo")


def make_arms(config: EvalConfig) -> tuple[Arm, ...]:
    """The arms in the order of the report. Nothing is read or started.

    Raises:
        ConfigError: an arm's agent cannot be made.
    """
    references = config.solver.reference_names if config.solver is not None else ()
    present = {*references, *(arm.without_probes for arm in config.arms)}
    make_solver = _solver_maker(config)

    def against(name: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """The wanted arms that exist; the baseline stands in for a missing arm of the solver alone."""
        known = [one if one in present else config.baseline_name if one == ALONE else None for one in wanted]
        return tuple(dict.fromkeys(one for one in known if one is not None and one != name))

    seekers = [
        Arm(
            name=arm.name,
            title=arm.title,
            packs=_packs(config, arm),
            solver=OwnPatches() if _makes_patches(config, arm) else make_solver(arm.name, arm.title),
            model=arm.model,
            against=against(arm.name, (*SEEKER_AGAINST, *([arm.without_probes] if arm.without_probes else ()))),
        )
        for arm in config.arms
    ]
    added = [
        Arm(
            name=name,
            title=one.title,
            packs=one.packs(),
            solver=make_solver(name, one.title, one.agent, whole_budget=one.whole_budget),
            against=against(name, one.against),
        )
        for name, one in ((name, REFERENCES[name]) for name in references)
    ]
    return (*seekers, *added)


def _packs(config: EvalConfig, arm: ArmConfig) -> PackSource:
    if arm.without_probes is not None:
        return PacksWithoutProbes(arm.without_probes)
    if arm.answers is not None:
        return AnswerPacks(arm.answers)
    if arm.earlier is not None:
        return EarlierEpisodes(Path(arm.earlier).expanduser())
    asked = arm.policy or arm.model
    assert asked is not None
    folder = Path(config.out) / "arms" / arm.name
    agent = arm.agent or config.agent
    provider = PolicyProvider(f"arm {arm.name}", asked, config.serve, config.sampling, folder)
    kind, model = ("openai", asked) if isinstance(asked, str) else (asked.kind, getattr(asked, "model", ""))
    return SeekerPacks(folder, provider, agent, PolicyInfo(kind=kind, model=model, agent=agent.kind))


def _makes_patches(config: EvalConfig, arm: ArmConfig) -> bool:
    """Whether the arm's own agent changes the code."""
    return arm.runs and "rewrite" in make_agent(arm.agent or config.agent).tools


def _solver_maker(config: EvalConfig) -> Callable[..., Solver | None]:
    """Makes the solver of each arm. Solvers share what they can: a served model, what the script has tried."""
    given, out = config.solver, Path(config.out)
    if given is None:
        return lambda *_, **__: None
    if given.command is not None:
        command = given.command
        return lambda arm, title, *_, **__: CommandSolver(title, command, out / "solver" / arm)
    if given.kind == "scripted":
        script = ScriptedSolver(given, out / "solver.jsonl", config.sandbox, config.seed)
        return lambda *_, **__: script
    asked = given.policy or given.model
    assert asked is not None
    provider = PolicyProvider("the solver", asked, config.serve, config.sampling, out / "solver")
    who = asked if isinstance(asked, str) else str(getattr(asked, "model", "")) or asked.kind
    name = f"{who}, {given.mode.replace('_', ' ')}"

    def make(arm: str, title: str, agent: SolverAgent | None = None, *, whole_budget: bool = False) -> Solver:
        folder = out / "solver" / arm
        limits = _sum(given.limits, config.limits) if whole_budget else given.limits
        if given.mode == "one_shot" and agent is None:
            limits = limits.model_copy(update={"steps": None})
            return OneShotSolver(title, name, folder, provider, ONE_SHOT, limits, given.pack)
        own = given.agent if agent is None else AgentConfig(kind=agent, context_tokens=given.agent.context_tokens)
        return PolicySolver(title, name, folder, provider, own, limits, given.pack)

    return make


def _sum(first: LimitsConfig, second: LimitsConfig) -> LimitsConfig:
    """The sum of both budgets; a limit that either leaves open stays open."""
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in ("steps", "wall_s", "tokens", "cost_usd")}
    added = {name: None if None in pair else pair[0] + pair[1] for name, pair in pairs.items()}
    return first.model_copy(update=added)
