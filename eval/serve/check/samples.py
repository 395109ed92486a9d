"""The conversations that the check sends."""

from __future__ import annotations

from gumshoe.records import Message, ToolCall, ToolSchema

__all__ = ["ASK", "PARALLEL", "REASONED", "TOOLS", "TURNS"]

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


def _told(step: int, call: ToolCall, text: str) -> Message:
    return Message(role="tool", content=f"[step {step}] {text}", tool_call_id=call.id, name=call.name)


TURNS = (
    *_HEAD,
    Message(role="assistant", content="[seek 0.9] I look\nat it.", tool_calls=(_DEEP,)),
    _told(0, _DEEP, "1 total = 'ü'\n  2 return <total> & \"more\""),
    Message(role="assistant", content="", tool_calls=(_AGAIN,)),
    _told(1, _AGAIN, "error: no such file"),
    Message(role="assistant", content="[report 0.9] It is line 2."),
)
"""Turns with text, calls, both and neither."""

PARALLEL = (
    *_HEAD,
    Message(role="assistant", content="[seek 0.5] Both.", tool_calls=(_DEEP, _AGAIN)),
    _told(0, _DEEP, "1 a"),
    _told(0, _AGAIN, "1 b"),
    Message(role="assistant", content="[report 0.9] Done."),
)
"""Two calls in one turn, and their answers."""

REASONED = (
    *_HEAD,
    Message(role="assistant", content="[seek 0.9] I look.", tool_calls=(_DEEP,), reasoning="It may be\nthe total."),
    _told(0, _DEEP, "1 a"),
    Message(role="assistant", content="[report 0.9] Done.", reasoning="So it is."),
    Message(role="user", content="Sure?"),
    Message(role="assistant", content="[report 0.9] Yes."),
)
"""Reasoning in turns before and after a user's message: templates treat the two differently."""
