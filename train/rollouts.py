"""TRL's GRPO trainer on our episodes.

`environment_factory` is experimental in TRL, which is why its minor version is pinned. Four things of it are adapted
here: the tools' schemas are those that the model was trained with; a call of an unknown tool goes to the environment,
which answers as it does everywhere else; an episode that is over is not continued; and a sandbox that breaks stops the
run, where TRL would show its error to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trl.trainer.grpo_trainer import GRPOTrainer

from gumshoe.errors import GumshoeError
from gumshoe.train.live import Arena

__all__ = ["LiveEnvironment", "LiveTrainer", "score_functions"]

Tokens = list[list[int]]


class LiveEnvironment:
    """An `Episode` in the form that TRL wants: `reset`, and methods that are tools."""

    def __init__(self, arena: Arena) -> None:
        self._episode = arena.episode()
        self._new_turn = True
        self._failure: GumshoeError | None = None

    def reset(self, **row: Any) -> None:
        """Begins an episode of the row's `task`."""
        self._failure = None
        self._new_turn = True
        self._episode.reset(row["task"])

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Calls a tool.

        Args:
            name: which.
            arguments: its arguments.
        """
        first, self._new_turn = self._new_turn, False
        try:
            return self._episode.call(name, arguments, new_turn=first)
        except GumshoeError as error:
            self._failure = error
            raise

    # TRL takes every public method for a tool.

    def _turn(self) -> None:
        """What is called from now on belongs to a new turn."""
        self._new_turn = True

    @property
    def _over(self) -> bool:
        return self._failure is not None or self._episode.over

    def _scores(self) -> dict[str, float]:
        """Raises what broke the episode, if anything did."""
        if self._failure is not None:
            raise self._failure
        return self._episode.scores()

    def _finish(self) -> None:
        """Ends the episode. One that is not over ended with a turn that held no call that could be read."""
        if not self._over:
            self._episode.answer("")
        self._episode.close()


class _AnyTool(dict[str, Callable[..., str]]):
    """Every name is a tool of the environment: it knows what to say of one that is not."""

    def __init__(self, environment: LiveEnvironment) -> None:
        super().__init__()
        self._environment = environment

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Callable[..., str]:
        return lambda **arguments: self._environment.call(name, arguments)


def score_functions(names: Sequence[str]) -> list[Callable[..., list[float]]]:
    """Reward functions, one for each score by its name."""

    def function(name: str) -> Callable[..., list[float]]:
        def scores(environments: Sequence[LiveEnvironment], **kwargs: Any) -> list[float]:
            return [environment._scores()[name] for environment in environments]  # pyright: ignore[reportPrivateUsage]

        scores.__name__ = name
        return scores

    return [function(name) for name in names]


class LiveTrainer(GRPOTrainer):
    """GRPO on live episodes.

    Args:
        arena: the episodes.
        kwargs: those of TRL's trainer.
    """

    def __init__(self, *, arena: Arena, **kwargs: Any) -> None:
        super().__init__(environment_factory=lambda: LiveEnvironment(arena), **kwargs)
        self._env_tools: Mapping[Any, Any] = {None: arena.tools}
        self._rolling: tuple[Tokens, Tokens] | None = None

    def close(self) -> None:
        """Closes every sandbox. Idempotent."""
        for environment in self._environments():
            environment._episode.close()  # pyright: ignore[reportPrivateUsage]

    def _environments(self) -> list[LiveEnvironment]:
        pool: Any = self._environment_pool
        return [environment for group in pool.values() for environment in group]

    def _tool_call_loop(
        self, prompts: Any, prompt_ids: Tokens, completion_ids: Tokens, *rest: Any, **named: Any
    ) -> Any:
        """Carries out calls and asks again, until no turn calls a tool or the episode is over."""
        environments: list[LiveEnvironment] = list(self.environments or ())
        self._sync_tool_dicts: Any = [_AnyTool(environment) for environment in environments]
        self._rolling = (prompt_ids, completion_ids)
        try:
            done = super()._tool_call_loop(prompts, prompt_ids, completion_ids, *rest, **named)
        finally:
            self._rolling = None
        for environment in environments:
            environment._finish()  # pyright: ignore[reportPrivateUsage]
        return done

    def _generate_single_turn(self, prompt_ids: Tokens, *args: Any, **kwargs: Any) -> Any:
        """The next turn of each row; none where its episode is over."""
        if self._rolling is None:
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)
        environments = self._rows_of(prompt_ids)
        live = [row for row, environment in enumerate(environments) if not environment._over]  # pyright: ignore[reportPrivateUsage]
        for environment in environments:
            environment._turn()  # pyright: ignore[reportPrivateUsage]
        turns: Tokens = [[] for _ in prompt_ids]
        logprobs: Any = None
        if live:
            made, made_logprobs = super()._generate_single_turn([prompt_ids[row] for row in live], *args, **kwargs)
            for row, ids in zip(live, made, strict=True):
                turns[row] = ids
            if made_logprobs is not None:
                logprobs = [[] for _ in prompt_ids]
                for row, values in zip(live, made_logprobs, strict=True):
                    logprobs[row] = values
        return turns, logprobs

    def _rows_of(self, rows: Tokens) -> list[LiveEnvironment]:
        """The environment of each row: the one whose prompt and completion so far the row begins with.

        Rows come in the order of the batch, some left out; several of a group may have written the same so far.
        """
        assert self._rolling is not None
        environments: list[LiveEnvironment] = list(self.environments or ())
        candidates = list(zip(*self._rolling, environments, strict=True))
        found: list[LiveEnvironment] = []
        for row in rows:
            place = next(
                index
                for index, (prompt, completion, _) in enumerate(candidates)
                if row[: len(prompt) + len(completion)] == [*prompt, *completion]
            )
            found.append(candidates[place][2])
            del candidates[: place + 1]
        return found
