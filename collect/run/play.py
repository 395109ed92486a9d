"""Plays one episode to its trajectory: asks the policy, keeps its answers in a journal, stops when the run does.

The trajectory has the final patch, its verdict, and where it comes from.
"""

from __future__ import annotations

import dataclasses
import datetime
import platform
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

from gumshoe import __version__
from gumshoe.collect.config import LimitsConfig
from gumshoe.collect.data.journal import Journal
from gumshoe.collect.episode.conversation import describe_turn
from gumshoe.collect.episode.episode import AnyEnv, Episode, Perform, Request, StepResult
from gumshoe.collect.episode.spec import REPORT_SCORE, Agent, EpisodeSpec, task_ref
from gumshoe.collect.packs import lines_overlap
from gumshoe.collect.run.control import Control, Interrupted, run_cancellable
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.diff import gold_lines
from gumshoe.env.verifier import Grade, grade_of, without_tests
from gumshoe.errors import ContextOverflow, PolicyError
from gumshoe.protocols import Policy
from gumshoe.records import (
    Completion,
    Decision,
    PolicyInfo,
    Provenance,
    Score,
    StopReason,
    ToolCall,
    Trajectory,
)
from gumshoe.text import cut_line, visible


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
    refused = ""
    while (request := episode.next_request()) is not None:
        control.check()
        try:
            completion = _decide(request, policy, control, journal)
        except ContextOverflow:
            episode.end(StopReason.CONTEXT_OVERFLOW)
            break
        except KeyboardInterrupt:  # A person who decides wants to stop.
            control.abort()
            raise Interrupted from None
        on_completion(episode, completion)
        control.begin_turn(
            worker, f"{episode.task.id} step {len(episode.steps) + 1}: {describe_turn(completion)}{refused}"
        )
        step = episode.accept(completion)
        failures = [visible(one.failure.message).partition("\n")[0] for one in step.observations if one.failure]
        refused = f" (the turn before failed: {cut_line(failures[0], 80)})" if failures else ""
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
        if not isinstance(completion, Completion):  # pyright: ignore[reportUnnecessaryIsInstance] - somebody's own
            raise PolicyError(f"{policy.kind}: complete must return a Completion, not {type(completion).__name__}")
        if journal:
            journal.decide(completion)
    control.count_completion(completion.usage)
    return completion


# - the trajectory of an episode that is over: what is judged and kept


def finished_trajectory(episode: Episode, policy: Policy) -> Trajectory:
    """The trajectory of an episode that is over, has had a request, and is not closed yet.

    Raises SandboxError if the sandbox broke.
    """
    assert episode.stop is not None, "the episode is not over"
    patch = _final_patch(episode)
    tampering = episode.environment.tampering()
    grade = _grade(episode)
    return Trajectory(
        id=episode.spec.id,
        task=task_ref(episode.spec.task),
        policy=PolicyInfo(kind=policy.kind, model=policy.model, agent=episode.agent.kind),
        tools=episode.info.schemas,
        messages=tuple(episode.messages),
        steps=tuple(episode.steps),
        stop=episode.stop,
        patch=patch,
        context_pack=episode.context_pack,
        scores=(*_scores(episode, grade), *_report_scores(episode)),
        tampering=(*tampering, *(() if grade is None or grade.verdict is None else grade.verdict.tampering)),
        usage=episode.usage,
        provenance=Provenance(
            gumshoe=__version__,
            python=platform.python_version(),
            sandbox=episode.info.sandbox,
            image_digest=episode.info.image_digest,
            config_hash=episode.spec.run,
            seed=episode.spec.seed,
            created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        ),
        branch=episode.spec.branch,
    )


def _final_patch(episode: Episode) -> str:
    """What the agent has changed, without the files of tests that it does not know about."""
    patch, oracle = episode.environment.patch(), episode.spec.oracle
    return patch if episode.task.regime == "debug" or oracle is None else without_tests(patch, oracle)


def _grade(episode: Episode) -> Grade | None:
    """The verdict in the words of the official report; None if none was wanted: by config, for an agent that cannot
    edit, or without tests.

    Tests that the patch keeps from finishing have not passed.
    """
    hidden = episode.task.regime == "issue" and episode.spec.oracle is None
    if hidden or not episode.spec.eval_on_submit:
        return None
    submitted = episode.stop is StopReason.SUBMITTED
    if not (submitted or _can_edit(episode) or episode.environment.patch()):
        return None
    verdict = episode.verdict if submitted else episode.environment.verify()
    if verdict is None:
        return Grade(episode.task.id, "empty")
    grade = grade_of(episode.task, verdict)
    is_late = verdict.run.result.timed_out and not verdict.unusable
    return dataclasses.replace(grade, outcome="unresolved") if is_late else grade


def _can_edit(episode: Episode) -> bool:
    return Decision.EDIT in episode.info.decisions.values()


def _scores(episode: Episode, grade: Grade | None) -> tuple[Score, ...]:
    """Whether the patch resolves the task. An agent that cannot edit is not scored."""
    if not episode.spec.eval_on_submit:
        return (Score(name="resolved", value=None, explanation="not verified: eval_on_submit is false"),)
    if grade is None:
        hidden = Score(name="resolved", value=None, explanation="the tests are hidden from this workspace")
        return (hidden,) if episode.task.regime == "issue" else ()
    if grade.outcome in ("error", "withheld"):
        return (Score(name="resolved", value=None, explanation=grade.explanation),)
    when = "at submit" if episode.stop is StopReason.SUBMITTED else "at the end of the episode"
    # The names of hidden tests stay hidden.
    why = f": {grade.explanation}" if grade.explanation and episode.task.regime == "debug" else ""
    return (Score(name="resolved", value=float(grade.resolved), explanation=f"verified {when}, {grade.outcome}{why}"),)


def _report_scores(episode: Episode) -> tuple[Score, ...]:
    """How well the report names the lines that the gold patch touches, if that is wanted; 0 without a report."""
    oracle = episode.spec.oracle
    if not episode.spec.score_report or oracle is None or Decision.REPORT not in episode.info.decisions.values():
        return ()
    pack = episode.context_pack
    found = lines_overlap(pack.locations if pack is not None else (), gold_lines(oracle.gold_patch))
    why = f"{found.shared} of {found.gold} lines, {found.named} named" if pack is not None else "no report"
    return (Score(name=REPORT_SCORE, value=found.f1, explanation=why),)
