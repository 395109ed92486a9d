"""The config of `gumshoe collect` and its sections, and those of the policies: who chooses the actions."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, JsonValue, field_validator, model_validator

from gumshoe.config import Config, WebAddress
from gumshoe.env.config import SandboxConfig
from gumshoe.records import Limits, Usage


class PolicyKind(Config):
    """What each kind of policy says of itself.

    Attributes:
        trusted: its calls come from a program of ours or a person, who act or write a script themselves, not a model.
        only_looks: it reports and does not edit.
    """

    trusted: ClassVar[bool] = False
    only_looks: ClassVar[bool] = False


class TeacherConfig(PolicyKind):
    """The scripted teacher: knows the answer, but works in the real environment."""

    trusted = True
    kind: Literal["teacher"] = "teacher"
    explore: float = Field(default=0.25, ge=0, le=1, description="probability of a step that is not strictly needed")
    locations: Literal["lines", "functions"] = Field(
        default="lines",
        description="what it reports: only the lines that matter, or the whole functions that contain them",
    )


class TracebackConfig(PolicyKind):
    """The heuristic that runs the tests once and reports the last line of the traceback."""

    trusted = only_looks = True
    kind: Literal["traceback"] = "traceback"


class SuspectConfig(PolicyKind):
    """Reports the function that the tool suspects lists first: the heuristic that needs no model."""

    trusted = only_looks = True
    kind: Literal["suspect"] = "suspect"


class VaryConfig(PolicyKind):
    """Tries small changes in the suspects with the tool vary, and reports where one helps."""

    trusted = only_looks = True
    kind: Literal["vary"] = "vary"


class InvestigatorConfig(PolicyKind):
    """Finds the bug by experiments, without a model and without the answer."""

    trusted = only_looks = True
    kind: Literal["investigator"] = "investigator"
    sure: float = Field(
        default=0.9, gt=0, le=1, description="probability of its first location from which on it reports"
    )
    patience: float = Field(
        default=0.02, ge=0, description="expected information, in bits per test run, below which it stops looking"
    )
    turns: int = Field(default=24, ge=1, description="maximum number of looks; at least two less than limits.steps")


class ScriptedConfig(PolicyKind):
    """A fixed list of completions."""

    trusted = True
    kind: Literal["scripted"] = "scripted"
    script: str = Field(description="JSON-lines file with one completion per line")


class ReplayConfig(PolicyKind):
    """Repeats what another run's agent did on the same tasks."""

    kind: Literal["replay"] = "replay"
    run: str = Field(description="run folder whose trajectories are replayed")


class CustomConfig(PolicyKind):
    """Your own policy."""

    kind: Literal["custom"] = "custom"
    path: str = Field(description="package.module:attribute of its factory, called with task=, seed= and the options")
    options: dict[str, JsonValue] = Field(default_factory=dict, description="further arguments")


class HumanConfig(PolicyKind):
    """A person at the terminal."""

    trusted = True
    kind: Literal["human"] = "human"


class RetryConfig(Config):
    """How often a failing server is asked again."""

    attempts: int = Field(default=6, ge=1, description="attempts per completion, including the first")
    first_s: float = Field(
        default=1.0, ge=0, description="wait after the first failure; doubles each time, up to a minute, with jitter"
    )


class Prices(Config):
    """Dollars for a million tokens."""

    prompt: float = Field(ge=0, description="tokens read")
    cached: float | None = Field(default=None, ge=0, description="tokens read from the prefix cache; null: as prompt")
    completion: float = Field(ge=0, description="tokens written")

    def cost(self, usage: Usage) -> float:
        """Dollars for `usage`."""
        cached = self.prompt if self.cached is None else self.cached
        fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
        return (fresh * self.prompt + usage.cached_tokens * cached + usage.completion_tokens * self.completion) / 1e6


def _as_written(value: Any) -> Any:
    """YAML takes 2024-10-21 for a date."""
    return value.isoformat() if isinstance(value, datetime.date) else value


ApiVersion = Annotated[str, BeforeValidator(_as_written)]
"""A version that looks like a date, such as 2024-10-21."""


class ModelSettings(PolicyKind):
    """How a model behind a server is asked, whatever the server speaks."""

    model: str = Field(description="name of the model, as the server knows it")
    base_url: WebAddress | None = Field(
        default=None, description="server, such as http://127.0.0.1:8000/v1; null: OpenAI or Anthropic itself"
    )
    profile: str | None = Field(default=None, description="entry of llm.yaml with the key")
    tool_choice: Literal["auto", "required"] = Field(default="auto", description="required: the model must call a tool")
    temperature: float | None = Field(default=None, ge=0, description="null: the server's default")
    top_p: float | None = Field(default=None, gt=0, le=1, description="null: the server's default")
    stream: bool = Field(default=False, description="receive the answer in pieces")
    timeout_s: float = Field(default=600.0, gt=0, description="seconds to wait for the server")
    extra_body: dict[str, JsonValue] = Field(default_factory=dict, description="further fields of the request")
    prices: Prices | None = Field(default=None, description="prices used to compute cost; null: cost unknown")
    retry: RetryConfig = Field(default=RetryConfig(), description="retries of failed requests")


