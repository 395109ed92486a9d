"""The conversations that a check of a server sends, and how training renders them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.records import Message, ToolCall, ToolSchema

__all__ = ["ASK", "CONVERSATIONS", "TOOLS", "TrainedRow", "Unrendered", "render_rows"]

ASK = "Show the file cart.py with the tool view."

TOOLS = (
    ToolSchema(
        name="view",
        description="Shows a file.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
    ToolSchema(
        name="report",
        description="Hands over what was found.",
        parameters={"type": "object", "properties": {"hypothesis": {"type": "string"}}, "required": ["hypothesis"]},
    ),
)

_DEEP = ToolCall(id="1", name="view", arguments={"path": "é b.py", "start": 3, "deep": {"b": [1, "2"], "a": None}})
_AGAIN = ToolCall(id="2", name="view", arguments={"path": "cart.py"})
_HEAD = (Message(role="system", content="You look for bugs."), Message(role="user", content="test_total fails."))


def _answer(step: int, call: ToolCall, text: str) -> Message:
    return Message(role="tool", content=f"[step {step}] {text}", tool_call_id=call.id, name=call.name)


CONVERSATIONS: dict[str, tuple[Message, ...]] = {
    # Turns with text, one call, two calls, and no text.
    "conversation": (
        *_HEAD,
        Message(role="assistant", content="[seek 0.9] I look\nat it.", tool_calls=(_DEEP,)),
        _answer(0, _DEEP, "1 total = 'ü'\n  2 return <total> & \"more\""),
        Message(role="assistant", content="[seek 0.5] Both.", tool_calls=(_DEEP, _AGAIN)),
        _answer(1, _DEEP, "1 a"),
        _answer(1, _AGAIN, "1 b"),
        Message(role="assistant", content="", tool_calls=(_AGAIN,)),
        _answer(2, _AGAIN, "error: no such file"),
        Message(role="assistant", content="[report 0.9] It is line 2."),
    ),
    # Reasoning in turns before and after a user's message: templates treat the two differently.
    "reasoning": (
        *_HEAD,
        Message(role="assistant", content="[seek 0.9] I look.", tool_calls=(_DEEP,), reasoning="It may be\nthe total."),
        _answer(0, _DEEP, "1 a"),
        Message(role="assistant", content="[report 0.9] Done.", reasoning="So it is."),
        Message(role="user", content="Sure?"),
        Message(role="assistant", content="[report 0.9] Yes."),
    ),
}


class Unrendered(Exception):
    """The training path could not be asked; the message says why."""


@dataclass(frozen=True)
class TrainedRow:
    """A conversation as training sees it: its tokens, and where each assistant turn begins."""

    ids: tuple[int, ...]
    starts: tuple[int, ...]


def render_rows(
    model: Path, conversations: Sequence[Sequence[Message]], tools: Sequence[ToolSchema]
) -> list[TrainedRow]:
    """The conversations as `gumshoe train` would render them, in a separate process, so that nothing here needs torch.

    Raises Unrendered.
    """
    rows = [
        {
            "messages": [message.as_openai(arguments_as_text=False) for message in messages],
            "tools": [tool.as_openai() for tool in tools],
        }
        for messages in conversations
    ]
    done = subprocess.run(
        [sys.executable, "-m", "gumshoe.train.masks", str(model)],
        input="".join(f"{json.dumps(row)}\n" for row in rows),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["it printed nothing"]
        raise Unrendered(f"the training path cannot render here: {lines[-1][:300]}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [answer["error"] for answer in answers if "error" in answer]
    if wrong:
        raise Unrendered(f"the training path cannot render here: {wrong[0]}")
    return [TrainedRow(tuple(answer["input_ids"]), tuple(answer["starts"])) for answer in answers]
