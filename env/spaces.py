"""Gymnasium spaces made from tools: what an agent may send, and what it gets back.

An action is `(tool index, arguments)`: a `OneOf` over the tools in use, each a `Dict` of its parameters. An
observation is `{"text": the tool's answer, "failed": 0 or 1}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from gumshoe.errors import ToolFailure
from gumshoe.records import ToolCall
from gumshoe.tools.base import BaseTool

ToolAction = tuple[int, Mapping[str, Any]]

MAX_TEXT = 1_000_000
MAX_SAMPLE = 64
MAX_INTEGER = 10_000


class AnyText(spaces.Text):
    """Text of any characters. `gymnasium.spaces.Text` accepts only those of a set that it holds in memory; what
    programs print has no such set, so this space checks the length alone and samples from printable ASCII.
    """

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string of at most `max_length` characters."""
        return isinstance(x, str) and self.min_length <= len(x) <= self.max_length


def observation_space(max_text: int) -> spaces.Dict:
    """The observations whose text has at most `max_text` characters."""
    return spaces.Dict(
        {"text": AnyText(min_length=0, max_length=max_text), "failed": spaces.Discrete(2)}  # pyright: ignore[reportArgumentType]
    )


def action_space(tools: Sequence[BaseTool]) -> spaces.OneOf[Any]:
    """One space per tool, in order, each a `Dict` with one entry per parameter; without tools, a single empty one."""
    return spaces.OneOf([_arguments_space(tool.parameters) for tool in tools] or [spaces.Dict({})])


def tool_call(action: ToolCall | ToolAction, tools: Sequence[BaseTool], call_id: str) -> ToolCall:
    """The call that an action stands for; a `ToolCall` stands for itself.

    Raises:
        ToolFailure: the action is neither a `ToolCall` nor an element of the action space.
    """
    if isinstance(action, ToolCall):
        return action
    try:
        index, arguments = action
        tool = tools[int(index)]
        properties = _object(tool.parameters.get("properties"))
        plain: dict[str, Any] = {
            key: _chosen(_plain(value), _object(properties.get(key))) for key, value in arguments.items()
        }
    except (TypeError, ValueError, IndexError, AttributeError):
        raise ToolFailure("bad_action", "an action is a ToolCall or (tool index, arguments)") from None
    return ToolCall(id=call_id, name=tool.name, arguments=plain)


def _chosen(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value that a position stands for, if the schema lists values; else the value itself."""
    choices = schema.get("enum")
    return choices[value] if choices and isinstance(value, int) and value not in choices else value


def _arguments_space(schema: Mapping[str, Any]) -> spaces.Dict:
    properties: Mapping[str, Any] = _object(schema.get("properties"))
    return spaces.Dict({name: _value_space(_object(part)) for name, part in properties.items()})


def _object(found: Any) -> Mapping[str, Any]:
    """A part of a schema; the schemas of MCP servers may hold `true` and other things that say nothing."""
    return found if isinstance(found, Mapping) else {}


def _value_space(schema: Mapping[str, Any]) -> spaces.Space[Any]:
    """The space of one JSON schema. Numbers are bounded so that a sample is a plausible line or count."""
    if schema.get("enum"):
        return spaces.Discrete(len(schema["enum"]))
    kind = schema.get("type")
    kinds = [kind] if isinstance(kind, str) else [part for part in kind or [] if part != "null"]
    match kinds[0] if kinds else "string":
        case "integer":
            return spaces.Discrete(MAX_INTEGER, start=1)
        case "number":
            return spaces.Box(0.0, 1.0, shape=(), dtype=np.float64)
        case "boolean":
            return spaces.Discrete(2)
        case "array":
            return spaces.Sequence(_value_space(_object(schema.get("items"))))
        case "object":
            return _arguments_space(schema)
        case _:
            return AnyText(min_length=0, max_length=MAX_SAMPLE)


def _plain(value: Any) -> Any:
    """A sampled value as JSON data."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    json.dumps(value)  # only to raise TypeError for what is no JSON data
    return value
