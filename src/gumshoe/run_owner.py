"""Which command a run folder belongs to: its config.yaml tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gumshoe.config import read_yaml
from gumshoe.errors import ConfigError, DatasetError

__all__ = ["RUN_CONFIG", "earlier_config"]

RUN_CONFIG = "config.yaml"


def earlier_config(folder: Path, model: type[BaseModel], command: str) -> dict[str, Any] | None:
    """The config that is in a run folder; None if there is none. Nothing is written.

    Args:
        folder: the run folder, which may be missing.
        model: the command's config. One that lacks a key that this one needs is of another command, not of another
            version.
        command: its name.

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
