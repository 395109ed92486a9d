"""Plain text in and out: the environment for whoever has a text generator and nothing else.

env = TextWrapper(DebugEnv(task))
text, info = env.reset(seed=0)
text, reward, terminated, truncated, info = env.step('<tool_call>{"name": "eval", "arguments": {}}</tool_call>')
"""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.spaces import MAX_TEXT, AnyText
from gumshoe.records import Observation, ToolCall
from gumshoe.tools.text_calls import TAG, describe_tools, split_text_calls

__all__ = ["TextWrapper"]

NO_CALL = f'there is no {TAG} in it; write {TAG}{{"name": "...", "arguments": {{...}}}}</tool_call>'


class TextWrapper(gymnasium.Wrapper[str, str, Any, Any], RecordConstructorArgs):
    """A `DebugEnv` whose actions are what a model writes and whose observations are what it reads.

    An action is a text with one or more `<tool_call>` blocks in the Hermes form. They are carried out in order, each
    as a step of the environment, until the episode ends; the rest of the text is passed over. A text without a call,
    and one that cannot be read, is a step too, and the answer says how to call a tool.

    The first observation is the problem statement, with the tools and how to call them before it. `info` is that of
    the last call, and `info["observations"]` holds the `Observation` records of all of them.

    Args:
        env: a `DebugEnv`, or one that wraps it, such as `gymnasium.make` returns.
        describe: whether the first observation describes the tools.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, describe: bool = True) -> None:
        RecordConstructorArgs.__init__(self, describe=describe)
        gymnasium.Wrapper.__init__(self, env)  # pyright: ignore[reportUnknownMemberType]
        self.action_space = AnyText(min_length=0, max_length=MAX_TEXT)
        self.observation_space = AnyText(min_length=0, max_length=MAX_TEXT)
        self._describe = describe
        self._turn = 0

    @property
    def prompt(self) -> str:
        """What a model is to be told of the tools: their schemas, how to call them, and their instructions.

        Raises TypeError where what is wrapped is not a `DebugEnv`.
        """
        inner = self.unwrapped
        if not isinstance(inner, DebugEnv):
            raise TypeError(f"TextWrapper wraps a DebugEnv, not {type(inner).__name__}")
        return f"{describe_tools(inner.toolbox.schemas)}\n\n{inner.instructions}".rstrip()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts an episode. Raises as `DebugEnv.reset` does."""
        self._turn = 0
        inner: gymnasium.Env[Any, Any] = self.env
        observation, info = inner.reset(seed=seed, options=options)
        text = f"{self.prompt}\n\n{observation['text']}" if self._describe else str(observation["text"])
        return text[:MAX_TEXT], {**info, "observations": [info["observation"]]}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carries out the calls in a text. Raises SandboxError."""
        calls = split_text_calls(action, prefix=f"turn_{self._turn}")[1]
        if not calls:
            calls = (ToolCall(id=f"turn_{self._turn}-0", name="", parse_error=NO_CALL, raw=action),)
        self._turn += 1
        texts: list[str] = []
        records: list[Observation] = []
        total = 0.0
        terminated = truncated = False
        info: dict[str, Any] = {}
        inner: gymnasium.Env[Any, Any] = self.env
        for call in calls:
            observation, reward, terminated, truncated, info = inner.step(call)
            texts.append(observation["text"])
            records.append(info["observation"])
            total += float(reward)
            if terminated or truncated:
                break
        return "\n\n".join(texts)[:MAX_TEXT], total, terminated, truncated, {**info, "observations": records}
