"""What a row of a dataset must be before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gumshoe.errors import DatasetError
from gumshoe.storage import describe, parse_json

__all__ = ["as_conversation", "checked_row"]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True)


class RowFunction(_Part):
    """What a call or a tool says of its function."""

    name: str | None = None


class RowCall(_Part):
    """A tool call."""

    function: RowFunction | None = None


class RowMessage(_Part):
    """A message of a conversation."""

    role: str
    content: str | list[Any] | None = None
    tool_calls: list[RowCall] | None = None


class RowTool(RowFunction):
    """A tool in the OpenAI form, with or without its outer layer."""

    function: RowFunction | None = None


class RowStep(_Part):
    """An entry of the step table."""

    step: int


class RowSampled(_Part):
    """The tokens that were sampled for a message."""

    message: int
    token_ids: list[int]


class RowColumns(_Part):
    """The columns that are read."""

    messages: list[RowMessage] = []
    prompt: list[RowMessage] = []
    completion: list[RowMessage] = []
    chosen: list[RowMessage] = []
    rejected: list[RowMessage] = []
    tools: list[RowTool] | None = None
    steps: list[RowStep] | None = None
    sampled: list[RowSampled] | None = None


_SPLIT = frozenset({"prompt", "completion", "chosen", "rejected"})
"""Columns that hold the conversation where there are no `messages`."""


def checked_row(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The row, with tools that are JSON text as what they say, as TRL reads them.

    Raises:
        DatasetError: a message, a tool, a step or a sampled turn is of another form; `name` is the row in the message.
    """
    tools = row.get("tools")
    if isinstance(tools, str):
        try:
            row = {**row, "tools": parse_json(tools) if tools.strip() else None}
        except ValueError as error:
            raise DatasetError(f"{name} cannot be used: tools is a text that is not JSON: {error}") from None
    unread = _SPLIT if "messages" in row else frozenset[str]()
    try:
        RowColumns.model_validate({column: value for column, value in row.items() if column not in unread})
    except ValidationError as error:
        raise DatasetError(f"{name} cannot be used: {describe(error)}") from None
    return row


def as_conversation(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row in prompt and completion form as a conversation, of which the completion trains."""
    if "messages" in row:
        return row
    read = [{**message, "weight": 0} if message["role"] == "assistant" else message for message in row["prompt"]]
    return {**row, "messages": [*read, *row["completion"]], "steps": None}
