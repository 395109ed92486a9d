"""What a policy and its tools exchange: messages, calls, observations, completions; and what is kept of an episode."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, field_validator

from gumshoe.records.base import SCHEMA_VERSION, Record, TimedRecord
from gumshoe.records.context_pack import ContextPack, Fact
from gumshoe.text import escape, escape_json, unescape, unescape_json

Probability = Annotated[float, Field(ge=0.0, le=1.0)]


class Decision(StrEnum):
    """What a turn is for, and so the role of the tools that it calls.

    A tool with the role `submit` or `report` ends the episode when a call of it succeeds.
    """

    SEEK = "seek"
    EDIT = "edit"
    VERIFY = "verify"
    REPORT = "report"
    SUBMIT = "submit"


class StopReason(StrEnum):
    """Why an episode ended."""

    SUBMITTED = "submitted"
    REPORTED = "reported"
    STEP_LIMIT = "step_limit"
    CALL_LIMIT = "call_limit"
    TOKEN_LIMIT = "token_limit"
    COST_LIMIT = "cost_limit"
    WALL_LIMIT = "wall_limit"
    CONTEXT_OVERFLOW = "context_overflow"
    NO_TOOL_CALL = "no_tool_call"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # for a trajectory from elsewhere whose format does not say


class ToolSchema(Record):
    """A tool as a model sees it: name, description and a JSON schema of its parameters."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    decision: Decision | None = Field(
        default=None, description="the tool's role, which no model sees; null for a tool from elsewhere"
    )

    def as_openai(self) -> dict[str, Any]:
        """The tool in the form of the OpenAI chat API (also what chat templates read), control tokens escaped."""
        return {"type": "function", "function": escape_json(self.model_dump(exclude={"decision"}))}


class ToolCall(Record):
    """One call that a policy asked for. With `parse_error` set, `arguments` is empty and nothing may be run."""

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    parse_error: str | None = Field(default=None, description="why the model's text could not be read as a call")
    raw: str | None = Field(default=None, description="the text that could not be read, as the model wrote it")

    def escaped(self) -> ToolCall:
        """The call with control tokens and tags in its arguments escaped."""
        raw = None if self.raw is None else escape(self.raw, tags=True)
        return self.model_copy(update={"arguments": escape_json(self.arguments, tags=True), "raw": raw})

    def unescaped(self) -> ToolCall:
        """The call as it was before `escaped`."""
        raw = None if self.raw is None else unescape(self.raw)
        return self.model_copy(update={"arguments": unescape_json(dict(self.arguments)), "raw": raw})

    @property
    def asks(self) -> str:
        """A canonical text, equal for calls that ask for the same thing."""
        arguments: Any = self.arguments
        return f"{self.name} {json.dumps(arguments, sort_keys=True)}"


class Failure(Record):
    """A `ToolFailure` as data."""

    kind: str
    message: str


class Observation(TimedRecord):
    """What came back from one tool call. `text` is what the model reads; `data` holds the same facts structured."""

    tool: str
    text: str
    data: dict[str, JsonValue] = Field(default_factory=dict)
    failure: Failure | None = None
    truncated: bool = Field(default=False, description="the text was cut to its cap; head and tail were kept")
    duration_s: float = Field(default=0.0, ge=0)


class Usage(Record):
    """Tokens, money and time of one or several completions. Cost is None where no price is known."""

    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    duration_s: float = Field(default=0.0, ge=0)

    @property
    def tokens(self) -> int:
        """Tokens of prompts and completions together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """The sum; the cost is known where either side knows it."""
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost_usd=sum(costs) if costs else None,
            duration_s=self.duration_s + other.duration_s,
        )


class Message(Record):
    """One chat message. Assistant messages may carry `tool_calls`; tool messages answer one by `tool_call_id`."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = Field(default=None, description="of a tool message: the tool that answered")
    reasoning: str | None = Field(default=None, description="reasoning the provider gave apart from the answer")
    observation: Observation | None = Field(
        default=None, exclude=True, repr=False, description="of a tool message, while the episode goes on; never stored"
    )
    facts: tuple[Fact, ...] = Field(
        default=(), exclude=True, repr=False, description="those that the text shows, in its order; never stored"
    )

    def escaped(self) -> Message:
        """The message with its control tokens escaped, so that servers and training read them as plain text."""
        return self.model_copy(
            update={
                "content": escape(self.content, tags=self.role == "tool"),
                "reasoning": None if self.reasoning is None else escape(self.reasoning),
                "tool_calls": tuple(call.escaped() for call in self.tool_calls),
            }
        )

    def as_openai(self, *, arguments_as_text: bool = True) -> dict[str, Any]:
        """The message in the form of the OpenAI chat API, with its control tokens escaped.

        Args:
            arguments_as_text: the API wants the arguments of a call as JSON text; chat templates want an object.
        """
        escaped = self.escaped()
        message: dict[str, Any] = {"role": self.role, "content": escaped.content}
        if escaped.reasoning is not None:
            message["reasoning_content"] = escaped.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": json.dumps(call.arguments) if arguments_as_text else call.arguments,
                    },
                }
                for call in escaped.tool_calls
            ]
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.name is not None:
            message["name"] = self.name
        return message


class Completion(Record):
    """One answer of a policy."""

    text: str
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"] = "stop"
    usage: Usage = Usage()
    model: str = ""
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None

    def unescaped(self) -> Completion:
        """What the model meant: text that it copied from an escaped conversation is as it was."""
        return self.model_copy(
            update={
                "text": unescape(self.text),
                "reasoning": None if self.reasoning is None else unescape(self.reasoning),
                "tool_calls": tuple(call.unescaped() for call in self.tool_calls),
            }
        )

    def as_message(self) -> Message:
        """The assistant message that goes into the history."""
        return Message(role="assistant", content=self.text, tool_calls=self.tool_calls, reasoning=self.reasoning)


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
    reward: float | None = Field(default=0.0, description="None if no verdict could be reached")
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

    @property
    def project(self) -> str:
        """The repository that the task is about; a task without one is a project of its own."""
        return self.tags.get("project") or self.id


class PolicyInfo(Record):
    """Who decided."""

    kind: str = Field(description="policy kind, such as teacher, openai or replay")
    model: str = ""
    agent: str = Field(default="debug", description="agent kind: debug, rewrite, debug_5, seeker or react")


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
    errors: tuple[str, ...] = Field(
        default=(), description="what went wrong besides, for the viewer to show; `gumshoe collect` leaves it empty"
    )
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
