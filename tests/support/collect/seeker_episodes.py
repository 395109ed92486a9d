"""Whole episodes of a seeker on a small program, in a sandbox."""

from __future__ import annotations

from pathlib import Path

from gumshoe.collect.config import AgentConfig, PolicyConfig
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies import make_policy
from gumshoe.collect.run.play import play_one
from gumshoe.env.config import SandboxConfig
from gumshoe.records import Limits, Task, Trajectory
from support.folder_tasks import folder_task

__all__ = ["play_seeker", "shop_task", "tools_called"]


def shop_task(folder: Path, shop: str, tests: str, problem: str) -> Task:
    """A task on the program `shop`, written to `folder` with its tests."""
    files = {"shop.py": shop, "test_shop.py": tests}
    return folder_task(folder, files, problem_statement=problem, limits=Limits(command_timeout_s=300))


def play_seeker(task: Task, policy: PolicyConfig, tools: tuple[str, ...] | None = None, *, seed: int = 0) -> Trajectory:
    """One episode; a seeker has its usual tools unless told otherwise."""
    agent = make_agent(AgentConfig(kind="seeker") if tools is None else AgentConfig(kind="seeker", tools=tools))
    sandbox = SandboxConfig(kind="bubblewrap")
    return play_one(EpisodeSpec(task), agent, make_policy(policy, task, None, seed), sandbox=sandbox)


def tools_called(found: Trajectory) -> list[str]:
    """The names of all calls, in their order."""
    return [call.name for step in found.steps for call in step.tool_calls]
