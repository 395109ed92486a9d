"""`gumshoe config`: every key of a config, from the models that check it."""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gumshoe.config import load_config
from gumshoe.errors import ConfigError

CONFIGS: Mapping[str, str] = {
    "collect": "gumshoe.collect.config:CollectConfig",
    "eval": "gumshoe.eval.config:EvalConfig",
    "train": "gumshoe.train.config:TrainConfig",
    "grpo": "gumshoe.train.config:GrpoConfig",
    "dpo": "gumshoe.train.config:DpoConfig",
    "harvest": "gumshoe.env.bugs.config:HarvestConfig",
    "synth": "gumshoe.env.bugs.config:SynthConfig",
}

EXAMPLES = """\
examples:
  gumshoe config collect                  every key, with its type, default and meaning
  gumshoe config collect sandbox          only keys that begin with `sandbox`
  gumshoe config eval --schema            JSON Schema, for editors that complete YAML

grpo and dpo are the configs of `gumshoe train --method grpo` and `--method dpo`. Set a key in a YAML file, or with
-p KEY=VALUE.
"""

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Key:
    """One key of a config. `when` is the kind of section that has it, such as `policy.kind: openai`; empty: any."""

    name: str
    type: str
    default: str
    description: str
    when: str = ""


def configure_config(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("config", choices=list(CONFIGS), help="command whose config is shown")
    parser.add_argument("key", nargs="?", default="", help="show only keys that begin with this")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema")


def run_config(arguments: argparse.Namespace) -> int:
    """Prints the keys."""
    model = config_model(arguments.config)
    if arguments.schema:
        print(json.dumps(model.model_json_schema(), indent=2))
        return 0
    keys = [key for key in config_keys(model) if key.name.startswith(arguments.key)]
    if not keys:
        raise ConfigError(f"no key of this config begins with {arguments.key!r}: see gumshoe config {arguments.config}")
    print(_as_text(keys))
    return 0


def config_model(name: str) -> type[BaseModel]:
    """The model of one of `CONFIGS`."""
    module, _, attribute = CONFIGS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def commands_of(path: Path) -> set[str]:
    """The commands that would take the config in a file."""
    commands: set[str] = set()
    for name in CONFIGS:
        with suppress(ConfigError):
            load_config(config_model(name), path)
            commands.add("train" if name in ("grpo", "dpo") else name)
    return commands


def config_keys(model: type[BaseModel]) -> list[Key]:
    """Every key of a config, in the order of its fields. Items of a list are written `arms[]`."""
    schema = model.model_json_schema()
    return list(_keys(schema, schema.get("$defs", {}), "", "", {}))


def _as_text(keys: list[Key]) -> str:
    lines: list[str] = []
    when = ""
    for key in keys:
        if key.when != when:
            lines.append("")
            when = key.when
        default = f" = {key.default}" if key.default else ""
        lines += [f"{key.name}: {key.type}{default}", f"    {key.description}"]
    return "\n".join(lines)


def _keys(section: Schema, models: Schema, prefix: str, when: str, defaults: Mapping[str, Any]) -> Iterator[Key]:
    """The keys of a section. `defaults` are those of the field that holds it, which take the place of its own."""
    required = section.get("required", ())
    for name, field in section.get("properties", {}).items():
        key = prefix + name
        parts = list(_parts(field, models))
        value = defaults.get(name, field.get("default"))
        default = "" if name in required or "default" not in field else _default(value, parts)
        description = field.get("description", section.get("description", "") if name == "kind" else "")
        type_name = " or ".join(dict.fromkeys(_type(part, models) for part in parts))
        yield Key(key, f"{type_name}, required" if name in required else type_name, default, _line(description), when)
        yield from _inside(key, parts, models, when, value if isinstance(value, dict) else {})


def _line(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _inside(key: str, parts: list[Schema], models: Schema, when: str, defaults: Mapping[str, Any]) -> Iterator[Key]:
    """The keys of the sections that a field may hold."""
    sections = [part for part in parts if "properties" in part]
    for section in sections:
        kind = section["properties"].get("kind", {}).get("const")
        several = kind and len(sections) > 1
        own = {} if several else defaults
        yield from _keys(section, models, f"{key}.", f"{key}.kind: {kind}" if several else when, own)
    for part in parts:
        if part.get("type") == "array" and "items" in part:
            yield from _inside(f"{key}[]", list(_parts(part["items"], models)), models, when, {})


def _parts(field: Schema, models: Schema) -> Iterator[Schema]:
    """The alternatives of a field, references resolved."""
    if "$ref" in field:
        yield from _parts(models[field["$ref"].rpartition("/")[2]], models)
    elif "anyOf" in field or "oneOf" in field:
        for part in field.get("anyOf", field.get("oneOf", ())):
            yield from _parts(part, models)
    else:
        yield field


def _type(part: Schema, models: Schema) -> str:
    if "const" in part or "enum" in part:
        return " or ".join(str(value) for value in part.get("enum", [part.get("const")]))
    if part.get("type") == "array":
        items = dict.fromkeys(_type(item, models) for item in _parts(part.get("items", {}), models))
        return f"list of {' or '.join(items)}"
    if "properties" in part:
        return "section"
    name: str = part.get("type", "any value")
    return {"object": "mapping", "boolean": "true or false"}.get(name, name)


def _default(value: Any, parts: list[Schema]) -> str:
    """A default as YAML has it; none is shown for a section, whose keys follow."""
    return "" if isinstance(value, dict) and any("properties" in part for part in parts) else json.dumps(value)
