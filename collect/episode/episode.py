"""One episode as a state machine: what the policy is asked next, and what its answer leads to.

    with closing(Episode(spec, agent)) as episode:
        while (request := episode.next_request()) is not None:
            episode.accept(policy.complete(request.messages, request.tools))
        trajectory = finished_trajectory(episode, policy)

Everything that plays episodes drives this class: `gumshoe collect`, evaluations, live episodes in training, replays,
the text environment and `gumshoe play`. It owns the environment, the limits, the nudges, the elision of old
observations and the unlocking of tools. Who answers and what is journaled is up to the driver, such as
`gumshoe.collect.run.play`.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, SupportsFloat, TypeAlias, cast

import gymnasium

from gumshoe.collect.config import LimitsConfig
from gumshoe.collect.episode.conversation import as_text_messages, elide, elision_point, parse_decision, read_turn
from gumshoe.collect.episode.spec import Agent, EpisodeSpec, nudge
from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv, EnvironmentInfo
from gumshoe.env.verifier import Verdict
from gumshoe.records import (
    Completion,
    ContextPack,
    Decision,
    Failure,
    Message,
    Observation,
    Step,
    StopReason,
    ToolCall,
    ToolSchema,
    Usage,
)
from gumshoe.tools.calls.parsing import bare_name
from gumshoe.tools.evidence.facts import FactReader

AnyEnv: TypeAlias = gymnasium.Env[Any, Any]
"""A `DebugEnv`, or a wrapper around one, such as `gymnasium.make` returns."""
MakeEnv: TypeAlias = Callable[..., AnyEnv]
"""Makes the environment of an episode; it takes the arguments of `DebugEnv`."""
StepResult: TypeAlias = tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]
"""What `DebugEnv.step` returns."""
Perform: TypeAlias = Callable[[AnyEnv, ToolCall], StepResult]
"""How a call is carried out."""

NO_CALL = "You called no tool."
NOT_RUN = "episode_over"
"""The kind of failure of a call that came after the end of the episode."""
SAME = "You gave the same answer as before, and called no tool."
DEBUGGER = "pdb"
CUT_OFF = "Your answer reached its length limit before a tool call was complete."


@dataclass(frozen=True)
class Request:
    """What the policy is asked: the conversation as the agent sees it, and the tools that it may call."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...]


@dataclass(frozen=True)
class EpisodeSnapshot:
    """An episode as it stood before a turn, with the environment's own snapshot.

    What else an `Episode` has is left out on purpose. `restore` reads the facts again from the steps, cuts the turns of
    calls to the number of calls, and takes back what only the end of an episode brings: stop, reward, verdict and pack.
    It is given the spec. Agent, environment and limits stay those of the episode.
    """

    environment: str
    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    usage: Usage
    used: Counter[str]
    idle_turns: int
    elided: int
    elapsed_s: float


