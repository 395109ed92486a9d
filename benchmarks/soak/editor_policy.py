"""The policy of `trees.py`: it looks, debugs, makes one of several edits as its seed decides, and submits."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bug import gold_edit
from gumshoe.env.diff.parse import parse_patch
from gumshoe.records import Completion, Message, Oracle, Task, ToolCall, ToolSchema

EDIT_TURN = 3


def edits_of(oracle: Oracle) -> list[dict[str, Any]] | None:
    """The right edit and three wrong ones, as arguments of `rewrite`; None where the gold patch is not one hunk."""
    right = gold_edit(oracle)
    if right is None:
        return None
    hunk = parse_patch(oracle.gold_patch)[0].hunks[0]
    before = "".join(line.value for line in hunk if line.is_removed or line.is_context)
    return [right, *({**right, "code": first + before} for first in ("# Looked at.\n", "# Not here.\n", "\n"))]


class Editor:
    """Runs the tests, views the place, stops there in the debugger, edits, runs the tests again, and submits.

    Args:
        task: one of those in the file.
        seed: chooses the edit; about half of the edits chosen are right.
        edits: a JSON file with the edits of each task, by its id.
    """

    kind, model, trusted = "editor", "", True

    def __init__(self, task: Task, seed: int, *, edits: str) -> None:
        self._edits: list[dict[str, Any]] = json.loads(Path(edits).read_text(encoding="utf-8"))[task.id]
        self._seed = seed

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The turn that the conversation is at."""
        del tools
        turn = sum(message.role == "assistant" for message in messages)
        chosen = random.Random(self._seed).choices(self._edits, weights=[3, 1, 1, 1])[0]
        path, line = chosen["path"], chosen["start"]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("eval", {}),
            ("view", {"path": path, "start": max(1, line - 10), "end": line + 20}),
            ("pdb", {"command": f"b {path}:{chosen['end'] - 2}\nc"}),
            ("rewrite", chosen),
            ("eval", {}),
            ("submit", {}),
        ]
        name, arguments = calls[turn]
        call = ToolCall(id=f"c{turn}", name=name, arguments=arguments)
        return Completion(text=f"I call {name}.", tool_calls=(call,), finish_reason="tool_calls")
