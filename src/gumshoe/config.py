"""YAML plus dotted overrides, checked against a pydantic model.

    config = load_config(CollectConfig, Path("configs/collect/demo.yaml"), ["policy.kind=human", "workers=4"])

An override is `dotted.key=value`; the value is read as YAML, so `3` is a number, `[a, b]` a list and `{x: 1}` a
mapping; anything after the first `=` belongs to the value. Unknown keys are refused with the nearest known one,
or with all that are known there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, HttpUrl, TypeAdapter, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from gumshoe.errors import ConfigError, DatasetError
from gumshoe.text import did_you_mean, unknown_choice

BUNDLED = Path(__file__).parent / "configs"
"""The configs that are part of the package."""

RUN_CONFIG = "config.yaml"
"""The file in a run folder that holds the config of the run."""


class Config(BaseModel):
    """Base of every config section: frozen, closed to unknown keys; every field has a description.

    Where a section is given in part, its other keys are those of the field's default, which may differ from those of
    the section's class: an `agent` of an evaluation is a seeker, whether or not its tools are given.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _complete_sections(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        whole = dict(given)
        for name, field in cls.model_fields.items():
            section = whole.get(name)
            is_section = isinstance(field.default, Config) and type(field.default) is field.annotation
            if is_section and isinstance(section, Mapping):
                whole[name] = {**field.default.model_dump(exclude_unset=True), **section}
        return whole


ConfigT = TypeVar("ConfigT", bound=BaseModel)


def load_config(model: type[ConfigT], path: Path, overrides: Sequence[str] = ()) -> ConfigT:
    """Reads `path`, applies `overrides` in order and validates. Raises ConfigError."""
    return validate(model, apply_overrides(read_yaml(path), overrides), origin=str(path))


def find_config(path: Path) -> Path:
    """The file that `path` names: the file itself, else the bundled config `collect/demo`, `collect/demo.yaml` or
    `configs/collect/demo.yaml`, which is found from any folder. A path that names neither is returned as it is.
    """
    if (path.exists() and not path.is_dir()) or path.is_absolute():
        return path
    parts = path.parts[1:] if path.parts[:1] == ("configs",) else path.parts
    named = BUNDLED.joinpath(*parts)
    candidates = (named, named.with_name(f"{named.name}.yaml"))
    return next((place for place in candidates if ".." not in parts and place.is_file()), path)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds; an empty file is an empty mapping. Raises ConfigError.

    Bundled configs are found as `find_config` says.
    """
    path = find_config(path)
    if not path.exists() or path.is_dir():
        wrong = f"{path} is a folder, not a config;" if path.is_dir() else f"no config file {path}{_hint(path) or ';'}"
        raise ConfigError(f"{wrong} give the path of a YAML file, or a bundled one like collect/demo")
    try:
        data = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path} must hold a mapping of keys to values, not a {type(data).__name__}")
    return data


def _hint(path: Path) -> str:
    """The bundled config that was probably meant: `collect/demo` for `colect/demo`, or for `demo`, without a folder."""
    known = sorted(str(file.relative_to(BUNDLED).with_suffix("")) for file in BUNDLED.glob("*/*.yaml"))
    given = str(path).removeprefix("configs/").removesuffix(".yaml")
    return did_you_mean(next((name for name in known if name.endswith(f"/{given}")), given), known)


def parse_yaml(text: str) -> Any:
    """The value of a YAML text. Raises ValueError, in one line, for what is not YAML or has a key twice."""
    try:
        return yaml.load(text, _Loader)
    except _DuplicateKey:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(" ".join(str(error).split())) from None


class _DuplicateKey(ValueError):
    """A mapping has a key twice."""


class _Loader(yaml.SafeLoader):
    """Refuses keys that are given twice."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """The next mapping. Raises ValueError where it has a key twice: PyYAML would take the last one."""
        node = super().compose_mapping_node(anchor)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise _DuplicateKey(f"line {key.start_mark.line + 1}: key {key.value!r} is given twice")
                seen.add((key.tag, key.value))
        return node


def apply_overrides(data: dict[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """A copy of `data` with each `dotted.key=value` set. Raises ConfigError."""
    result: dict[str, Any] = _copy(data)
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator or not key:
            raise ConfigError(f"override {override!r} is not of the form key=value")
        try:
            parsed = parse_yaml(value)
        except _DuplicateKey as error:
            raise ConfigError(f"override {override!r}: {error}") from None
        except ValueError:
            parsed = value
        *parents, leaf = key.split(".")
        node = result
        for parent in parents:
            child = node.setdefault(parent, {})
            if not isinstance(child, dict):
                raise ConfigError(f"override {override!r}: {parent} is a value, not a section")
            node = child
        node[leaf] = parsed
    return result


def validate(model: type[ConfigT], data: dict[str, Any], *, origin: str) -> ConfigT:
    """`data` as a `model`. Raises ConfigError that names the first wrong key and, if unknown, the nearest known."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{origin}: {_explain(model, error)}") from None