class Episode:
    """An agent in front of one task, from the first request to the last answer.

    The environment ends the episode at a tool that submits or reports, and at the limits that a single call can reach:
    calls and wall clock. The episode adds those that are checked between two turns: turns, tokens, money, wall clock,
    and turns in a row without a call.

    Args:
        spec: the task, its oracle and its seed.
        agent: tools and prompts.
        sandbox: what programs run in.
        trusted: whether the policy is, as for `DebugEnv`.
        limits: limits that replace the task's own.
        environment: an environment of the task that is there already; by default, the episode has one of its own.
            Nothing is started before the first request.
        make_env: makes the environment; by default in this process.
        perform: how a call is carried out; by default, the environment's `step`.
    """

    def __init__(
        self,
        spec: EpisodeSpec,
        agent: Agent,
        *,
        sandbox: SandboxConfig | None = None,
        trusted: bool = False,
        limits: LimitsConfig | None = None,
        environment: AnyEnv | None = None,
        make_env: MakeEnv = DebugEnv,
        perform: Perform | None = None,
    ) -> None:
        own = limits or LimitsConfig()
        self.spec = spec
        self.agent = agent
        self.task = spec.task.model_copy(update={"limits": own.over(spec.task.limits)})
        self._outer: AnyEnv = environment or make_env(
            self.task,
            oracle=spec.oracle,
            tools=agent.tools_in(self.task.regime),
            sandbox=sandbox,
            trusted=trusted,
            eval_on_submit=spec.eval_on_submit,
        )
        self.environment = cast("DebugEnv", self._outer.unwrapped)
        self.messages: list[Message] = []
        self.steps: list[Step] = []
        self.usage = Usage()
        self.stop: StopReason | None = None
        self.reward: float | None = 0.0
        """The reward of the last call; None if there is none, for a reason outside the patch."""
        self.verdict: Verdict | None = None
        """The verdict on what was submitted, if there is any."""
        self.context_pack: ContextPack | None = None
        self._cost_usd = own.cost_usd
        self._perform = perform or (lambda env, call: env.step(call))
        self._info: EnvironmentInfo | None = None
        self._used: Counter[str] = Counter()
        self._facts = FactReader()
        """Numbers the facts that are shown. `report` counts them anew, in `Toolbox.history`, to find those that are
        cited: both must read the same observations in the same order."""
        self._turn_of_call: list[int] = []
        """The turn of each call that was carried out."""
        self._idle_turns = 0
        self._elided = 0
        self._started = self._asked = time.monotonic()

    @property
    def info(self) -> EnvironmentInfo:
        """What the environment offers; the first request starts it."""
        assert self._info is not None, "next_request() starts the episode"
        return self._info

    def start(self, options: dict[str, Any] | None = None) -> None:
        """Starts the environment, with the options of its `reset`; otherwise, the first request does.

        Raises SandboxError, TaskError and ConfigError if it cannot be started.
        """
        self._started = time.monotonic()
        self._outer.reset(seed=self.spec.seed % 2**32, options=options)
        self._info = self.environment.describe()
        self.messages += self.agent.opening(self.task, self._info.schemas)

    def next_request(self) -> Request | None:
        """What the policy is asked next; None once the episode is over. The first one starts the environment.

        Raises SandboxError, TaskError and ConfigError if that cannot be started.
        """
        if self.stop is not None:
            return None
        self._asked = time.monotonic()
        if self._info is None:
            self.start()
            self._asked = self._started
        offered = self.offered()
        if self.agent.context_tokens is not None:
            self._elided = elision_point(self.messages, offered, self.agent.context_tokens, self._elided)
        messages = elide(self.messages, self._elided)
        if self.agent.as_text:
            return Request(tuple(as_text_messages(messages, offered)), ())
        return Request(tuple(messages), offered)

    def accept(self, completion: Completion) -> Step:
        """Takes in the policy's turn: carries out its calls in order, or answers that there were none.

        Calls after the one that ended the episode are refused. If a call raises, the turn has not happened. Raises
        SandboxError if the sandbox broke.
        """
        assert self.stop is None, "the episode is over"
        offered = self.offered()
        completion = self.read(completion)
        observations, reward = self._act(completion.tool_calls, offered)
        step = self._step(completion, observations, reward)
        self.messages += [completion.as_message(), *self._answers(completion, observations, offered)]
        self.steps.append(step)
        self.usage = self.usage + completion.usage
        self._idle_turns = 0 if completion.tool_calls else self._idle_turns + 1
        self.stop = self.stop or self._reached_limit()
        return step

    def read(self, completion: Completion) -> Completion:
        """The completion, with the calls that its text holds if the agent writes them there."""
        if not self.agent.as_text or completion.tool_calls:
            return completion
        offered = {schema.name for schema in self.offered()}
        return read_turn(completion, prefix=f"call-{len(self.steps)}", offered=offered)

    def decision(self, completion: Completion) -> Decision | None:
        """What a turn is for: the kind of the last existing tool that it called; None if it called none."""
        known = self.info.decisions
        kinds = [known[call.name] for call in self.read(completion).tool_calls if call.name in known]
        return kinds[-1] if kinds else None

    def snapshot(self) -> EpisodeSnapshot | None:
        """Keeps the episode between a request and its answer; None if the environment cannot be fully restored.

        Raises SandboxError if the sandbox broke.
        """
        name = self.environment.snapshot()
        if not self.environment.is_whole(name):
            return None
        return EpisodeSnapshot(
            environment=name,
            messages=tuple(self.messages),
            steps=tuple(self.steps),
            usage=self.usage,
            used=self._used.copy(),
            idle_turns=self._idle_turns,
            elided=self._elided,
            elapsed_s=time.monotonic() - self._started,
        )

    def restore(self, kept: EpisodeSnapshot, spec: EpisodeSpec) -> None:
        """Goes back to a snapshot and continues from there as another episode of the same task: that of `spec`.

        Raises SandboxError if the sandbox broke.
        """
        self.environment.restore(kept.environment)
        self.spec = spec
        self.messages, self.steps = list(kept.messages), list(kept.steps)
        self.usage, self._used = kept.usage, kept.used.copy()
        self._idle_turns, self._elided = kept.idle_turns, kept.elided
        del self._turn_of_call[kept.used.total() :]
        self._facts = FactReader()
        for step in self.steps:
            for observation in step.observations:
                self._facts.read(step.index, observation)
        self._started = time.monotonic() - kept.elapsed_s
        self.stop, self.reward, self.verdict, self.context_pack = None, 0.0, None, None

    def answers(self) -> tuple[Message, ...]:
        """The messages that answered the last turn: one for each call, or a nudge."""
        return tuple(self.messages[self.steps[-1].message_index + 1 :]) if self.steps else ()

    def end(self, reason: StopReason) -> None:
        """Ends the episode for a reason outside it, such as a conversation that is too long."""
        self.stop = self.stop or reason

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        self._outer.close()

    def offered(self) -> tuple[ToolSchema, ...]:
        """The tools that the next turn may call."""
        return self.agent.offered(self.info.schemas, self._used)

    def _act(self, calls: Sequence[ToolCall], offered: Sequence[ToolSchema]) -> tuple[tuple[Observation, ...], float]:
        observations: list[Observation] = []
        reward = 0.0
        for call in calls:
            if self.stop is not None:
                observations.append(_refusal(call, NOT_RUN, "not run: the episode was over"))
                continue
            observation, gained = self._call(call, {schema.name for schema in offered})
            observations.append(observation)
            reward += gained
        return tuple(observations), reward

    def _call(self, call: ToolCall, offered: set[str]) -> tuple[Observation, float]:
        if call.name not in offered and call.name in self.info.decisions:
            needed, count = self.agent.unlocked_by[call.name]
            return _refusal(call, "locked_tool", f"error: {call.name} can be used after {count} calls of {needed}"), 0.0
        self._turn_of_call.append(len(self.steps))
        _, reward, _, _, info = self._perform(self._outer, call)
        self._used[call.name] += 1
        self.stop = info["stop"]
        self.reward = _measured(float(reward))
        self.verdict = info.get("verdict")
        pack = info.get("context_pack")
        self.context_pack = None if pack is None else self._by_turn(pack)
        return info["observation"], float(reward)

    def _by_turn(self, pack: ContextPack) -> ContextPack:
        """The pack whose findings name turns as their steps; the environment, which knows no turns, counts calls."""
        findings = (one.model_copy(update={"step": self._turn_of_call[one.step]}) for one in pack.findings)
        return pack.model_copy(update={"findings": tuple(findings)})

    def _answers(
        self, completion: Completion, observations: Sequence[Observation], offered: Sequence[ToolSchema]
    ) -> list[Message]:
        if not completion.tool_calls:
            return [Message(role="user", content=nudge(offered, self._why_no_call(completion), self._used))]
        seen = self.steps[-1] if self.steps else None
        step = len(self.steps)
        return [
            tool_message(
                step,
                observation,
                call,
                self._facts.read(step, observation),
                again=_was_made(call, observation, seen),
            )
            for call, observation in zip(completion.tool_calls, observations, strict=True)
        ]

    def _why_no_call(self, completion: Completion) -> str:
        if completion.finish_reason == "length":
            return CUT_OFF
        unknown = bare_name(completion.text)
        if unknown is not None:
            return f"There is no tool called {unknown[:80]!r}."
        before = self.steps[-1].completion if self.steps else None
        same = before is not None and not before.tool_calls and before.text == completion.text
        return SAME if same else NO_CALL

    def _step(self, completion: Completion, observations: tuple[Observation, ...], reward: float) -> Step:
        stated = parse_decision(completion.text)
        return Step(
            index=len(self.steps),
            message_index=len(self.messages),
            decision=self.decision(completion),
            stated=stated.decision,
            rationale=stated.rationale,
            confidence=stated.confidence,
            completion=completion,
            observations=observations,
            elided=self._elided,
            reward=_measured(reward),
            started_at=self._asked - self._started,
            duration_s=time.monotonic() - self._asked,
        )

    def _reached_limit(self) -> StopReason | None:
        limits, usage = self.task.limits, self.usage
        if self._idle_turns >= self.agent.nudges:
            return StopReason.NO_TOOL_CALL
        if len(self.steps) >= limits.steps:
            return StopReason.STEP_LIMIT
        if limits.tokens is not None and usage.tokens >= limits.tokens:
            return StopReason.TOKEN_LIMIT
        if self._cost_usd is not None and (usage.cost_usd or 0.0) >= self._cost_usd:
            return StopReason.COST_LIMIT
        if limits.wall_s is not None and time.monotonic() - self._started >= limits.wall_s:
            return StopReason.WALL_LIMIT
        return None


def _measured(reward: float) -> float | None:
    return None if math.isnan(reward) else reward


def _was_made(call: ToolCall, observation: Observation, step: Step | None) -> bool:
    """Whether a step made the same call and got the same answer, to no purpose: a debugger may stop there again."""
    pairs = zip(step.tool_calls, step.observations, strict=False) if step is not None else ()
    return call.name != DEBUGGER and any(
        (one.name, one.arguments, seen.text) == (call.name, call.arguments, observation.text) for one, seen in pairs
    )


def _refusal(call: ToolCall, kind: str, message: str) -> Observation:
    return Observation(tool=call.name, text=message, failure=Failure(kind=kind, message=message))
