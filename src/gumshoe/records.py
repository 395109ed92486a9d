"""The frozen records: what is stored, sent and compared. Data only, no behaviour beyond derived values.

Everything that is written to disk carries `schema_version`. Facts are stored, values that follow from them are
properties. Sequences are tuples so that a record cannot be changed once it is made.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, field_validator, model_validator

__all__ = [
    "SCHEMA_VERSION",
    "BranchPoint",
    "Check",
    "Completion",
    "ContextPack",
    "DebugFrame",
    "Decision",
    "Edit",
    "ExecResult",
    "Failure",
    "Finding",
    "Limits",
    "Location",
    "Message",
    "Observation",
    "Oracle",
    "PolicyInfo",
    "Probe",
    "Provenance",
    "Record",
    "RuledOut",
    "Score",
    "Step",
    "StopProbe",
    "StopReason",
    "Task",
    "TaskRef",
    "TestOutcome",
    "ToolCall",
    "ToolSchema",
    "Trajectory",
    "Usage",
    "WhatIfProbe",
    "WorkspaceSpec",
]

SCHEMA_VERSION = 1
CALLS_PER_TURN = 10

Text = Annotated[str, StringConstraints(strip_whitespace=False)]
Probability = Annotated[float, Field(ge=0.0, le=1.0)]
LineNumber = Annotated[int, Field(ge=1)]


class Record(BaseModel):
    """Base of all records: frozen, closed to unknown fields, NaN and infinity refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TimedRecord(Record):
    """Base of the records of something that took time. Two of them are equal when all but `duration_s` is equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(tuple(self._compared().items()))

    def _compared(self) -> dict[str, Any]:
        return {name: value for name, value in self if name != "duration_s"}


# --- tasks ------------------------------------------------------------------------------------------------------


class WorkspaceSpec(Record):
    """Where the repository comes from: a folder on this machine, or a container image.

    `overlay` maps relative paths to file contents that replace those of the folder or image; None deletes the path, in
    a folder on this machine also a folder with all that it holds. A task made by changing one line of a known project
    is its path plus one overlay entry.
    """

    path: str | None = Field(default=None, description="folder on this machine that is copied into the sandbox")
    content: str | None = Field(default=None, description="digest of the folder's files, whose place may differ")
    image: str | None = Field(default=None, description="container image that holds the repository")
    workdir: str = Field(default="/workspace", description="root of the repository inside the sandbox")
    overlay: dict[str, str | None] = Field(default_factory=dict, description="files laid over it; None deletes")
    environment: str | None = Field(
        default=None, description="name of the environment that stands at /environment (see gumshoe harvest)"
    )
    activate: str = Field(
        default="", description="bash code run once; the variables that it sets hold for every program in the sandbox"
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.path is None and self.image is None:
            raise ValueError("a workspace needs a path or an image")
        return self


class Limits(Record):
    """How much an episode may use. None means no limit."""

    steps: int = Field(default=40, ge=1, description="turns of the agent, however many calls each makes")
    calls: int | None = Field(
        default=None, ge=1, description="tool calls of the whole episode; null: ten for each turn that is allowed"
    )
    command_timeout_s: float = Field(default=300.0, gt=0, description="seconds one tool call may take")
    wall_s: float | None = Field(default=None, gt=0, description="seconds the whole episode may take")
    tokens: int | None = Field(default=None, ge=1, description="tokens the policy may use, prompt and completion")

    @property
    def max_calls(self) -> int:
        """How many tool calls the episode may make."""
        return self.calls if self.calls is not None else self.steps * CALLS_PER_TURN


class Task(Record):
    """What the agent may know about a task, and nothing else. The answer is in `Oracle`, which travels apart."""

    id: str = Field(min_length=1)
    source: str = Field(min_length=1, description="task source that made it, such as casebook or synth")
    problem_statement: str
    workspace: WorkspaceSpec
    entrypoint: tuple[str, ...] = Field(min_length=1, description="argv that runs the tests")
    debug_entrypoint: tuple[str, ...] | None = Field(default=None, description="argv to debug; None: the entrypoint")
    setup: tuple[tuple[str, ...], ...] = Field(default=(), description="commands run once before the episode")
    ignore: tuple[str, ...] = Field(default=(), description="gitignore patterns the agent cannot see")
    readonly: tuple[str, ...] = Field(default=(), description="gitignore patterns the agent cannot write")
    limits: Limits = Limits()
    regime: Literal["debug", "issue"] = Field(
        default="debug", description="debug: the failing tests are in the workspace"
    )
    tags: dict[str, str] = Field(default_factory=dict, description="facts to group by: project, operator, split")

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the canonical JSON of the task, without `tags`; where a digest of the folder's files is
        known, also without the folder's place.
        """
        placed = self if self.workspace.content is None else self._without_place()
        return hashlib.sha256(placed.model_dump_json(exclude={"tags"}).encode()).hexdigest()

    def _without_place(self) -> Task:
        return self.model_copy(update={"workspace": self.workspace.model_copy(update={"path": ""})})


class Oracle(Record):
    """The answer to a task. Only scorers and the scripted teacher see it; it never enters a sandbox."""

    task_id: str
    gold_patch: str = Field(description="unified diff that repairs the workspace")
    test_patch: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()


# --- acting -----------------------------------------------------------------------------------------------------


class Decision(StrEnum):
    """What a turn is for."""

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
    UNKNOWN = "unknown"  # of a trajectory from elsewhere, whose format does not say


class ToolSchema(Record):
    """A tool as a model sees it: name, description and a JSON schema of its parameters."""

    name: str
    description: str
    parameters: dict[str, JsonValue]

    def as_openai(self) -> dict[str, Any]:
        """The tool in the form of the OpenAI chat API (also what chat templates read)."""
        return {"type": "function", "function": self.model_dump()}


