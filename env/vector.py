"""Steps many environments in parallel.

A step of `DebugEnv` waits for programs in a sandbox, so threads are enough: `DebugVectorEnv` steps all its
environments in a thread pool, while `gymnasium.vector.SyncVectorEnv` would wait for one after the other.

    envs = DebugVectorEnv([DebugEnv(task) for task in tasks])
    observations, infos = envs.reset(seed=0)
    observations, rewards, terminated, truncated, infos = envs.step([ToolCall(...) for _ in tasks])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.spaces import ToolAction
from gumshoe.records import ToolCall

__all__ = ["DebugVectorEnv"]

Answer = TypeVar("Answer")
Flags = npt.NDArray[np.bool_]
Rewards = npt.NDArray[np.float64]
Batch = dict[str, tuple[Any, ...]]


class DebugVectorEnv(VectorEnv[Batch, Any, Any]):
    """Steps `n` environments with the same tools at once.

    Observations are `{"text": n strings, "failed": n of 0 or 1}`. After its episode has ended an environment is
    reset by the next `step`, whose action for it is ignored (gymnasium's `NEXT_STEP`).

    Args:
        envs: the environments; they may hold different tasks, and are closed with this one.

    Raises:
        ValueError: there is no environment, or their action spaces differ.
    """

    def __init__(self, envs: Sequence[DebugEnv]) -> None:
        if not envs:
            raise ValueError("a vector environment needs at least one environment")
        if any(env.action_space != envs[0].action_space for env in envs):
            raise ValueError("the environments of a vector environment must have the same tools")
        self.envs = list(envs)
        self.num_envs = len(envs)
        self.metadata = {**DebugEnv.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP}
        self.single_action_space = envs[0].action_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.single_observation_space = envs[0].observation_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        self._pool = ThreadPoolExecutor(max_workers=self.num_envs, thread_name_prefix="gumshoe-env")

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Batch, dict[str, Any]]:
        """Resets all; an integer seed gives the environments `seed, seed + 1, ...`."""
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed or [None] * self.num_envs
        answers = self._all(lambda i: self.envs[i].reset(seed=seeds[i], options=options))
        self._over[:] = False
        return _stack([answer[0] for answer in answers]), self._infos([answer[1] for answer in answers])

    def step(self, actions: Sequence[ToolCall | ToolAction]) -> tuple[Batch, Rewards, Flags, Flags, dict[str, Any]]:
        """Steps all, `actions[i]` in environment `i`.

        Raises:
            SandboxError: the sandbox of one of them broke; the others were stepped.
        """

        def step_one(i: int) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
            if self._over[i]:
                observation, info = self.envs[i].reset()
                return observation, 0.0, False, False, info
            return self.envs[i].step(actions[i])

        answers = self._all(step_one)
        terminated = np.array([answer[2] for answer in answers], dtype=np.bool_)
        truncated = np.array([answer[3] for answer in answers], dtype=np.bool_)
        self._over = terminated | truncated
        rewards = np.array([answer[1] for answer in answers], dtype=np.float64)
        infos = self._infos([answer[4] for answer in answers])
        return _stack([answer[0] for answer in answers]), rewards, terminated, truncated, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Closes every environment and ends the threads."""
        self._all(lambda i: self.envs[i].close())
        self._pool.shutdown()

    def _all(self, work: Callable[[int], Answer]) -> list[Answer]:
        """`work(i)` for every environment at once; waits for all, then raises the first error."""
        futures = [self._pool.submit(work, i) for i in range(self.num_envs)]
        for future in futures:
            future.exception()
        return [future.result() for future in futures]

    def _infos(self, infos: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The infos in gymnasium's form: one array per key, and a mask `_key` of those that have it."""
        merged: dict[str, Any] = {}
        for i, info in enumerate(infos):
            merged = self._add_info(merged, info, i)
        return merged


def _stack(observations: Sequence[dict[str, Any]]) -> Batch:
    return {key: tuple(observation[key] for observation in observations) for key in observations[0]}