class OpenAIConfig(ModelSettings):
    """A model behind an OpenAI-compatible server."""

    kind: Literal["openai"] = "openai"
    label: str | None = Field(default=None, description="name in traces; null: the server's name")
    azure_api_version: ApiVersion | None = Field(
        default=None, description="the server is Azure OpenAI: its API version; model is then the deployment"
    )
    azure_entra: bool = Field(default=False, description="sign in to Azure with Entra ID instead of a key")
    api_key_env: str = Field(default="OPENAI_API_KEY", description="environment variable with the key")
    syntax: Literal["native", "text", "template"] = Field(
        default="native",
        description="native: the server parses tool calls; text: <tool_call> blocks in the text; template: tools go "
        "to the server's chat template, calls are <tool_call> blocks in the text, as in training",
    )
    max_tokens: int | None = Field(
        default=None, ge=1, description="tokens of one completion; null: the server's default"
    )
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="the server's name for the token limit"
    )
    send_seed: bool = Field(default=False, description="send the episode's seed for sampling")
    token_ids: bool = Field(
        default=False,
        description="ask for the ids and log probabilities of the sampled tokens, which training then uses (vLLM)",
    )


class AnthropicConfig(ModelSettings):
    """A model behind Anthropic's Messages API, or a server that speaks it. Needs the extra `anthropic`."""

    kind: Literal["anthropic"] = "anthropic"
    api_key_env: str = Field(default="ANTHROPIC_API_KEY", description="environment variable with the key")
    max_tokens: int = Field(default=8192, ge=1, description="tokens of one completion")
    thinking: dict[str, JsonValue] | None = Field(
        default=None, description="in the API's format, such as {type: adaptive}; null: not requested"
    )


ModelConfig = OpenAIConfig | AnthropicConfig
"""The policies that ask a model behind a server."""

PolicyConfig = Annotated[
    TeacherConfig
    | TracebackConfig
    | SuspectConfig
    | VaryConfig
    | InvestigatorConfig
    | ScriptedConfig
    | ReplayConfig
    | HumanConfig
    | CustomConfig
    | OpenAIConfig
    | AnthropicConfig,
    Field(discriminator="kind"),
]


def _kinds(has: Callable[[type[PolicyKind]], bool]) -> frozenset[str]:
    """The kinds of policies that have something."""
    union, _ = get_args(PolicyConfig)
    return frozenset(str(one.model_fields["kind"].default) for one in get_args(union) if has(one))


TRUSTED_KINDS = _kinds(lambda policy: policy.trusted)
ONLY_LOOKING_KINDS = _kinds(lambda policy: policy.only_looks)


class TasksConfig(Config):
    """Which tasks are worked on."""

    source: str = Field(description="task source, such as casebook or synth")
    options: dict[str, JsonValue] = Field(default_factory=dict, description="options of the source, such as a path")
    ids: tuple[str, ...] = Field(default=(), description="only these tasks; empty: all")
    tags: dict[str, str | tuple[str, ...]] = Field(
        default_factory=dict, description="only tasks with this tag value, or one of these, such as split: train"
    )
    shuffle: bool = Field(default=False, description="shuffle the tasks with the run's seed")
    limit: int | None = Field(default=None, ge=1, description="maximum number of tasks, after the filters; null: all")
    samples: int = Field(default=1, ge=1, description="episodes for each task")


class LimitsConfig(Config):
    """How much one episode may use. null keeps the task's own limit."""

    steps: int | None = Field(
        default=None, ge=1, description="turns of the agent, regardless of the number of calls in each"
    )
    calls: int | None = Field(default=None, ge=1, description="tool calls of the whole episode")
    command_timeout_s: float | None = Field(default=None, gt=0, description="time limit for one tool call, in seconds")
    wall_s: float | None = Field(default=None, gt=0, description="time limit for the whole episode, in seconds")
    tokens: int | None = Field(default=None, ge=1, description="tokens the policy may use, prompt and completion")
    cost_usd: float | None = Field(default=None, gt=0, description="maximum cost of the policy; needs policy.prices")

    def over(self, limits: Limits) -> Limits:
        """`limits`, with those that are set here in place of its own."""
        given = {name: value for name, value in self.model_dump(exclude={"cost_usd"}).items() if value is not None}
        return limits.model_copy(update=given)


