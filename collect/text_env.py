"""Plain text in and out: the environment for those who have a text generator and nothing else.

env = TextWrapper(DebugEnv(task))
text, info = env.reset(seed=0)
text, reward, terminated, truncated, info = env.step('<tool_call>{"name": "eval", "arguments": {}}</tool_call>')
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.episode import NOT_RUN, Episode
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.spaces import MAX_TEXT, AnyText
from gumshoe.errors import SandboxError
from gumshoe.records import Completion, Observation, StopReason
from gumshoe.text import escape
from gumshoe.tools.calls.parsing import describe_tools


class TextWrapper(gymnasium.Wrapper[str, str, Any, Any], RecordConstructorArgs):
    """A `DebugEnv` whose actions are what a model writes and whose observations are what it reads.

    An action is a turn: a text with one or more `<tool_call>` blocks in the Hermes form, which are carried out in
    order. The episode is like one of `gumshoe collect`: `Limits.steps` counts turns, a text without a call is
    answered with how to call a tool, and several of them in a row end the episode.

    The first observation is the problem statement, with the tools and how to call them before it. `info` holds `stop`,
    `observations` (the `Observation` records of the calls that were run), `observation` (the last of them, if there is
    one) and, once a report has been made, `context_pack`. Texts are escaped (see `gumshoe.text`), so that a
    model's tokenizer finds no control token in them; the records in `info` are as they are.

    It wraps a `DebugEnv`, or a wrapper around one, such as `gymnasium.make` returns.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        gymnasium.Wrapper.__init__(self, env)  # pyright: ignore[reportUnknownMemberType]
        self.action_space = AnyText(min_length=0, max_length=MAX_TEXT)
        self.observation_space = AnyText(min_length=0, max_length=MAX_TEXT)
        self._agent = make_agent(AgentConfig(kind="react"))
        self._episode: Episode | None = None

    @property
    def prompt(self) -> str:
        """The description of the tools for a model: their schemas, and how to call them.

        Raises TypeError if what is wrapped is not a `DebugEnv`.
        """
        return describe_tools(self._inner.toolbox.schemas)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode. Raises what `DebugEnv.reset` raises."""
        task = self._inner.task
        self._episode = Episode(EpisodeSpec(task, seed=seed or 0), self._agent, environment=self.env)
        self._episode.start(options)
        problem = Observation(tool="reset", text=task.problem_statement)
        text = escape(f"{self.prompt}\n\n{problem.text}")
        return text[:MAX_TEXT], {"observation": problem, "observations": [problem], "stop": None}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carries out the calls in a text. Raises SandboxError, including when the episode is over."""
        episode = self._episode
        if episode is None or episode.next_request() is None:
            raise SandboxError("the episode is over: call reset() before the next step")
        step = episode.accept(Completion(text=action))
        made = [one for one in step.observations if one.failure is None or one.failure.kind != NOT_RUN]
        texts = [escape(one.text, tags=True) for one in made] or [message.content for message in episode.answers()]
        info: dict[str, Any] = {"observations": made, "stop": episode.stop}
        if made:
            info["observation"] = made[-1]
        if episode.context_pack is not None:
            info["context_pack"] = episode.context_pack
        terminated = episode.stop in {StopReason.SUBMITTED, StopReason.REPORTED}
        truncated = episode.stop is not None and not terminated
        reward = math.nan if step.reward is None else step.reward
        return "\n\n".join(texts)[:MAX_TEXT], reward, terminated, truncated, info

    @property
    def _inner(self) -> DebugEnv:
        inner = self.unwrapped
        if not isinstance(inner, DebugEnv):
            raise TypeError(f"TextWrapper wraps a DebugEnv, not {type(inner).__name__}")
        return inner
