"""Episodes for whoever decides turn by turn: a model that is being trained.

The same episode as in an evaluation (`gumshoe.collect.episode.episode`), with the same tasks, prompts, tools, nudges,
limits and scores, with no server in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, JsonValue

from gumshoe.collect.config import AgentConfig, LimitsConfig, TasksConfig
from gumshoe.collect.episode.conversation import as_template_chat, read_turn
from gumshoe.collect.episode.episode import Episode
from gumshoe.collect.episode.spec import EpisodeSpec, chosen_tasks, make_agent
from gumshoe.collect.packs import grounded_share, lines_overlap
from gumshoe.config import Config, validate
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import gold_lines
from gumshoe.env.sandboxes.open import require_sandbox
from gumshoe.errors import ConfigError
from gumshoe.eval.score.metrics import valid_share
from gumshoe.records import Completion, ContextPack, Oracle, Step, Task
from gumshoe.tools import Toolbox, make_tools

SCORES = ("line_f1", "grounding", "cost", "format")


class LiveConfig(Config):
    """Which episodes are played."""

    tasks: TasksConfig = Field(description="which tasks; they must come with their answers")
    agent: AgentConfig = Field(default=AgentConfig(kind="seeker"), description="tools and prompt")
    sandbox: SandboxConfig = Field(default=SandboxConfig(), description="where programs run")
    limits: LimitsConfig = Field(default=LimitsConfig(steps=10), description="how much one episode may use")


def open_episodes(settings: Mapping[str, JsonValue]) -> LiveEpisodes:
    """The episodes that a section `live` describes. Raises ConfigError and TaskError."""
    return LiveEpisodes(validate(LiveConfig, dict(settings), origin="live"))


@dataclass(frozen=True)
class ChatRequest:
    """What the model is asked next, as a chat template takes it: messages and tool schemas."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


class LiveEpisodes:
    """The tasks of a config, and episodes on them. Raises SandboxError if there is no sandbox for one of the tasks."""

    def __init__(self, config: LiveConfig) -> None:
        self.config = config
        self.agent = make_agent(config.agent)
        self._pairs = _load(config)
        # What a model writes is never trusted.
        require_sandbox((task for task, _ in self._pairs.values()), config.sandbox, trusted=False)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(self._pairs)

    scores = SCORES
    """The names of the scores of an episode."""

    def opening(self, task: str) -> list[dict[str, Any]]:
        """The system message and the user message. Raises ConfigError for an unknown task."""
        found = self._pair(task)[0]
        toolbox = Toolbox(make_tools(self.agent.tools_in(found.regime)))
        return as_template_chat(self.agent.opening(found, toolbox.schemas))

    def episode(self, task: str) -> LiveEpisode:
        """An episode of a task; its sandbox starts with the first request. Raises ConfigError for an unknown task."""
        found, oracle = self._pair(task)
        config, spec = self.config, EpisodeSpec(found, oracle)
        return LiveEpisode(Episode(spec, self.agent, sandbox=config.sandbox, limits=config.limits))

    def _pair(self, task: str) -> tuple[Task, Oracle]:
        if task not in self._pairs:
            raise ConfigError(f"live: there is no task {task!r}")
        return self._pairs[task]


class LiveEpisode:
    """One episode: requests as chat messages, turns as the text that a model writes."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode

    def next_request(self) -> ChatRequest | None:
        """What the model is asked next; None once the episode is over. Raises SandboxError and TaskError."""
        request = self.episode.next_request()
        if request is None:
            return None
        return ChatRequest(as_template_chat(request.messages), [tool.as_openai() for tool in request.tools])

    def accept(self, text: str, *, cut_off: bool = False) -> None:
        """Takes in a turn as it was written; `cut_off` if it hit its length limit. Raises SandboxError."""
        written = Completion(text=text, finish_reason="length" if cut_off else "stop")
        offered = {schema.name for schema in self.episode.offered()}
        self.episode.accept(read_turn(written, prefix=f"call-{len(self.episode.steps)}", offered=offered))

    def scores(self) -> dict[str, float | None]:
        """What the episode is worth so far, as `episode_scores`."""
        episode = self.episode
        assert episode.spec.oracle is not None
        return episode_scores(episode.steps, episode.context_pack, episode.spec.oracle, episode.task.limits.steps)

    def close(self) -> None:
        """Removes the sandbox. Idempotent."""
        self.episode.close()


def episode_scores(
    steps: Sequence[Step], pack: ContextPack | None, oracle: Oracle, allowed_turns: int
) -> dict[str, float | None]:
    """The scores of an episode, 0 to 1 each, from what a trajectory holds.

    `line_f1` is the evaluation's: 0 without a report, None if the gold patch touches no line of an existing file.
    `grounding` is the evaluation's, too, but 0 where that is None, as without a report or a finding that was checked.
    `cost` is the share of the allowed turns that was not needed, 0 without a report. `format` is the evaluation's
    `valid_calls`, the share of turns whose calls were valid, halved without a report.
    """
    valid = valid_share(steps) or 0.0
    found = lines_overlap(pack.locations if pack is not None else (), gold_lines(oracle.gold_patch))
    if pack is None:
        return {"line_f1": found.f1, "grounding": 0.0, "cost": 0.0, "format": valid / 2}
    return {
        "line_f1": found.f1,
        "grounding": grounded_share(pack) or 0.0,
        "cost": max(0.0, 1 - len(steps) / allowed_turns),
        "format": valid,
    }


def _load(config: LiveConfig) -> dict[str, tuple[Task, Oracle]]:
    found = {task.id: (task, oracle) for task, oracle in chosen_tasks(config.tasks, seed=0) if oracle.gold_patch}
    if not found:
        raise ConfigError("live.tasks: there is no task that comes with its answer")
    return found