class BudgetConfig(Config):
    """How much the whole run may use. Reaching it stops cleanly; a larger one resumes the run."""

    steps: int | None = Field(default=None, ge=1, description="turns of all episodes")
    tokens: int | None = Field(default=None, ge=1, description="tokens of all episodes, prompt and completion")
    cost_usd: float | None = Field(default=None, gt=0, description="cost of all episodes; needs policy.prices")
    wall_s: float | None = Field(default=None, gt=0, description="time limit since this process started, in seconds")


class BranchConfig(Config):
    """At which decisions an episode branches. A task then has a tree of up to width ** depth episodes."""

    at: Literal["seek", "edit", "verify", "report", "submit", "any"] = Field(
        default="seek", description="kind of the decisions at which an episode branches; any: every turn"
    )
    width: int = Field(default=4, ge=2, le=64, description="decisions tried at each of them, including the first one")
    depth: int = Field(default=1, ge=1, le=8, description="how many decisions on a path may branch")
    skip: int = Field(default=0, ge=0, description="turns at the beginning that do not branch")


class AgentConfig(Config):
    """What the agent may do and how it is asked."""

    kind: Literal["debug", "rewrite", "debug_5", "seeker", "react"] = Field(
        default="debug",
        description="debug: to look, debug and edit; rewrite: no debugger; debug_5: debugger after five rewrites; "
        "seeker: information tools and report; react: those of debug, described and called in plain text",
    )
    tools: tuple[str, ...] | None = Field(
        default=None,
        description="tools instead of the kind's own; null: the kind's, with reproduce in the regime issue; "
        "mcp:COMMAND: those of an MCP server",
    )
    prompt: str | None = Field(
        default=None, description="path of a Jinja template instead of the bundled system prompt"
    )
    context_tokens: int | None = Field(
        default=None, ge=500, description="context size for the conversation; older observations are dropped beyond it"
    )
    nudges: int = Field(default=3, ge=1, description="turns in a row without a tool call after which the episode ends")


class RayConfig(Config):
    """The cluster of `runner: ray`."""

    address: str | None = Field(
        default=None,
        description="head node, such as 10.0.0.1:6379, or auto for a local one; null: start a local cluster",
    )
    cpus: float = Field(default=1.0, ge=0, description="processors that one worker uses; additional workers wait")


class CollectConfig(Config):
    """One run of `gumshoe collect`."""

    out: str = Field(description="run folder; made if missing, resumed if there")
    tasks: TasksConfig = Field(description="which tasks")
    agent: AgentConfig = Field(default=AgentConfig(), description="the agent and its tools")
    policy: PolicyConfig = Field(description="policy that chooses the actions")
    sandbox: SandboxConfig = Field(default=SandboxConfig(), description="where programs run")
    limits: LimitsConfig = Field(default=LimitsConfig(), description="how much one episode may use")
    budget: BudgetConfig = Field(default=BudgetConfig(), description="how much the whole run may use")
    branch: BranchConfig | None = Field(
        default=None, description="try several decisions at some turns and play each to its end; null: no branching"
    )
    eval_on_submit: bool = Field(
        default=True, description="verify each final patch in a fresh sandbox; false: resolved stays unknown"
    )
    workers: int = Field(default=2, ge=1, description="episodes run in parallel")
    runner: Literal["threads", "ray"] = Field(
        default="threads", description="threads: sandboxes on this machine; ray: on the nodes of a cluster"
    )
    ray: RayConfig = Field(default=RayConfig(), description="the cluster; only with runner: ray")
    seed: int = Field(default=0, ge=0, description="seed of all random choices")
    attempts: int = Field(
        default=3, ge=1, description="attempts per episode, with retries after infrastructure failures"
    )
    fail_on_error: int | None = Field(
        default=None,
        ge=1,
        description="failed attempts after which the run stops; null: continue with other episodes",
    )

    @field_validator("policy", mode="before")
    @classmethod
    def _a_person_for_any_model(cls, policy: Any) -> Any:
        """`-p policy.model=human` puts a person in the place of any other policy."""
        return {"kind": "human"} if isinstance(policy, dict) and policy.get("model") == "human" else policy

    @model_validator(mode="after")
    def _money_needs_prices(self) -> Self:
        priced = isinstance(self.policy, ModelConfig) and self.policy.prices is not None
        if not priced and (self.limits.cost_usd is not None or self.budget.cost_usd is not None):
            raise ValueError("a limit on cost_usd requires policy.prices")
        return self
