"""Plays episodes: asks the policy, keeps its answers in a journal, stops when the run does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

from gumshoe.collect.config import LimitsConfig
from gumshoe.collect.data.journal import Journal
from gumshoe.collect.episode.agent import Agent
from gumshoe.collect.episode.decisions import describe_turn
from gumshoe.collect.episode.episode import AnyEnv, Episode, Perform, Request, StepResult
from gumshoe.collect.episode.finish import finished_trajectory
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.run.control import Control, run_cancellable
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.errors import ContextOverflow
from gumshoe.protocols import Policy
from gumshoe.records import Completion, StopReason, ToolCall, Trajectory

__all__ = ["cancellable", "play", "play_one"]


def play(
    episode: Episode,
    policy: Policy,
    control: Control,
    *,
    journal: Journal | None = None,
    worker: str = "worker",
    on_completion: Callable[[Episode, Completion], None] = lambda episode, completion: None,
) -> Trajectory:
    """Plays an episode to its end. It is not closed.

    Args:
        episode: what is played.
        policy: who decides.
        control: says when to stop, counts what is used.
        journal: keeps completions before they are acted on, and gives back those of a killed process.
        worker: the worker's name, for progress.
        on_completion: called with each completion before it is acted on.

    Raises:
        SandboxError, TaskError, PolicyError: the infrastructure failed.
        ConfigError: the sandbox does not accept this policy.
        Diverged: the journal's replay did not give the recorded observations.
        Interrupted: the run is stopped.
    """
    while (request := episode.next_request()) is not None:
        control.check()
        try:
            completion = _decide(request, policy, control, journal)
        except ContextOverflow:
            episode.end(StopReason.CONTEXT_OVERFLOW)
            break
        on_completion(episode, completion)
        control.step(worker, f"{episode.task.id} step {len(episode.steps) + 1}: {describe_turn(completion)}")
        step = episode.accept(completion)
        if journal:
            journal.observe(step.observations)
    return finished_trajectory(episode, policy)


def play_one(
    spec: EpisodeSpec,
    agent: Agent,
    policy: Policy,
    *,
    sandbox: SandboxConfig,
    limits: LimitsConfig | None = None,
    control: Control | None = None,
    **options: Any,
) -> Trajectory:
    """Plays one episode in a sandbox of its own. Arguments as for `Episode` and `play`, `options` those of `play`."""
    control = control or Control()
    episode = Episode(spec, agent, sandbox=sandbox, trusted=policy.trusted, limits=limits, perform=cancellable(control))
    with closing(episode):
        return play(episode, policy, control, **options)


def cancellable(control: Control) -> Perform:
    """How an episode carries out its calls when the run may be stopped meanwhile."""

    def perform(env: AnyEnv, call: ToolCall) -> StepResult:
        return run_cancellable(control, lambda: env.step(call), cast("DebugEnv", env.unwrapped).give_up)

    return perform


def _decide(request: Request, policy: Policy, control: Control, journal: Journal | None) -> Completion:
    """The completion that the journal holds, or a new one, which is on disk before it is acted on."""
    completion = journal.recorded() if journal else None
    if completion is None:
        completion = run_cancellable(control, lambda: policy.complete(request.messages, request.tools))
        if journal:
            journal.decide(completion)
    control.spend(completion.usage)
    return completion
