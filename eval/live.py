"""Episodes of the seeker for whoever decides turn by turn: a model that is being trained.

The same tasks, prompts, tools and scores as in an evaluation, without a server between.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue

from gumshoe.collect.agent import make_agent
from gumshoe.collect.config import AgentConfig, LimitsConfig, TasksConfig
from gumshoe.collect.grounding import is_grounded
from gumshoe.collect.observed import tool_message
from gumshoe.config import Config, validate
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.tasks import gold_lines, load_tasks
from gumshoe.errors import ConfigError
from gumshoe.eval.scorers.localisation import lines_overlap
from gumshoe.eval.scorers.valid_calls import INVALID_KINDS
from gumshoe.records import ContextPack, Limits, Message, Oracle, Task, ToolCall
from gumshoe.tools import Toolbox, make_tools
from gumshoe.tools.text_calls import split_text_calls

__all__ = ["LiveConfig", "SeekerArena", "SeekerEpisode", "open_arena"]


class LiveConfig(Config):
    """Which episodes are played."""

    tasks: TasksConfig = Field(description="which tasks; they must come with their answers")
    agent: AgentConfig = Field(default=AgentConfig(kind="seeker"), description="tools and prompt")
    sandbox: SandboxConfig = Field(default=SandboxConfig(), description="where programs run")
    limits: LimitsConfig = Field(default=LimitsConfig(steps=10), description="how much one episode may use")


def open_arena(settings: Mapping[str, JsonValue]) -> SeekerArena:
    """The episodes that a section `live` describes. Raises ConfigError and TaskError."""
    return SeekerArena(validate(LiveConfig, dict(settings), origin="live"))


class SeekerArena:
    """The tasks of a config, and episodes on them."""

    def __init__(self, config: LiveConfig) -> None:
        self.config = config
        self.agent = make_agent(config.agent)
        toolbox = Toolbox(make_tools(self.agent.tools))
        self.schemas = toolbox.schemas
        self._instructions = toolbox.instructions
        self._pairs = _load(config)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(self._pairs)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The schemas, as a chat template gets them."""
        return [schema.as_openai() for schema in self.schemas]

    @property
    def scores(self) -> tuple[str, ...]:
        """The names of what an episode is worth."""
        return tuple(SeekerEpisode(self).scores())

    def opening(self, task: str) -> list[dict[str, Any]]:
        """The system message and the user message. Raises ConfigError for an unknown task."""
        return [_sent(message) for message in self.agent.opening(self.pair(task)[0], self.schemas, self._instructions)]

    def pair(self, task: str) -> tuple[Task, Oracle]:
        """A task and its answer. Raises ConfigError."""
        if task not in self._pairs:
            raise ConfigError(f"live: there is no task {task!r}")
        return self._pairs[task]

    def episode(self) -> SeekerEpisode:
        """Episodes, one after the other."""
        return SeekerEpisode(self)


class SeekerEpisode:
    """One episode after the other; its sandbox opens at the first call and closes when the episode is over."""

    def __init__(self, arena: SeekerArena) -> None:
        self._arena = arena
        self._env: DebugEnv | None = None
        self._clear()

    def reset(self, task: str) -> list[dict[str, Any]]:
        """Begins an episode and returns the messages that open it."""
        self.close()
        self._clear()
        self._task, self._oracle = self._arena.pair(task)
        self._limits = _limited(self._task, self._arena.config.limits)
        return self._arena.opening(task)

    @property
    def over(self) -> bool:
        """Whether nothing more can be done."""
        return self._over

    def call(self, name: str, arguments: Mapping[str, Any], *, new_turn: bool = True) -> str:
        """Carries out one call; returns the text of the tool message. Calls of one turn count as one step."""
        self._turns += new_turn
        step = self._turns - 1
        return self._told(ToolCall(id=f"call-{step}", name=name, arguments=dict(arguments)), step).content

    def answer(self, text: str) -> list[dict[str, Any]]:
        """Takes in a turn as it was written; one without a call ends the episode."""
        step = self._turns
        self._turns += 1
        _, calls = split_text_calls(text, prefix=f"call-{step}")
        said = {"role": "assistant", "content": text}
        if not calls:
            self._end()
        return [said, *(_sent(self._told(call, step)) for call in calls)]

    def scores(self) -> dict[str, float]:
        """`line_f1`, `grounding` and `cost` of what was handed over (0 without), and `format`.

        `format` is the share of turns whose calls were valid, halved where nothing was handed over; `cost` the share
        of the allowed turns that was not needed.
        """
        gold = gold_lines(self._oracle.gold_patch) if self._oracle else {}
        valid = sum(self._valid) / max(1, self._turns, len(self._valid))
        pack = self._pack
        if pack is None:
            return {"line_f1": 0.0, "grounding": 0.0, "cost": 0.0, "format": valid / 2}
        texts = self._seen
        grounded = sum(is_grounded(finding, texts) for finding in pack.findings)
        return {
            "line_f1": lines_overlap(pack.locations, gold).f1 or 0.0,
            "grounding": grounded / len(pack.findings) if pack.findings else 0.0,
            "cost": max(0.0, 1 - self._turns / self._limits.steps),
            "format": valid,
        }

    def close(self) -> None:
        """Ends the sandbox. Idempotent."""
        env, self._env = self._env, None
        if env is not None:
            env.close()

    def _clear(self) -> None:
        self._task: Task | None = None
        self._oracle: Oracle | None = None
        self._limits = Limits()
        self._turns = 0
        self._over = False
        self._valid: list[bool] = []
        self._seen: dict[int, str] = {}
        self._pack: ContextPack | None = None

    def _told(self, call: ToolCall, step: int) -> Message:
        if self._over:
            return tool_message(step, "not run: the episode was over", call_id=call.id, tool=call.name)
        observation = self._opened().step(call)[4]["observation"]
        failure = observation.failure
        self._valid.append(failure is None or failure.kind not in INVALID_KINDS)
        self._seen[step] = f"{self._seen.get(step, '')}\n{observation.text}".lstrip("\n")
        env = self._opened()
        self._pack = env.context_pack
        if env.stop is not None or self._turns >= self._limits.steps:
            self._end()
        return tool_message(step, observation.text, call_id=call.id, tool=observation.tool or call.name)

    def _opened(self) -> DebugEnv:
        if self._env is None:
            assert self._task is not None
            config = self._arena.config
            task = self._task.model_copy(update={"limits": self._limits})
            # What a model writes is never trusted.
            self._env = DebugEnv(task, tools=self._arena.agent.tools, sandbox=config.sandbox, trusted=False)
            self._env.reset(seed=0)
        return self._env

    def _end(self) -> None:
        self._over = True
        self.close()


def _load(config: LiveConfig) -> dict[str, tuple[Task, Oracle]]:
    wanted = config.tasks
    options: dict[str, Any] = dict(wanted.options)
    pairs = list(load_tasks(wanted.source, ids=wanted.ids or None, tags=wanted.tags, **options))
    if wanted.shuffle:
        random.Random(0).shuffle(pairs)
    found = {task.id: (task, oracle) for task, oracle in pairs[: wanted.limit] if oracle.gold_patch}
    if not found:
        raise ConfigError("live.tasks: there is no task that comes with its answer")
    return found


def _limited(task: Task, limits: LimitsConfig) -> Limits:
    own = task.limits.model_dump()
    given = {name: value for name, value in limits.model_dump().items() if name in own and value is not None}
    return Limits(**{**own, **given})


def _sent(message: Message) -> dict[str, Any]:
    return message.as_openai(arguments_as_text=False)
