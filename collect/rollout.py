"""One episode: an agent in front of one task, from the first message to the finished trajectory."""

from __future__ import annotations

import datetime
import hashlib
import platform
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from gumshoe import __version__
from gumshoe.collect.agent import Agent, nudge
from gumshoe.collect.chat import as_text_messages
from gumshoe.collect.config import LimitsConfig
from gumshoe.collect.control import Control
from gumshoe.collect.decisions import parse_decision
from gumshoe.collect.elision import boundary, shown
from gumshoe.collect.journal import Journal
from gumshoe.collect.observed import tool_message
from gumshoe.collect.places import Here, Place
from gumshoe.collect.waiting import unless_aborted
from gumshoe.env.config import SandboxConfig
from gumshoe.env.grading import without_tests
from gumshoe.errors import ContextOverflow, SandboxError
from gumshoe.protocols import Policy
from gumshoe.records import (
    Completion,
    ContextPack,
    Decision,
    Failure,
    Limits,
    Message,
    Observation,
    Oracle,
    PolicyInfo,
    Provenance,
    Score,
    Step,
    StopReason,
    Task,
    TaskRef,
    ToolCall,
    ToolSchema,
    Trajectory,
    Usage,
)
from gumshoe.tools.text_calls import split_text_calls

__all__ = ["Episode", "Rollout"]

NO_CALL = "You called no tool."
CUT_OFF = "Your answer reached its length limit before a tool call was complete."


@dataclass(frozen=True)
class Episode:
    """One episode to be played: a task, its oracle, which sample of it, the seed of its choices."""

    task: Task
    oracle: Oracle | None
    sample: int
    seed: int
    run: str = ""

    @property
    def id(self) -> str:
        """The trajectory's id: the same for the same task, sample and run config."""
        digest = hashlib.sha256(f"{self.run}\n{self.task.hash}\n{self.sample}\n{self.seed}".encode()).hexdigest()
        return f"{self.task.id}#{self.sample}.{digest[:12]}"


