"""The config of `gumshoe collect` and its sections."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from gumshoe.collect.policy_config import ModelConfig, PolicyConfig
from gumshoe.config import Config
from gumshoe.env.config import SandboxConfig
from gumshoe.records import Limits

__all__ = [
    "AgentConfig",
    "BranchConfig",
    "BudgetConfig",
    "CollectConfig",
    "LimitsConfig",
    "RayConfig",
    "TasksConfig",
]


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
