"""What an episode is made of: a task with its oracle and seed, and the agent in front of it.

All agents are one loop that differs only in configuration.

| kind    | tools, unless the config names others                          | ends with |
|---------|----------------------------------------------------------------|-----------|
| debug   | `DEBUG_TOOLS` (this and the next ones: `tools/toolbox.py`)     | submit    |
| rewrite | `REWRITE_TOOLS`: the same without the debugger                 | submit    |
| debug_5 | as debug; the debugger appears after five calls of `rewrite`   | submit    |
| seeker  | `SEEKER_TOOLS`: those that inform, and `report`                | report    |
| react   | as debug, described and called in plain text                   | submit    |

In the regime `issue`, in which no test fails yet, each agent also has the tool `reproduce` and a prompt that says so.
"""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gumshoe.collect.config import AgentConfig, TasksConfig
from gumshoe.collect.prompts import PROMPTS, read_template, render
from gumshoe.errors import TaskError
from gumshoe.records import BranchPoint, Message, Oracle, Task, TaskRef, ToolSchema

log = logging.getLogger(__name__)

REPORT_SCORE = "line_f1"
"""The score of a report, which is an episode's outcome if no patch was judged."""
WITHOUT_ARGUMENTS = ("eval", "suspects", "vary", "listdir")
"""Tools that need no arguments, in the order in which they help."""
Regime = Literal["debug", "issue"]


@dataclass(frozen=True)
class EpisodeSpec:
    """One episode to be played: a task, its oracle, which sample of it, the seed of its choices."""

    task: Task
    oracle: Oracle | None = None
    sample: int = 0
    seed: int = 0
    run: str = ""
    eval_on_submit: bool = True
    """Whether the verifier is asked about the final patch. Without it, `resolved` stays unknown."""
    score_report: bool = False
    """Whether a report is compared with the gold patch, for the values of a tree's decisions."""
    branch: BranchPoint | None = None
    """The branch point of an episode that begins in the middle of another one."""
    number: int = 0
    """Which of the decisions tried at its branch point it begins with; the parent's own is 0."""
    level: int = 0
    """How many decisions on the way to it have branched."""

    @property
    def id(self) -> str:
        """The trajectory's id: the same for the same task, sample and run config."""
        if self.branch is not None:
            return f"{self.branch.parent}/{self.branch.step}.{self.number}"
        digest = hashlib.sha256(f"{self.run}\n{self.task.hash}\n{self.sample}\n{self.seed}".encode()).hexdigest()
        return f"{self.task.id}#{self.sample}.{digest[:12]}"


def task_ref(task: Task) -> TaskRef:
    """Which task a trajectory is about, without the task itself."""
    return TaskRef(id=task.id, hash=task.hash, source=task.source, regime=task.regime, tags=task.tags)


@dataclass(frozen=True)
class Agent:
    """What an agent may do and how it is asked.

    `tools` and `template` are those of the regime `debug`; with `reproduces`, the regime `issue` adds `reproduce`.
    `as_text` says that tools are described, called and answered in plain text, whatever the server supports.
    `unlocked_by` maps a tool to `(other tool, count)`: it is offered once the other tool has been called that often.
    """

    kind: str
    tools: tuple[str, ...]
    template: str
    issue_template: str
    nudges: int
    context_tokens: int | None
    as_text: bool
    unlocked_by: Mapping[str, tuple[str, int]]
    reproduces: bool = False

    def tools_in(self, regime: Regime) -> tuple[str, ...]:
        """The tools on tasks of a regime."""
        from gumshoe.tools.toolbox import with_reproduce

        return with_reproduce(self.tools) if regime == "issue" and self.reproduces else self.tools

    def system_prompt(self, schemas: Sequence[ToolSchema], regime: Regime = "debug") -> str:
        """The system message: the same for every task of a regime, so that servers can keep it cached."""
        tools = [schema.name for schema in schemas]
        template = self.issue_template if regime == "issue" else self.template
        return render(template, kind=self.kind, tools=tools, regime=regime)

    def opening(self, task: Task, schemas: Sequence[ToolSchema]) -> tuple[Message, Message]:
        """The system message and the user message that every episode begins with."""
        return (
            Message(role="system", content=self.system_prompt(schemas, task.regime)),
            Message(role="user", content=task.problem_statement.strip()),
        )

    def offered(self, schemas: Sequence[ToolSchema], used: Mapping[str, int]) -> tuple[ToolSchema, ...]:
        """The tools that may be called now, where `used` counts the calls so far by tool."""
        locked = {tool for tool, (needed, count) in self.unlocked_by.items() if used.get(needed, 0) < count}
        return tuple(schema for schema in schemas if schema.name not in locked)


