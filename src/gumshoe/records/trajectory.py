"""What is kept of an episode."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from gumshoe.records.acting import Completion, Decision, Message, Observation, StopReason, ToolCall, ToolSchema, Usage
from gumshoe.records.base import SCHEMA_VERSION, Record
from gumshoe.records.context_pack import ContextPack

Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class Step(Record):
    """One observation-decision-action turn.

    What the agent saw before it decided is `messages[:message_index]` of the trajectory; `observations` are the
    answers to `tool_calls`, in order. `stated` is the decision that the model's text stated (None where it stated
    none); `decision` is the kind of the tools it called.
    """

    index: int = Field(ge=0)
    message_index: int = Field(ge=0, description="position of this turn's assistant message in the trajectory")
    decision: Decision | None = None
    stated: Decision | None = None
    rationale: str | None = None
    confidence: Probability | None = None
    completion: Completion
    observations: tuple[Observation, ...] = ()
    elided: int = Field(
        default=0, ge=0, description="tool messages at positions below it were shown without their text"
    )
    reward: float = 0.0
    started_at: float = Field(default=0.0, ge=0, description="seconds since the episode began")
    duration_s: float = Field(default=0.0, ge=0)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the policy made in this step."""
        return self.completion.tool_calls


class Score(Record):
    """One measured value. `value` is None when it could not be measured: unscored is never 0."""

    name: str
    value: float | None
    explanation: str = ""


class TaskRef(Record):
    """Which task a trajectory is about."""

    id: str
    hash: str
    source: str
    regime: Literal["debug", "issue"]
    tags: dict[str, str] = Field(default_factory=dict)


class PolicyInfo(Record):
    """Who decided."""

    kind: str = Field(description="policy kind, such as teacher, openai or replay")
    model: str = ""
    agent: str = Field(default="debug", description="agent configuration: debug, rewrite, debug_5, seeker")


class Provenance(Record):
    """What was running when the trajectory was made."""

    gumshoe: str
    python: str
    sandbox: str = Field(description="backend name")
    image_digest: str | None = None
    config_hash: str = ""
    seed: int = 0
    created_at: str = Field(default="", description="UTC, ISO 8601")


class BranchPoint(Record):
    """Where a trajectory of a tree leaves the one that it branched from: its steps before `step` are its parent's."""

    parent: str = Field(description="id of the trajectory that it branched from")
    step: int = Field(ge=0, description="index of the first step of its own")


class Trajectory(Record):
    """One finished episode."""

    schema_version: Literal[1] = SCHEMA_VERSION
    id: str
    task: TaskRef
    policy: PolicyInfo
    tools: tuple[ToolSchema, ...]
    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    stop: StopReason
    patch: str = ""
    context_pack: ContextPack | None = None
    scores: tuple[Score, ...] = ()
    errors: tuple[str, ...] = ()
    tampering: tuple[str, ...] = Field(
        default=(), description="what was done to the tests' configuration, the test runner or the sandbox, as facts"
    )
    usage: Usage = Usage()
    provenance: Provenance
    branch: BranchPoint | None = Field(default=None, description="of an episode that began in the middle of another")

    @field_validator("messages", mode="after")
    @classmethod
    def _without_observations(cls, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The steps hold the observations; they are kept once."""
        return tuple(
            message if message.observation is None else message.model_copy(update={"observation": None, "facts": ()})
            for message in messages
        )

    @property
    def own_steps(self) -> tuple[Step, ...]:
        """The steps that no other trajectory of its tree holds already."""
        return self.steps if self.branch is None else self.steps[self.branch.step :]

    @property
    def own_usage(self) -> Usage:
        """What its own steps used."""
        if self.branch is None:
            return self.usage
        return sum((step.completion.usage for step in self.own_steps), Usage())

    def score(self, name: str) -> float | None:
        """The value of the score called `name`; None where it was not measured."""
        return next((score.value for score in self.scores if score.name == name), None)

    @property
    def resolved(self) -> bool | None:
        """Whether the final patch makes the tests pass; None where that was not measured."""
        value = self.score("resolved")
        return None if value is None else value == 1.0