class ToolCall(Record):
    """One call that a policy asked for. With `parse_error` set, `arguments` is empty and nothing may be run."""

    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    parse_error: str | None = Field(default=None, description="why the model's text could not be read as a call")
    raw: str | None = Field(default=None, description="the text that could not be read, as the model wrote it")


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

    def as_openai(self, *, arguments_as_text: bool = True) -> dict[str, Any]:
        """The message in the form of the OpenAI chat API.

        Args:
            arguments_as_text: the API wants the arguments of a call as JSON text; chat templates want an object.
        """
        import json

        message: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
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
                for call in self.tool_calls
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

    def as_message(self) -> Message:
        """The assistant message that goes into the history."""
        return Message(role="assistant", content=self.text, tool_calls=self.tool_calls, reasoning=self.reasoning)


# --- running programs -------------------------------------------------------------------------------------------


class ExecResult(TimedRecord):
    """What a program run in a sandbox did. `output` is stdout and stderr as they came, decoded with replacement."""

    exit_code: int | None = Field(description="None when it was killed for taking too long")
    output: str
    duration_s: float = Field(ge=0)
    timed_out: bool = False
    truncated: bool = False
    warm: bool = Field(default=False, description="it was a fork of the sandbox's test server")
    cold: str | None = Field(default=None, description="why it was not, where it was to be")


class DebugFrame(Record):
    """One stack frame of a stopped program, innermost last. `path` is relative to the workspace where it is in it."""

    path: str
    line: LineNumber = Field(lt=1 << 31)
    function: str
    code: str = ""
    local_values: dict[str, str] = Field(default_factory=dict, description="name to repr, shortened")


class TestOutcome(Record):
    """The outcome of one test. `xfailed` counts as passed, as in SWE-bench."""

    __test__ = False

    id: str
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
    message: str = Field(default="", description="the exception, or why the test was skipped")
    title: str = Field(default="", description="first line of its docstring, where the runner names it by that")
    frames: tuple[DebugFrame, ...] = Field(
        default=(), description="frames of the project that the exception went through, innermost last"
    )

    @property
    def passed(self) -> bool:
        return self.outcome in {"passed", "xfailed"}


class Edit(Record):
    """One change of a file in the workspace. None stands for a file that was not there, or is no longer."""

    path: str
    before: str | None
    after: str | None


# --- the hand-over ----------------------------------------------------------------------------------------------


class Location(Record):
    """A range of lines, both ends included."""

    path: str
    start: LineNumber
    end: LineNumber
    symbol: str | None = Field(default=None, description="qualified name of the function or class, if in one")
    why: str = ""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end < self.start:
            raise ValueError(f"end {self.end} is before start {self.start}")
        return self

    @property
    def lines(self) -> range:
        return range(self.start, self.end + 1)


class StopProbe(Record):
    """What an expression is where the program stops.

    It stops the n-th time that a line is reached, or a function returns from it, while a test runs; or where the test
    fails, at its innermost frame in the project. Without an expression, the claim is that it stops there. Two names
    are special: `__return__` is what the function returns, `__exception__` holds the words of the exception.
    """

    kind: Literal["stop"] = "stop"
    event: Literal["line", "return", "failure"] = "line"
    path: str
    line: LineNumber = Field(lt=1 << 31)
    time: int | None = Field(default=None, ge=1, lt=1 << 31, description="n-th time in the test; None: some time")
    test: str | None = Field(default=None, description="None: some test, or a program without tests")
    up: int = Field(default=0, ge=0, lt=1 << 31, description="frames of the project above the place")
    expression: str = ""
    value: str = Field(default="", description="as the debugger shows it")


class WhatIfProbe(Record):
    """What the tests do when a line is changed in memory, as `whatif` says it."""

    kind: Literal["whatif"] = "whatif"
    path: str
    line: LineNumber = Field(lt=1 << 31)
    do: str
    time: int | None = Field(default=None, ge=1, lt=1 << 31)
    when: str | None = None
    effect: str


Probe = Annotated[StopProbe | WhatIfProbe, Field(discriminator="kind")]


class Check(Record):
    """What came of running a probe. A probe tells something when failing tests differ from passing ones in it."""

    status: Literal["confirmed", "contradicted", "unchecked"]
    telling: bool | None = Field(default=None, description="None where it was not confirmed")
    note: str = Field(default="", description="what was seen instead, why it tells nothing, or why it was not checked")


class Finding(Record):
    """A claim, the step that showed it, and the words of that step's observation that show it.

    The environment adds the probe that follows from the quote, and what came of running it.
    """

    claim: str
    step: int = Field(ge=0, description="index of the step whose observation is quoted")
    quote: str
    probe: Probe | None = None
    check: Check | None = Field(default=None, description="None: no probe was ever run, as in older records")

    @property
    def grounded(self) -> bool:
        """Whether its probe was confirmed and tells something."""
        return self.check is not None and self.check.status == "confirmed" and self.check.telling is True


class RuledOut(Record):
    """A place or cause that was looked at and found innocent."""

    what: str
    why: str


class ContextPack(Record):
    """What the seeker hands to the solver, ranked best first."""

    schema_version: Literal[1] = SCHEMA_VERSION
    locations: tuple[Location, ...] = ()
    findings: tuple[Finding, ...] = ()
    failing_frame: DebugFrame | None = None
    ruled_out: tuple[RuledOut, ...] = ()
    hypothesis: str = ""


# --- what is kept -----------------------------------------------------------------------------------------------


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
            message if message.observation is None else message.model_copy(update={"observation": None})
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
