"""Scripted live episodes: each is worth the more, the more of its turns call a tool, or what a list says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gumshoe.errors import SandboxError
from gumshoe.train.config import GrpoConfig
from support.train.training_rows import TOOLS, conversation

EPISODES = "support.train.counted_episodes:make_episodes"


@dataclass
class Asked:
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=lambda: TOOLS)


class Counted:
    """Over after two turns. A turn without a call is nudged."""

    def __init__(self, task: str, *, starts: bool, fails: bool, worth: float | None) -> None:
        self.messages = conversation(int(task))[:2]
        self.starts = starts
        self.fails = fails
        self.worth = worth
        self.turns: list[str] = []
        self.requests: list[list[dict[str, Any]]] = []
        self.closed = 0

    def next_request(self) -> Asked | None:
        if not self.starts:
            raise SandboxError("the sandbox does not start")
        if len(self.turns) >= 2:
            return None
        self.requests.append(list(self.messages))
        return Asked(list(self.messages))

    def accept(self, text: str, *, cut_off: bool = False) -> None:
        if self.fails:
            raise SandboxError("the sandbox is gone")
        self.messages.append({"role": "assistant", "content": text})
        if "<tool_call>" in text:
            self.messages.append({"role": "tool", "name": "view", "content": f"[step {len(self.turns)}] text"})
        else:
            self.messages.append({"role": "user", "content": "You called no tool." + " Cut off." * cut_off})
        self.turns.append(text)

    def scores(self) -> dict[str, float | None]:
        called = ["<tool_call>" in text for text in self.turns]
        return {"line_f1": sum(called) / 2 if self.worth is None else self.worth, "format": float(any(called))}

    def close(self) -> None:
        self.closed += 1


class CountedEpisodes:
    """Of the section `live`: the `tasks`, which episodes, by number, are to break, and what each is `worth`."""

    scores: Sequence[str] = ("line_f1", "format")

    def __init__(self, live: Mapping[str, Any]) -> None:
        self.tasks: Sequence[str] = live.get("tasks", ("0", "1"))
        self.worth: Sequence[float | None] = live.get("worth", ())
        self.fails = live.get("fails", ())
        self.never_start = live.get("never_start", ())
        self.made: list[Counted] = []

    def opening(self, task: str) -> list[dict[str, Any]]:
        return conversation(int(task))[:2]

    def episode(self, task: str) -> Counted:
        number = len(self.made)
        starts, fails = number not in self.never_start, number in self.fails
        worth = self.worth[number] if self.worth else None
        self.made.append(Counted(task, starts=starts, fails=fails, worth=worth))
        return self.made[-1]


def make_episodes(live: Mapping[str, Any]) -> CountedEpisodes:
    return CountedEpisodes(live)


def config(model: Path, out: Path, **changes: Any) -> GrpoConfig:
    base: dict[str, Any] = {
        "out": str(out),
        "model": str(model),
        "episodes": {"environment": EPISODES, "live": {}, "weights": {"line_f1": 1.0, "format": 0.5}, "max_tokens": 60},
        "group": 4,
        "batch": 4,
        "max_steps": 2,
        "max_completion": 300,
        "temperature": 0.3,
        "learning_rate": 1e-4,
        "threads": 1,
        "device": "cpu",
    }
    return GrpoConfig.model_validate({**base, **changes})
