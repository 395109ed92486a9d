"""The environment as an OpenEnv server: many sessions, each an episode in a sandbox of its own."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from openenv.core.env_server import Action, Environment, Observation, State
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.types import EnvironmentMetadata
from pydantic import Field, JsonValue

from gumshoe import __version__
from gumshoe.agreement import WEIGHTS, check_weights, weighted_sum
from gumshoe.collect.episode.conversation import read_turn
from gumshoe.errors import SandboxError, TaskError
from gumshoe.eval.live import LiveConfig, LiveEpisode, LiveEpisodes
from gumshoe.records import Completion, StopReason, ToolCall
from gumshoe.text import escape


class OpenEnvConfig(LiveConfig):
    """One server."""

    sessions: int = Field(default=16, ge=1, description="sessions at a time, each with a sandbox of its own")
    weights: dict[str, float] = Field(
        default=dict(WEIGHTS), description="weight of each score in the reward of an episode that ends without a patch"
    )


class DebugAction(Action):
    """A turn: one call of a tool, or a text as a model writes it, with its calls in it."""

    tool: str = Field(default="", description="name of the tool; empty: the calls are in `text`")
    arguments: dict[str, Any] = Field(default_factory=dict, description="arguments of the tool")
    text: str = Field(default="", description="what the model writes; calls stand in <tool_call> blocks")


class DebugObservation(Observation):
    """What the turn led to. The reward comes with the end of the episode and is 0 before; None if it is not known.

    A sandbox that does not start or breaks ends the episode without a reward: `stop` is `aborted`, `text` says why.
    """

    text: str = Field(default="", description="what the model reads: the tools' answers, or the problem after a reset")
    failed: bool = Field(default=False, description="whether a call could not be carried out")
    messages: list[dict[str, Any]] = Field(default_factory=list, description="after a reset: how the chat begins")
    tools: list[dict[str, Any]] = Field(
        default_factory=list, description="after a reset: the tools, as OpenAI has them"
    )
    stop: str | None = Field(default=None, description="why the episode is over")
    scores: dict[str, float | None] = Field(default_factory=dict, description="at the end: what the reward is made of")


class DebugState(State):
    """Where an episode is."""

    task: str = Field(default="", description="id of the task")


class DebugEnvironment(Environment[DebugAction, DebugObservation, DebugState]):
    """One session. The episode is the one that collection, evaluation and training run.

    All sessions share the tasks and `turns`, which says which task comes next where a reset names none.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, source: LiveEpisodes, config: OpenEnvConfig, turns: itertools.count[int]) -> None:
        super().__init__()
        self._source = source
        self._config = config
        self._turns = turns
        self._episode: LiveEpisode | None = None
        self._state = DebugState()

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        *,
        task: str | None = None,
        index: int | None = None,
        **options: Any,
    ) -> DebugObservation:
        """Begins an episode of the task with this id or index, else of the one that the seed picks, else of the next.

        Raises ConfigError: there is no such task.
        """
        del options
        self.close()
        tasks = self._source.tasks
        number = index if index is not None else seed if seed is not None else next(self._turns)
        name = task if task is not None else tasks[number % len(tasks)]
        self._episode = self._source.episode(name)
        self._state = DebugState(episode_id=episode_id or str(uuid.uuid4()), task=name)
        try:
            request = self._episode.next_request()
        except (SandboxError, TaskError) as error:
            return self._abort(error)
        assert request is not None
        return DebugObservation(
            text=str(request.messages[-1]["content"]), reward=0.0, messages=request.messages, tools=request.tools
        )

    def step(self, action: DebugAction, timeout_s: float | None = None, **options: Any) -> DebugObservation:
        """Carries out a turn. A tool that does not exist, or a text without a call, is answered, not refused.

        Raises ValueError: no episode is in progress.
        """
        del timeout_s, options
        live = self._episode
        if live is None or live.next_request() is None:
            raise ValueError("no episode is in progress: reset first")
        self._state.step_count += 1
        try:
            step = live.episode.accept(self._completion(action, live))
        except SandboxError as error:
            return self._abort(error)
        texts = [escape(one.text, tags=True) for one in step.observations]
        seen = texts or [one.content for one in live.episode.answers()]
        failed = any(one.failure is not None for one in step.observations)
        observation = DebugObservation(text="\n\n".join(seen), failed=failed, reward=0.0)
        stop = live.episode.stop
        if stop is not None:
            observation.done = True
            observation.stop = str(stop)
            observation.scores = live.scores()
            observation.reward = self._reward(live, observation.scores)
            live.close()
        return observation

    @property
    def state(self) -> DebugState:
        """Where the episode is."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What this environment is."""
        about = "Debug a repository in a sandbox with pdb and other tools, then report the cause or submit a patch."
        return EnvironmentMetadata(name="gumshoe", description=about, version=__version__)

    def list_splits(self) -> list[str]:
        """One split: the tasks of the config."""
        return ["tasks"]

    def num_tasks(self, split: str) -> int:
        """How many tasks there are."""
        return len(self._source.tasks)

    def list_tasks(self, split: str) -> list[dict[str, JsonValue]]:
        """The tasks, in the order of their indices."""
        return [self.get_task(split, index) for index in range(len(self._source.tasks))]

    def get_task(self, split: str, index: int) -> dict[str, JsonValue]:
        """One task. Raises IndexError."""
        return {"id": self._source.tasks[index], "index": index}

    def close(self) -> None:
        """Ends the episode and removes its sandbox. Idempotent."""
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.close()

    def _abort(self, error: SandboxError | TaskError) -> DebugObservation:
        """Ends an episode that cannot go on for a reason outside it, without a reward."""
        self.close()
        return DebugObservation(text=str(error), failed=True, done=True, reward=None, stop=str(StopReason.ABORTED))

    def _completion(self, action: DebugAction, live: LiveEpisode) -> Completion:
        prefix = f"call-{len(live.episode.steps)}"
        if action.tool:
            call = ToolCall(id=prefix, name=action.tool, arguments=action.arguments)
            return Completion(text=action.text, tool_calls=(call,), finish_reason="tool_calls").unescaped()
        offered = {schema.name for schema in live.episode.offered()}
        return read_turn(Completion(text=action.text), prefix=prefix, offered=offered)

    def _reward(self, live: LiveEpisode, scores: Mapping[str, float | None]) -> float | None:
        """The verifier's verdict on a patch, else the weighted sum of the scores; None if one of these is not known."""
        if live.episode.stop is StopReason.SUBMITTED:
            return live.episode.reward
        return weighted_sum(scores, self._config.weights)


def make_app(config: OpenEnvConfig) -> FastAPI:
    """The application. Raises ConfigError and TaskError."""
    source, turns = LiveEpisodes(config), itertools.count()
    check_weights(config.weights, source.scores)
    return create_fastapi_app(
        lambda: DebugEnvironment(source, config, turns),
        DebugAction,
        DebugObservation,
        max_concurrent_envs=config.sessions,
        env_name="gumshoe",
        state_cls=DebugState,
    )