def make_agent(config: AgentConfig) -> Agent:
    """The agent that a config describes. Raises ConfigError for a template or a tool that cannot be used."""
    # Here, because commands that only read trajectories need no tools.
    from gumshoe.tools.toolbox import DEBUG_TOOLS, REWRITE_TOOLS, SEEKER_TOOLS, make_toolbox

    make_toolbox(config.tools or ())
    tools = {"seeker": SEEKER_TOOLS, "rewrite": REWRITE_TOOLS}.get(config.kind, DEBUG_TOOLS)
    return Agent(
        kind=config.kind,
        tools=config.tools or tools,
        template=read_template(Path(config.prompt) if config.prompt else _bundled(config.kind, "")),
        issue_template=read_template(Path(config.prompt) if config.prompt else _bundled(config.kind, "_issue")),
        nudges=config.nudges,
        context_tokens=config.context_tokens,
        as_text=config.kind == "react",
        unlocked_by={"pdb": ("rewrite", 5)} if config.kind == "debug_5" else {},
        reproduces=config.tools is None,
    )


def wanted_tasks(config: TasksConfig, on_error: Callable[[TaskError], None]) -> list[tuple[Task, Oracle]]:
    """The tasks with the wanted ids and tags, in the order of their source; not shuffled or limited.

    `on_error` is called for each broken entry of the source, which is left out. Raises TaskError if the source cannot
    be read, or no task is left.
    """
    # Here, because commands that only read trajectories need no sources of tasks.
    from gumshoe.env.tasks import load_tasks

    options: dict[str, Any] = dict(config.options)
    tasks = load_tasks(config.source, ids=config.ids or None, tags=config.tags, on_error=on_error, **options)
    if not tasks:
        raise TaskError(f"no task of {config.source} is left after tasks.ids and tasks.tags: relax these filters")
    return tasks


def chosen_tasks(config: TasksConfig, seed: int) -> list[tuple[Task, Oracle]]:
    """As `wanted_tasks`, shuffled and limited; broken entries are logged and left out."""
    tasks = wanted_tasks(config, lambda error: log.warning("skipped: %s", error))
    if config.shuffle:
        random.Random(seed).shuffle(tasks)
    return tasks if config.limit is None else tasks[: config.limit]


def nudge(schemas: Sequence[ToolSchema], reason: str, used: Mapping[str, int]) -> str:
    """The message to an agent that called no tool: why its turn failed, and how to call one.

    Small models copy the example. So it is a call that helps and needs no arguments, and not one that they have just
    made; `used` counts the calls so far by tool.
    """
    tools = [schema.name for schema in schemas]
    helpful = [tool for tool in WITHOUT_ARGUMENTS if tool in tools]
    example = min(helpful or tools, key=lambda tool: used.get(tool, 0))
    return render(read_template(PROMPTS / "nudge.jinja"), reason=reason, tools=tools, example=example)


def _bundled(kind: str, regime: str) -> Path:
    return PROMPTS / f"{kind if kind in ('seeker', 'react') else 'debug'}{regime}.jinja"