def _copy(value: Any) -> Any:
    """A copy in which what two aliases share is duplicated, so that an override changes only one of them."""
    if isinstance(value, dict):
        return {key: _copy(child) for key, child in value.items()}
    return [_copy(child) for child in value] if isinstance(value, list) else value


def _explain(model: type[BaseModel], error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    first = next((item for item in problems if item["type"] == "extra_forbidden"), problems[0])
    sections, parents = _walk(model, first["loc"][:-1])
    key = str(first["loc"][-1]) if first["loc"] else ""
    dotted = ".".join([*parents, key])
    if first["type"] == "extra_forbidden":
        known = sorted({name for section in sections for name in section.model_fields})
        hint = did_you_mean(key, known) or f"; known: {', '.join(known)}"
        return f"unknown key {dotted!r}{hint}"
    if first["type"] == "missing":
        return f"key {dotted!r} is missing"
    if first["type"] in ("literal_error", "union_tag_invalid", "union_tag_not_found"):
        return _explain_choice(model, first, dotted)
    return f"{dotted}: {first['msg']} (got {first['input']!r})" if dotted else str(first["msg"])


def _explain_choice(model: type[BaseModel], problem: ErrorDetails, dotted: str) -> str:
    """What is wrong with the kind of a section, or with a value that has to be one of several."""
    context = problem.get("ctx", {})
    name = ".".join(filter(None, [dotted, context.get("discriminator", "").strip("'")]))
    if problem["type"] == "union_tag_not_found":
        sections, _ = _walk(model, problem["loc"])
        return f"key {name!r} is missing; known: {', '.join(filter(None, map(_kind, sections)))}"
    known = re.findall(r"'([^']*)'", context.get("expected_tags") or context["expected"])
    return unknown_choice(name, context.get("tag", problem["input"]), known)


def _walk(model: type[BaseModel], parents: tuple[int | str, ...]) -> tuple[list[type[BaseModel]], list[str]]:
    """The sections that `parents` lead to, more than one where a union is undecided, and the keys as users write them.

    pydantic puts the chosen member of a union among the keys: by its `kind`, or by the name of its class.
    """
    sections: list[type[BaseModel]] = [model]
    written: list[str] = []
    for part in parents:
        chosen = [section for section in sections if part in (_kind(section), section.__name__)]
        if len(sections) > 1 and chosen:
            sections = chosen
            continue
        written.append(str(part))
        children = [
            section
            for parent in sections
            if isinstance(part, str) and part in parent.model_fields
            for section in _sections(parent.model_fields[part].annotation)
        ]
        sections = children or sections
    return sections, written


def _kind(section: type[BaseModel]) -> str | None:
    field = section.model_fields.get("kind")
    return field.default if field is not None and isinstance(field.default, str) else None


def _sections(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _sections(argument)]


def dump_config(config: BaseModel) -> str:
    """The config as YAML, in the order of its fields."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def config_hash(config: BaseModel) -> str:
    """SHA-256 (hex) of the config's canonical JSON."""
    return hashlib.sha256(config.model_dump_json().encode()).hexdigest()


def earlier_config(folder: Path, model: type[BaseModel], command: str) -> dict[str, Any] | None:
    """The config in a run folder, which says what command the run is of; None if there is none.

    One that lacks a key that the `model` of this command needs is of another command, not of another version.

    Raises:
        ConfigError: the folder belongs to another command.
        DatasetError: the config cannot be read.
    """
    place = folder / RUN_CONFIG
    if not place.exists():
        return None
    try:
        earlier = read_yaml(place)
    except ConfigError as error:
        raise DatasetError(f"{place} cannot be read: {error}") from None
    lacking = [name for name, field in model.model_fields.items() if field.is_required() and name not in earlier]
    if lacking:
        raise ConfigError(
            f"{folder} belongs to a run of another command: its {RUN_CONFIG} has no {lacking[0]}, which gumshoe "
            f"{command} needs; choose another folder"
        )
    return earlier


_HTTP_URL = TypeAdapter(HttpUrl)


def web_address(text: str) -> str:
    """The address of an HTTP server, as it is written. Raises ValueError if no request can be sent to it."""
    try:
        _HTTP_URL.validate_python(text)
    except ValidationError:
        hint = "write it like http://127.0.0.1:8000/v1"
        raise PydanticCustomError(
            "web_address", "this is not the address of a server: {hint}", {"hint": hint}
        ) from None
    return text


WebAddress = Annotated[str, AfterValidator(web_address)]
"""The address of an HTTP server, checked before anything is sent there."""
