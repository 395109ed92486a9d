"""Policies whose decisions depend on the seed, so that the branches of a tree differ, and one that breaks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from gumshoe.records import Completion, Message, Task, ToolCall, ToolSchema


class Varied:
    """Looks, looks again, changes the discount by an amount that its seed chooses, and submits.

    Args:
        task: one of `shop_tasks`.
        seed: chooses the amount; ten is right.
        fails_in: the amount that it cannot change to.
    """

    kind, model, trusted = "varied", "", True

    def __init__(self, task: Task, seed: int, *, fails_in: int | None = None) -> None:
        del task
        self._rng = random.Random(seed)
        self._fails_in = fails_in

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        turn = sum(message.role == "assistant" for message in messages)
        amount = self._rng.choice((10, 20, 30))
        if turn == 2 and amount == self._fails_in:
            return Completion(text=str(1 // 0))
        calls: list[tuple[str, dict[str, Any]]] = [
            ("eval", {}),
            ("view", {"path": "shop.py", "start": self._rng.randint(1, 5)}),
            ("rewrite", {"path": "shop.py", "code": f"        total = total - {amount}", "start": 7}),
            ("submit", {}),
        ]
        name, arguments = calls[turn]
        call = ToolCall(id=f"c{turn}", name=name, arguments=arguments)
        return Completion(text=f"I call {name}.", tool_calls=(call,), finish_reason="tool_calls")


class Reporter:
    """Reports a line that its seed chooses; the seventh holds the bug."""

    kind, model, trusted = "reporter", "", True

    def __init__(self, task: Task, seed: int) -> None:
        del task
        self._rng = random.Random(seed)

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        turn = sum(message.role == "assistant" for message in messages)
        line = self._rng.choice((4, 7))
        report: dict[str, Any] = {
            "locations": [{"path": "shop.py", "start": line, "end": line}],
            "findings": [{"fact": 1, "claim": "it fails"}],
            "hypothesis": f"line {line} is wrong",
        }
        name, arguments = ("report", report) if turn else ("eval", dict[str, Any]())
        call = ToolCall(id=f"c{turn}", name=name, arguments=arguments)
        return Completion(text=f"I call {name}.", tool_calls=(call,), finish_reason="tool_calls")


class Failing:
    """Submits at once; on the tasks that it is given, it divides by zero in its second turn."""

    kind, model, trusted = "failing", "", True

    def __init__(self, task: Task, seed: int, tasks: Sequence[str]) -> None:
        del seed
        self._fails = task.id in tasks

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        turn = sum(message.role == "assistant" for message in messages)
        if turn and self._fails:
            return Completion(text=str(1 // 0))
        call = ToolCall(id=f"call-{turn}", name="submit" if turn else "listdir")
        return Completion(text="", tool_calls=(call,))
