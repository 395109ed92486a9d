"""The arms of a config: the seekers', and those that the solver adds for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from gumshoe.collect.config import AgentConfig, LimitsConfig
from gumshoe.collect.episode.spec import make_agent
from gumshoe.eval.arms.answers import AnswerPacks
from gumshoe.eval.arms.arm import Arm, PackSource, Solver
from gumshoe.eval.arms.command_solver import CommandSolver
from gumshoe.eval.arms.episodes import Episodes, PolicySource
from gumshoe.eval.arms.one_shot import AGENT as ONE_SHOT
from gumshoe.eval.arms.packs import EarlierEpisodes, NoPacks, OraclePacks, PacksWithoutProbes, SeekerPacks, StaticPacks
from gumshoe.eval.arms.policy_solver import OneShotSolver, OwnPatches, PolicySolver
from gumshoe.eval.arms.scripted_solver import ScriptedSolver
from gumshoe.eval.config import ArmConfig, EvalConfig, ReferenceName, SolverConfig

SolverAgent = Literal["debug", "rewrite"]


@dataclass(frozen=True)
class Reference:
    """An arm that needs no seeker, and the arms that it is compared with, if they exist.

    With `agent`, the solver works as that agent, with tools, and not as the config says; with `whole_budget` it gets a
    seeker's budget on top of its own.
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
    """The arms in the order of the report; nothing is read or started. Raises ConfigError for a wrong agent."""
    references = config.solver.reference_names if config.solver is not None else ()
    present = {*references, *(arm.without_probes for arm in config.arms)}
    solvers = _Solvers(config)

    def against(name: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """The wanted arms that exist; the baseline stands in for a missing arm of the solver alone."""
        known = [one if one in present else config.baseline_name if one == ALONE else None for one in wanted]
        return tuple(dict.fromkeys(one for one in known if one is not None and one != name))

    seekers = [
        Arm(
            name=arm.name,
            title=arm.title,
            packs=_packs(config, arm),
            solver=OwnPatches() if _makes_patches(config, arm) else solvers.make(arm.name, arm.title),
            model=arm.model,
            against=against(arm.name, (*SEEKER_AGAINST, *([arm.without_probes] if arm.without_probes else ()))),
        )
        for arm in config.arms
    ]
    added = [
        Arm(
            name=name,
            title=reference.title,
            packs=reference.packs(),
            solver=solvers.make(name, reference.title, reference),
            against=against(name, reference.against),
        )
        for name, reference in ((name, REFERENCES[name]) for name in references)
    ]
    return (*seekers, *added)


def _packs(config: EvalConfig, arm: ArmConfig) -> PackSource:
    if arm.without_probes is not None:
        return PacksWithoutProbes(arm.without_probes)
    if arm.answers is not None:
        return AnswerPacks(arm.answers, config)
    if arm.earlier is not None:
        return EarlierEpisodes(Path(arm.earlier).expanduser())
    asked = arm.policy or arm.model
    assert asked is not None
    folder = Path(config.out) / "arms" / arm.name
    agent = arm.agent or config.agent
    policies = PolicySource(f"arm {arm.name}", asked, config.serve, config.sampling, folder)
    return SeekerPacks(Episodes(folder, policies, agent, config.limits))


def _makes_patches(config: EvalConfig, arm: ArmConfig) -> bool:
    """Whether the arm's own agent has the tool that edits files."""
    return arm.runs and "rewrite" in make_agent(arm.agent or config.agent).tools


class _Solvers:
    """Makes the solver of each arm. Solvers share what they can: a served model, what the script has tried."""

    def __init__(self, config: EvalConfig) -> None:
        self._config = config
        self._folder = Path(config.out) / "solver"

    def make(self, arm: str, title: str, reference: Reference | None = None) -> Solver | None:
        """The solver of an arm; None where nobody fixes the bugs."""
        given = self._config.solver
        if given is None:
            return None
        if given.command is not None:
            return CommandSolver(title, given.command, self._folder / arm)
        if given.kind == "scripted":
            return self._script
        return self._policy_solver(given, arm, title, reference)

    def _policy_solver(self, given: SolverConfig, arm: str, title: str, reference: Reference | None) -> PolicySolver:
        """A policy, as the agent of the config, or as that of the reference."""
        kind, agent, limits = PolicySolver, given.agent, given.limits
        if reference is not None and reference.whole_budget:
            limits = _sum(limits, self._config.limits)
        if reference is not None and reference.agent is not None:
            agent = AgentConfig(kind=reference.agent, context_tokens=given.agent.context_tokens)
        elif given.mode == "one_shot":
            kind, agent, limits = OneShotSolver, ONE_SHOT, limits.model_copy(update={"steps": None})
        who = self._policies.info(agent)
        name = f"{who.model or who.kind}, {given.mode.replace('_', ' ')}"
        return kind(title, name, Episodes(self._folder / arm, self._policies, agent, limits), given.pack)

    @cached_property
    def _script(self) -> ScriptedSolver:
        config = self._config
        assert config.solver is not None
        return ScriptedSolver(config.solver, Path(config.out) / "solver.jsonl", config.sandbox, config.seed)

    @cached_property
    def _policies(self) -> PolicySource:
        config = self._config
        assert config.solver is not None
        asked = config.solver.policy or config.solver.model
        assert asked is not None
        return PolicySource("the solver", asked, config.serve, config.sampling, self._folder)


def _sum(first: LimitsConfig, second: LimitsConfig) -> LimitsConfig:
    """The sum of both budgets; a limit that either leaves open stays open."""
    names = ("steps", "calls", "wall_s", "tokens", "cost_usd")
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in names}
    added = {name: None if None in pair else pair[0] + pair[1] for name, pair in pairs.items()}
    return first.model_copy(update=added)
