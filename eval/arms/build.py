"""The arms of a config: the seekers', and those that the solver adds for comparison."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gumshoe.collect.config import AgentConfig, LimitsConfig
from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.prompts import read_template
from gumshoe.errors import ConfigError
from gumshoe.eval.arms.arm import Arm, PackSource, Solver
from gumshoe.eval.arms.packs import AnswerPacks, NoPacks, OraclePacks, StaticPacks
from gumshoe.eval.arms.playing import SeekerPacks
from gumshoe.eval.arms.policies import PolicyProvider
from gumshoe.eval.arms.reused import PacksWithoutProbes, SharedPacks, read_earlier
from gumshoe.eval.arms.solvers.command import CommandSolver
from gumshoe.eval.arms.solvers.own import OwnPatches
from gumshoe.eval.arms.solvers.policy import OneShotSolver, PolicySolver
from gumshoe.eval.arms.solvers.script import ScriptedSolver
from gumshoe.eval.config import ArmConfig, EvalConfig, ReferenceName, SolverConfig, references_of
from gumshoe.records import PolicyInfo

__all__ = ["make_arms"]


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
    agent: Literal["debug", "rewrite"] | None = None
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
    """The arms in the order of the report.

    Raises:
        ServeError: a model folder is missing.
        ConfigError: a variable is not set, or a template cannot be read.
        DatasetError: an earlier run cannot be read.
    """
    references = references_of(config.solver) if config.solver is not None else ()
    baseline = config.baseline_name
    sources = _sources(config)
    solvers = None if config.solver is None else _Solvers(config, config.solver)

    def against(name: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
        """The wanted arms that exist; the baseline stands in for a missing arm of the solver alone."""
        there = {*references, *(arm.without_probes for arm in config.arms)}
        known = [one if one in there else baseline if one == ALONE else None for one in wanted]
        return tuple(dict.fromkeys(one for one in known if one is not None and one != name))

    seekers = [
        Arm(
            name=arm.name,
            title=arm.title,
            packs=sources[arm.name],
            solver=_solver_of(config, arm, solvers),
            model=None if arm.model is None else config.fill(arm.model),
            against=against(arm.name, (*SEEKER_AGAINST, *([arm.without_probes] if arm.without_probes else ()))),
        )
        for arm in config.arms
    ]
    return (*seekers, *(_reference(name, solvers, against) for name in references if solvers is not None))


def _sources(config: EvalConfig) -> dict[str, PackSource]:
    """Where the packs of each arm come from, by its name."""
    shared = {arm.without_probes for arm in config.arms}
    sources: dict[str, PackSource] = {}
    for arm in config.arms:
        if arm.without_probes is not None:
            sources[arm.name] = PacksWithoutProbes(sources[arm.without_probes])
        else:
            source = _source(config, arm)
            sources[arm.name] = SharedPacks(source) if arm.name in shared else source
    return sources


def _source(config: EvalConfig, arm: ArmConfig) -> PackSource:
    if arm.answers is not None:
        return AnswerPacks(arm.answers, Path(config.fill(arm.answers.path)).expanduser())
    if arm.earlier is not None:
        return read_earlier(Path(config.fill(arm.earlier)).expanduser())
    folder = Path(config.out) / "arms" / arm.name
    agent = arm.agent or config.agent
    provider = PolicyProvider(config, f"arm {arm.name}", arm.model, arm.policy, folder)
    if arm.policy is None:
        policy = PolicyInfo(kind="openai", model=config.fill(arm.model or ""), agent=agent.kind)
    else:
        policy = PolicyInfo(kind=arm.policy.kind, model=getattr(arm.policy, "model", ""), agent=agent.kind)
    return SeekerPacks(folder, provider, agent, policy)


def _solver_of(config: EvalConfig, arm: ArmConfig, solvers: _Solvers | None) -> Solver | None:
    """The arm's own agent where it changes the code itself, else the solver, if there is one."""
    if arm.runs and "rewrite" in make_agent(arm.agent or config.agent).tools:
        return OwnPatches()
    return None if solvers is None else solvers.make(arm.name, arm.title)


def _reference(
    name: ReferenceName, solvers: _Solvers, against: Callable[[str, tuple[str, ...]], tuple[str, ...]]
) -> Arm:
    made = REFERENCES[name]
    solver = solvers.make(name, made.title, made.agent, whole_budget=made.whole_budget)
    return Arm(name, made.title, made.packs(), solver, against=against(name, made.against))


class _Solvers:
    """Makes the solver of each arm. Solvers share what they can: a served model, what the script has tried."""

    def __init__(self, config: EvalConfig, solver: SolverConfig) -> None:
        self._config = config
        self._solver = solver
        self._folder = Path(config.out) / "solver"
        path = Path(config.out) / "solver.jsonl"
        self._script = None
        self._provider = None
        self._pack = None if solver.pack is None else read_template(Path(config.fill(solver.pack)).expanduser())
        if solver.kind == "command":
            return
        if solver.kind == "scripted":
            self._script = ScriptedSolver(solver, path, config.sandbox, config.seed)
        else:
            self._provider = PolicyProvider(config, "the solver", solver.model, solver.policy, self._folder)

    def make(
        self, arm: str, title: str, agent: Literal["debug", "rewrite"] | None = None, *, whole_budget: bool = False
    ) -> Solver:
        """The solver of an arm. Raises ConfigError where a script would have to be an agent."""
        if self._solver.command is not None:
            if agent is not None:
                raise ConfigError(f"a program brings its own tools: remove {arm!r} from solver.references")
            return CommandSolver(title, self._solver.command, self._folder / arm)
        if self._provider is None:
            assert self._script is not None
            if agent is not None:
                raise ConfigError(f"a scripted solver is not an agent: remove {arm!r} from solver.references")
            return self._script
        given = self._solver
        kind = OneShotSolver if given.mode == "one_shot" and agent is None else PolicySolver
        return kind(
            title,
            self._name(),
            self._folder / arm,
            self._provider,
            given.agent if agent is None else AgentConfig(kind=agent, context_tokens=given.agent.context_tokens),
            _sum(given.limits, self._config.limits) if whole_budget else given.limits,
            self._pack,
        )

    def _name(self) -> str:
        solver = self._solver
        policy = solver.policy
        who = self._config.fill(solver.model) if solver.model is not None else str(getattr(policy, "model", ""))
        return f"{who or getattr(policy, 'kind', '')}, {solver.mode.replace('_', ' ')}"


def _sum(first: LimitsConfig, second: LimitsConfig) -> LimitsConfig:
    """The sum of both budgets; a limit that either leaves open stays open."""
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in ("steps", "wall_s", "tokens", "cost_usd")}
    added = {name: None if None in pair else pair[0] + pair[1] for name, pair in pairs.items()}
    return first.model_copy(update=added)
