"""Conversations rendered by the training path, in a separate process, so that nothing here needs torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.records import Message, ToolSchema

__all__ = ["TrainedRow", "Unrendered", "render_rows"]


class Unrendered(Exception):
    """The training path could not be asked; the message says why."""


@dataclass(frozen=True)
class TrainedRow:
    """A conversation as training sees it: its tokens, and where each assistant turn begins."""

    ids: tuple[int, ...]
    starts: tuple[int, ...]

    def prompt(self, turn: int) -> tuple[int, ...]:
        """The tokens in front of an assistant turn: what a server must give the model to read."""
        return self.ids[: self.starts[turn]]


def render_rows(
    model: Path, conversations: Sequence[Sequence[Message]], tools: Sequence[ToolSchema]
) -> list[TrainedRow]:
    """The conversations as `gumshoe train` would render them. Raises Unrendered."""
    rows = [
        {
            "messages": [message.as_openai(arguments_as_text=False) for message in messages],
            "tools": [tool.as_openai() for tool in tools],
        }
        for messages in conversations
    ]
    done = subprocess.run(
        [sys.executable, "-m", "gumshoe.train.rendering", str(model)],
        input="".join(f"{json.dumps(row)}\n" for row in rows),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise Unrendered(f"the training path cannot render here: {said[-1][:300]}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [TrainedRow(tuple(answer["input_ids"]), tuple(answer["starts"])) for answer in answers]
