"""The commands of this folder, in modules by subject."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gumshoe.config import ConfigT

__all__ = ["config_from"]


def config_from(arguments: argparse.Namespace, model: type[ConfigT], options: Sequence[str], command: str) -> ConfigT:
    """The config of a command: its file, what `-p` overrides in it, and the options that are given, in this order.

    Args:
        arguments: with `config` and `overrides`.
        model: what the config is.
        options: the arguments that are keys of the config.
        command: stands for the file in messages where there is none.

    Raises:
        ConfigError: the config is wrong.
    """
    from gumshoe.config import apply_overrides, read_yaml, validate

    data = {} if arguments.config is None else read_yaml(arguments.config)
    data = apply_overrides(data, arguments.overrides)
    given = {name: getattr(arguments, name) for name in options}
    data.update({name: value for name, value in given.items() if value not in (None, [])})
    return validate(model, data, origin=command if arguments.config is None else str(arguments.config))
