"""What an evaluation still has to run, according to its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.collect.data.store import TRAJECTORIES
from gumshoe.collect.policy_config import PolicyConfig
from gumshoe.eval.arms.arm import Arm
from gumshoe.eval.config import ArmConfig, EvalConfig, SolverConfig

__all__ = ["Left", "what_is_left"]


@dataclass(frozen=True)
class Left:
    """The arms with episodes to play, the solver if it has any, and how many episodes that makes."""

    arms: tuple[ArmConfig, ...]
    solver: SolverConfig | None
    episodes: int

    @property
    def policies(self) -> list[tuple[str, PolicyConfig]]:
        """Who will be asked, with a name for messages. Served models are not among them."""
        asked = [(f"arm {arm.name}", arm.policy) for arm in self.arms]
        asked += [("the solver", self.solver.policy)] if self.solver is not None else []
        return [(name, policy) for name, policy in asked if policy is not None]


def what_is_left(config: EvalConfig, arms: Sequence[Arm], planned: int) -> Left:
    """Compares what the folder of the evaluation holds with the number of episodes that are planned for each arm.

    `arms` is empty if they could not be made; the arms of the config then stand in for them.
    """
    out = Path(config.out)
    seekers = {arm.name: planned - _lines(out / "arms" / arm.name / TRAJECTORIES) for arm in config.arms if arm.runs}
    solver = config.solver
    solved = [arm.name for arm in arms if arm.solver is not None and arm.solver.name] if arms else list(seekers)
    if solver is None:
        missing = 0
    elif solver.kind == "scripted":
        missing = planned * len(solved) - _lines(out / "solver.jsonl")
    else:
        file = "attempts.jsonl" if solver.kind == "command" else TRAJECTORIES
        missing = sum(max(0, planned - _lines(out / "solver" / name / file)) for name in solved)
    return Left(
        arms=tuple(arm for arm in config.arms if seekers.get(arm.name, 0) > 0),
        solver=solver if missing > 0 else None,
        episodes=sum(max(0, number) for number in (missing, *seekers.values())),
    )


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except (FileNotFoundError, NotADirectoryError):
        return 0
