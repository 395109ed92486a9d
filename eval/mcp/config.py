"""The config of `gumshoe mcp`."""

from __future__ import annotations

from pydantic import Field, field_validator

from gumshoe.collect.config import AgentConfig, LimitsConfig
from gumshoe.collect.policy_config import InvestigatorConfig, PolicyConfig
from gumshoe.config import Config
from gumshoe.env.config import SandboxConfig
from gumshoe.records import Decision
from gumshoe.tools.toolbox import decisions_of

__all__ = ["McpConfig"]


class McpConfig(Config):
    """Which tools a client gets, and who investigates."""

    tools: tuple[str, ...] = Field(
        default=("listdir", "view", "grep", "eval", "suspects", "trace", "whatif", "vary", "pdb"),
        min_length=1,
        description="tools that a client gets besides `investigate`; those that end an episode are refused",
    )
    policy: PolicyConfig = Field(
        default=InvestigatorConfig(), description="who investigates; investigator needs no model"
    )
    agent: AgentConfig = Field(default=AgentConfig(kind="seeker"), description="the agent of an investigation")
    limits: LimitsConfig = Field(default=LimitsConfig(wall_s=600), description="how much one investigation may use")
    command_timeout_s: float = Field(default=60.0, gt=0, description="seconds one call of a tool may take")
    sandbox: SandboxConfig = Field(default=SandboxConfig(), description="where programs run")
    sessions: int = Field(default=8, ge=1, description="clients at a time, each with a sandbox of its own (HTTP)")
    idle_s: float = Field(default=1800.0, gt=0, description="seconds without a request that end a session (HTTP)")

    @field_validator("tools")
    @classmethod
    def _no_end(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        roles = decisions_of(())
        wrong = next((name for name in tools if roles.get(name) in (Decision.REPORT, Decision.SUBMIT)), None)
        if wrong is not None:
            raise ValueError(f"{wrong} ends an episode, and clients of this server have no episodes")
        return tools

    @field_validator("policy")
    @classmethod
    def _no_answer(cls, policy: PolicyConfig) -> PolicyConfig:
        if policy.kind in ("teacher", "replay", "human"):
            raise ValueError(
                f"policy {policy.kind} cannot investigate: it would need an answer, a recording or a terminal"
            )
        return policy
