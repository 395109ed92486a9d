"""Plays one episode: asks the policy, keeps its answers in a journal, stops when the run does."""

from __future__ import annotations

from contextlib import suppress

from gumshoe.collect.config import LimitsConfig
from gumshoe.collect.data.journal import Journal
from gumshoe.collect.episode.agent import Agent
from gumshoe.collect.episode.decisions import describe_turn
from gumshoe.collect.episode.environments import Environment, EnvironmentFactory, EnvironmentSpec, InProcess, StepResult
from gumshoe.collect.episode.episode import Episode, Request
from gumshoe.collect.episode.finish import finished_trajectory
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.run.branching import OpenTree
from gumshoe.collect.run.control import Control, run_cancellable
from gumshoe.env.config import SandboxConfig
from gumshoe.errors import ContextOverflow, SandboxError
from gumshoe.protocols import Policy
from gumshoe.records import Completion, StopReason, ToolCall, Trajectory

__all__ = ["Rollout"]


class Rollout:
    """Plays one episode. `run` may be called once.

    Args:
        spec: what is played.
        agent: tools and prompts.
        policy: who decides.
        sandbox: what programs run in.
        factory: makes the environment; default in this process.
        limits: limits that replace the task's own.
        journal: keeps completions before they are acted on, and gives back those of a killed process.
        control: says when to stop, counts what is used.
        worker: the worker's name, for progress.
        tree: where the episode begins; default in a sandbox of its own, which is removed at its end.
    """

    def __init__(
        self,
        spec: EpisodeSpec,
        agent: Agent,
        policy: Policy,
        *,
        sandbox: SandboxConfig,
        factory: EnvironmentFactory | None = None,
        limits: LimitsConfig | None = None,
        journal: Journal | None = None,
        control: Control | None = None,
        worker: str = "worker",
        tree: OpenTree | None = None,
    ) -> None:
        self._spec = spec
        self._agent = agent
        self._limits = limits
        self._tree = tree or OpenTree()
        self._policy = policy
        self._journal = journal
        self._control = control or Control()
        self._worker = worker
        self._factory = factory or InProcess()
        self._sandbox = sandbox

    def run(self) -> Trajectory:
        """Plays it to its end.

        Raises:
            SandboxError, TaskError, PolicyError: the infrastructure failed.
            ConfigError: the sandbox does not accept this policy.
            Diverged: the journal's replay did not give the recorded observations.
            Interrupted: the run is stopped.
        """
        try:
            episode = self._tree.begin(self._spec, self._open)
            while (request := episode.next_request()) is not None:
                self._control.check()
                self._turn(episode, request)
            trajectory = finished_trajectory(episode, self._policy)
            self._tree.finish(trajectory)
            return trajectory
        except BaseException:
            self._tree.close()
            raise

    def _open(self) -> Episode:
        spec, agent, trusted = self._spec, self._agent, self._policy.trusted
        return Episode(
            spec,
            agent,
            lambda task: self._factory.environment(
                EnvironmentSpec(
                    task, agent.tools_in(task.regime), self._sandbox, trusted, spec.oracle, spec.eval_on_submit
                )
            ),
            limits=self._limits,
            perform=self._perform,
        )

    def _turn(self, episode: Episode, request: Request) -> None:
        try:
            completion = self._decide(request)
        except ContextOverflow:
            episode.end(StopReason.CONTEXT_OVERFLOW)
            return
        self._tree.before(episode, completion)
        doing = f"{episode.task.id} step {len(episode.steps) + 1}: {describe_turn(completion)}"
        self._control.step(self._worker, doing)
        step = episode.accept(completion)
        if self._journal:
            self._journal.observe(step.observations)

    def _decide(self, request: Request) -> Completion:
        """The completion that the journal holds, or a new one, which is on disk before it is acted on."""
        completion = self._journal.recorded() if self._journal else None
        if completion is None:
            completion = self._ask(request)
            if self._journal:
                self._journal.decide(completion)
        self._control.spend(completion.usage)
        return completion

    def _ask(self, request: Request) -> Completion:
        return run_cancellable(self._control, lambda: self._policy.complete(request.messages, request.tools))

    def _perform(self, environment: Environment, call: ToolCall) -> StepResult:
        def give_up() -> None:
            with suppress(SandboxError):
                environment.give_up()

        return run_cancellable(self._control, lambda: environment.step(call), give_up)