class Rollout:
    """Plays one episode. `run` may be called once.

    Args:
        episode: what is played.
        agent: tools and prompts.
        policy: who decides.
        sandbox: what programs run in.
        place: where that is; default this process.
        limits: limits that replace the task's own.
        journal: keeps completions before they are acted on, and gives back those of a killed process.
        control: says when to stop, counts what is used.
        worker: the worker's name, for progress.
    """

    def __init__(
        self,
        episode: Episode,
        agent: Agent,
        policy: Policy,
        *,
        sandbox: SandboxConfig,
        place: Place | None = None,
        limits: LimitsConfig | None = None,
        journal: Journal | None = None,
        control: Control | None = None,
        worker: str = "worker",
    ) -> None:
        self._episode = episode
        self._agent = agent
        self._policy = policy
        self._limits = limits or LimitsConfig()
        self._task = _limited(episode.task, self._limits)
        self._journal = journal
        self._control = control or Control()
        self._worker = worker
        self._place = place or Here()
        self._sandbox = sandbox
        self._env = self._place.environment(self._task, agent.tools, sandbox, trusted=policy.trusted)
        self._messages: list[Message] = []
        self._steps: list[Step] = []
        self._used: Counter[str] = Counter()
        self._usage = Usage()
        self._idle = 0
        self._elided = 0
        self._stop: StopReason | None = None
        self._reward = 0.0
        self._pack: ContextPack | None = None

    def run(self) -> Trajectory:
        """Plays it to its end.

        Raises:
            SandboxError, TaskError, PolicyError: the infrastructure failed.
            ConfigError: the sandbox does not take this policy.
            Diverged: the journal's replay did not give the recorded observations.
            Interrupted: the run stops.
        """
        self._started = time.monotonic()
        try:
            self._opening = self._env.reset(self._episode.seed % 2**32)
            self._schemas = self._opening.schemas
            self._messages += self._agent.opening(self._task, self._schemas, self._opening.instructions)
            while self._stop is None:
                self._turn()
            return self._trajectory()
        finally:
            self._env.close()

    def _turn(self) -> None:
        """Query the policy, execute the calls, remember both."""
        self._control.check()
        began = time.monotonic()
        offered = self._agent.offered(self._schemas, self._used)
        if self._agent.context_tokens is not None:
            self._elided = boundary(self._messages, offered, self._agent.context_tokens, self._elided)
        try:
            completion = self._decide(offered)
        except ContextOverflow:
            self._stop = StopReason.CONTEXT_OVERFLOW
            return
        message_index = len(self._messages)
        self._messages.append(completion.as_message())
        observations, reward = self._act(completion, offered)
        self._remember(completion, observations, message_index, reward, began)
        self._check_limits(completion)

    def _decide(self, offered: Sequence[ToolSchema]) -> Completion:
        completion = self._journal.recorded() if self._journal else None
        if completion is None:
            completion = self._ask(shown(self._messages, self._elided), offered)
            if self._journal:
                self._journal.decide(completion)
        self._control.spend(completion.usage)
        self._usage = self._usage + completion.usage
        return completion

    def _ask(self, messages: Sequence[Message], offered: Sequence[ToolSchema]) -> Completion:
        if not self._agent.as_text:
            return self._complete(messages, offered)
        answer = self._complete(as_text_messages(messages, offered), ())
        if answer.tool_calls:
            return answer
        text, calls = split_text_calls(answer.text, prefix=f"call-{len(self._steps)}")
        return answer.model_copy(update={"text": text, "tool_calls": calls})

    def _complete(self, messages: Sequence[Message], offered: Sequence[ToolSchema]) -> Completion:
        if self._policy.trusted:  # A script, which answers at once, or a person, who is at this terminal.
            return self._policy.complete(messages, offered)
        return unless_aborted(self._control, lambda: self._policy.complete(messages, offered))

    def _act(self, completion: Completion, offered: Sequence[ToolSchema]) -> tuple[tuple[Observation, ...], float]:
        """Runs the calls in order; those behind the one that ended the episode are not run."""
        observations: list[Observation] = []
        reward = 0.0
        for call in completion.tool_calls:
            if self._stop is None:
                observation, gained = self._call(call, offered)
                reward += gained
            else:
                observation = _refusal(call, "episode_over", "not run: the episode was over")
            observations.append(observation)
            self._messages.append(
                tool_message(len(self._steps), observation.text, call_id=call.id, tool=observation.tool or call.name)
            )
        if not completion.tool_calls:
            reason = CUT_OFF if completion.finish_reason == "length" else NO_CALL
            self._messages.append(Message(role="user", content=nudge(offered, reason)))
        if self._journal:
            self._journal.observe(observations)
        return tuple(observations), reward

    def _call(self, call: ToolCall, offered: Sequence[ToolSchema]) -> tuple[Observation, float]:
        known = {schema.name for schema in offered}
        if call.name not in known and call.name in self._opening.decisions:
            needed, count = self._agent.unlocked_by[call.name]
            return _refusal(call, "locked_tool", f"error: {call.name} can be used after {count} calls of {needed}"), 0.0
        outcome = unless_aborted(self._control, lambda: self._env.step(call), self._give_up)
        self._used[call.name] += 1
        self._stop = outcome.stop
        self._reward = outcome.reward
        self._pack = outcome.context_pack
        return outcome.observation, outcome.reward

    def _give_up(self) -> None:
        with suppress(SandboxError):
            self._env.give_up()

    def _remember(
        self,
        completion: Completion,
        observations: tuple[Observation, ...],
        message_index: int,
        reward: float,
        began: float,
    ) -> None:
        stated = parse_decision(completion.text)
        self._steps.append(
            Step(
                index=len(self._steps),
                message_index=message_index,
                decision=self._kind(completion.tool_calls),
                stated=stated.decision,
                rationale=stated.rationale,
                confidence=stated.confidence,
                completion=completion,
                observations=observations,
                elided=self._elided,
                reward=reward,
                started_at=began - self._started,
                duration_s=time.monotonic() - began,
            )
        )
        tools = ", ".join(call.name for call in completion.tool_calls) or "nothing"
        self._control.step(self._worker, f"{self._task.id} step {len(self._steps)}: {tools}")

    def _kind(self, calls: Sequence[ToolCall]) -> Decision | None:
        """The kind of the last tool called that exists; None where none was."""
        known = self._opening.decisions
        kinds = [known[call.name] for call in calls if call.name in known]
        return kinds[-1] if kinds else None

    def _check_limits(self, completion: Completion) -> None:
        self._idle = 0 if completion.tool_calls else self._idle + 1
        if self._stop is not None:
            return
        tokens, wall_s, cost = self._task.limits.tokens, self._task.limits.wall_s, self._limits.cost_usd
        if self._idle >= self._agent.nudges:
            self._stop = StopReason.NO_TOOL_CALL
        elif len(self._steps) >= self._task.limits.steps:
            self._stop = StopReason.STEP_LIMIT
        elif tokens is not None and self._usage.prompt_tokens + self._usage.completion_tokens >= tokens:
            self._stop = StopReason.TOKEN_LIMIT
        elif cost is not None and (self._usage.cost_usd or 0.0) >= cost:
            self._stop = StopReason.COST_LIMIT
        elif wall_s is not None and time.monotonic() - self._started >= wall_s:
            self._stop = StopReason.WALL_LIMIT

    def _trajectory(self) -> Trajectory:
        assert self._stop is not None
        patch = self._final_patch()
        return Trajectory(
            id=self._episode.id,
            task=task_ref(self._episode.task),
            policy=PolicyInfo(kind=self._policy.kind, model=self._policy.model, agent=self._agent.kind),
            tools=self._schemas,
            messages=tuple(self._messages),
            steps=tuple(self._steps),
            stop=self._stop,
            patch=patch,
            context_pack=self._pack,
            scores=self._scores(patch),
            usage=self._usage,
            provenance=self._provenance(),
        )

    def _scores(self, patch: str) -> tuple[Score, ...]:
        """Whether the tests pass now. An agent that cannot edit is not scored."""
        if self._task.regime != "debug":
            return (self._graded(patch),)
        if self._stop is StopReason.SUBMITTED:
            return (Score(name="resolved", value=self._reward, explanation="tests run at submit"),)
        if "rewrite" not in self._opening.decisions and not patch:
            return ()
        passed = bool(patch) and self._env.tests_pass()
        return (Score(name="resolved", value=float(passed), explanation="tests run at the end of the episode"),)

    def _final_patch(self) -> str:
        """What the agent has changed, without the files of tests that it does not know."""
        patch, oracle = self._env.patch(), self._episode.oracle
        return patch if self._task.regime == "debug" or oracle is None else without_tests(patch, oracle)

    def _graded(self, patch: str) -> Score:
        """What the hidden tests say, in a sandbox of their own; the names of the tests are not told."""
        oracle = self._episode.oracle
        if oracle is None or "rewrite" not in self._opening.decisions:
            return Score(name="resolved", value=None, explanation="the tests are hidden from this workspace")
        found = self._place.grade(self._task, oracle, patch, self._sandbox)
        if found.outcome == "error":
            return Score(name="resolved", value=None, explanation=found.explanation)
        return Score(name="resolved", value=float(found.resolved), explanation=f"hidden tests: {found.outcome}")

    def _provenance(self) -> Provenance:
        return Provenance(
            gumshoe=__version__,
            python=platform.python_version(),
            sandbox=self._opening.sandbox,
            image_digest=self._opening.image_digest,
            config_hash=self._episode.run,
            seed=self._episode.seed,
            created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )


def task_ref(task: Task) -> TaskRef:
    """Which task a trajectory is about, without the task itself."""
    return TaskRef(id=task.id, hash=task.hash, source=task.source, regime=task.regime, tags=task.tags)


def _limited(task: Task, limits: LimitsConfig) -> Task:
    own = task.limits.model_dump()
    given = {name: value for name, value in limits.model_dump().items() if name in own and value is not None}
    return task.model_copy(update={"limits": Limits(**{**own, **given})})


def _refusal(call: ToolCall, kind: str, message: str) -> Observation:
    return Observation(tool=call.name, text=message, failure=Failure(kind=kind, message=message))
