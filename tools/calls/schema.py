"""From a typed function with a Google docstring to what a model reads, and from its arguments back to the function.

The JSON schemas are compact (no titles, no references, no null branches), because every model pays for them in tokens
on every turn.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast, get_type_hints

from docstring_parser import DocstringStyle
from docstring_parser import parse as parse_docstring
from pydantic import JsonValue, PydanticUserError, TypeAdapter, ValidationError, WithJsonSchema
from pydantic_core import PydanticSerializationError

from gumshoe.errors import ToolFailure
from gumshoe.text import clean_json

_TYPES = {str: "string", int: "integer"}
_NOISE = {"title", "$defs", "additionalProperties"}


@dataclass(frozen=True)
class CallSignature:
    """How a tool is called: what the model reads, `parameters` being a JSON schema, and the check of its answer."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    adapters: Mapping[str, TypeAdapter[Any]]

    @property
    def usage(self) -> str:
        """The right call in one line, such as `view(path: string, start?: integer)`."""
        shown = [
            f"{name}{'' if name in self._required else '?'}: {schema.get('type', 'any')}"
            for name, schema in self._properties.items()
        ]
        return f"{self.name}({', '.join(shown)})"

    @property
    def _properties(self) -> dict[str, dict[str, JsonValue]]:
        return cast("dict[str, dict[str, JsonValue]]", self.parameters["properties"])

    @property
    def _required(self) -> list[str]:
        return cast("list[str]", self.parameters.get("required", []))

    def bind(self, arguments: Mapping[str, JsonValue]) -> dict[str, Any]:
        """The arguments of the function, checked; those that are left out have their defaults.

        Null and empty values mean the default of an optional argument; a null argument that the tool does not
        have is dropped (stored datasets pad with nulls).

        Raises:
            ToolFailure: an argument is missing, unknown or of the wrong type; the text shows the right call.
        """
        for name, value in arguments.items():
            if name not in self.adapters and value is not None:
                raise self._wrong(f"unknown argument {name!r}")
        bound: dict[str, Any] = {}
        for name, adapter in self.adapters.items():
            value = arguments.get(name)
            if name not in self._required and value in (None, "", [], {}):
                continue
            if value is None:
                raise self._wrong(f"argument {name!r} is missing")
            try:
                bound[name] = adapter.validate_python(_decoded(clean_json(value), self._properties[name]))
            except ValidationError as error:
                raise self._wrong(f"argument {_explain(name, error)}") from None
        return bound

    def _wrong(self, what: str) -> ToolFailure:
        return ToolFailure("bad_arguments", f"{what}. Usage: {self.usage}")


def _decoded(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value, with those arrays and objects decoded that a model has written as JSON text."""
    if isinstance(value, str) and schema.get("type") in ("array", "object"):
        with suppress(ValueError, RecursionError):
            value = clean_json(json.loads(value))
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return [_decoded(item, schema["items"]) for item in cast("list[Any]", value)]
    return value


def object_schema(required: Mapping[str, type], *, optional: Mapping[str, type] | None = None) -> dict[str, Any]:
    """The JSON schema of an object with fields of the types str and int."""
    fields = {**required, **(optional or {})}
    return {
        "type": "object",
        "properties": {name: {"type": _TYPES[kind]} for name, kind in fields.items()},
        "required": list(required),
    }


def list_schema(required: Mapping[str, type], *, optional: Mapping[str, type] | None = None) -> WithJsonSchema:
    """What a model reads of a list of such objects, to annotate an argument with."""
    return WithJsonSchema({"type": "array", "items": object_schema(required, optional=optional)})


def _explain(name: str, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{name + where!r}: {message[:1].lower()}{message[1:]}"


def read_signature(function: Callable[..., Any], name: str, *, skip: int = 0) -> CallSignature:
    """Reads how `function` is called: typed in full; its docstring's text is the description, its `Args:` describe the
    arguments, without the first ones that are to `skip`, which the model does not give (`self`, `workspace`).

    Raises:
        TypeError: there is no docstring, or a parameter has no type, one that is not known, or one that JSON cannot
            carry.
    """
    docstring = inspect.getdoc(function)
    if not docstring:
        raise TypeError(f"tool {name}: it needs a docstring, which tells the model what it does")
    documentation = parse_docstring(docstring, style=DocstringStyle.GOOGLE)
    described = {item.arg_name: " ".join((item.description or "").split()) for item in documentation.params}
    text = [part for part in (documentation.short_description, documentation.long_description) if part]
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {name}: a type cannot be found: {error}") from None
    arguments = list(inspect.signature(function).parameters.values())[skip:]
    read = {argument.name: _read_argument(name, argument, hints, described) for argument in arguments}
    parameters: dict[str, Any] = {"type": "object", "properties": {key: schema for key, (_, schema) in read.items()}}
    required = [argument.name for argument in arguments if argument.default is argument.empty]
    if required:
        parameters["required"] = required
    adapters = {key: adapter for key, (adapter, _) in read.items()}
    return CallSignature(name, " ".join(" ".join(text).split()), parameters, adapters)


def _read_argument(
    tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], described: Mapping[str, str]
) -> tuple[TypeAdapter[Any], dict[str, JsonValue]]:
    if parameter.name not in hints:
        raise TypeError(f"tool {tool}: parameter {parameter.name!r} needs a type")
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
        raise TypeError(f"tool {tool}: parameter {parameter.name!r} cannot be given by name")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hints[parameter.name])
        schema = compact_schema(cast("dict[str, JsonValue]", adapter.json_schema()))
    except PydanticUserError:
        raise TypeError(
            f"tool {tool}: parameter {parameter.name!r} has a type that JSON cannot carry: take text, numbers, lists "
            "or Pydantic models"
        ) from None
    if described.get(parameter.name):
        schema["description"] = described[parameter.name]
    if parameter.default not in (parameter.empty, None, "", False, ()):
        try:
            schema["default"] = adapter.dump_python(parameter.default, mode="json", warnings="error")
        except PydanticSerializationError:
            raise TypeError(f"tool {tool}: the default of {parameter.name!r} is not of its type") from None
    return adapter, schema


def compact_schema(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A JSON schema without titles, references and null branches. Raises TypeError for one that contains itself."""
    definitions = schema.get("$defs", {})
    assert isinstance(definitions, dict)
    result = _compact(dict(schema), definitions, ())
    assert isinstance(result, dict)
    return result


def _compact(node: JsonValue, definitions: Mapping[str, JsonValue], inside: tuple[str, ...]) -> JsonValue:
    if isinstance(node, list):
        return [_compact(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str):
        target = reference.rpartition("/")[2]
        if target in inside:
            raise TypeError(f"type {target} contains itself, which a tool's schema cannot show")
        return _compact(definitions[target], definitions, (*inside, target))
    branches = node.get("anyOf")
    if isinstance(branches, list) and {"type": "null"} in branches:
        node = _without_null(node, branches)
        return _compact(node, definitions, inside)
    kept: dict[str, JsonValue] = {}
    for key, value in node.items():
        if key in _NOISE or (key == "default" and value is None):
            continue
        if key == "properties" and isinstance(value, dict):
            kept[key] = {name: _compact(item, definitions, inside) for name, item in value.items()}
        else:
            kept[key] = _compact(value, definitions, inside)
    return kept


def _without_null(node: dict[str, JsonValue], branches: list[JsonValue]) -> dict[str, JsonValue]:
    others = [branch for branch in branches if branch != {"type": "null"}]
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    if len(others) == 1 and isinstance(others[0], dict):
        return {**others[0], **rest}
    return {**rest, "anyOf": others}
