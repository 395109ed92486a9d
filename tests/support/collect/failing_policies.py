"""Policies that break in ways nobody foresaw."""

from __future__ import annotations

from collections.abc import Sequence

from gumshoe.records import Completion, Message, Task, ToolCall, ToolSchema


class Failing:
    """Submits at once; on the tasks that it is given, it divides by zero in its second turn."""

    kind, model, trusted = "failing", "", True

    def __init__(self, task: Task, seed: int, tasks: Sequence[str]) -> None:
        del seed
        self._fails = task.id in tasks

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """A look, then a submit."""
        turn = sum(message.role == "assistant" for message in messages)
        if turn and self._fails:
            return Completion(text=str(1 // 0))
        call = ToolCall(id=f"call-{turn}", name="submit" if turn else "listdir")
        return Completion(text="", tool_calls=(call,))
