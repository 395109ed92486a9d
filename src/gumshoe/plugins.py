"""What others add: tools, task sources, policies and metrics, found by name or by path.

A package announces all but policies as `name = "package.module:attribute"` in the entry-point groups below. Your own
code needs no package: its dotted path will do, and its module may be next to the config that names it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from traceback import FrameSummary, extract_tb
from typing import Any

from pydantic import ValidationError

from gumshoe.config import find_config
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.storage import describe
from gumshoe.text import unknown_choice

TOOLS = "gumshoe.tools"
SOURCES = "gumshoe.sources"
METRICS = "gumshoe.metrics"

_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*[.:][A-Za-z_]\w*")


def announced(group: str) -> dict[str, str]:
    """What installed packages announce in an entry-point group, as a mapping of name to dotted path."""
    return {point.name: point.value for point in entry_points(group=group)}


def is_path(name: str) -> bool:
    """Whether a name is of the form `package.module:attribute`, or has a dot in place of the colon."""
    return _PATH.fullmatch(name) is not None


def search_beside(config: Path) -> None:
    """Makes the modules beside a config importable. At the end of the search path, they hide none of Python's.

    A bundled config is where `find_config` finds it, whatever folder of its name there is here.
    """
    _search(find_config(config).resolve().parent)


def _search(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def load_path(path: str, what: str) -> Any:
    """The attribute that `package.module:attribute` names. The module is installed, beside the config, or in the
    current folder, whichever comes first. Raises ConfigError, which calls it a `what`, where it cannot be imported.
    """
    module, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    _search(Path.cwd())
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        hint = " (leave out .py)" if module.endswith(".py") else ""
        raise ConfigError(f"{what} {path!r} cannot be imported: {error}{hint}") from None
    except Exception as error:  # What a module does when it is imported may fail in any way.
        frames = [frame for frame in extract_tb(error.__traceback__) if frame.name == "<module>"]
        raise ConfigError(f"{what} {path!r} cannot be imported: {_raised(error, frames)}") from None


def raised_in(made: Callable[..., Any], error: Exception) -> str:
    """An exception of one's own function or class in a line: where in its file it came from, its type, its text."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(made))
    except TypeError:
        file = None
    return _raised(error, [frame for frame in extract_tb(error.__traceback__) if frame.filename == file])


def _raised(error: Exception, frames: Sequence[FrameSummary]) -> str:
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    message = describe(error) if isinstance(error, ValidationError) else " ".join(str(error).split())
    return f"{place}{type(error).__name__}: {message}"


def load_named(name: str, what: str, known: Mapping[str, str]) -> Any:
    """What a known name or a path `package.module:attribute` stands for; of a class, an instance made without
    arguments. Raises ConfigError, which calls it a `what`, for a name that is unknown or cannot be imported or made.
    """
    if name in known or is_path(name):
        loaded = load_path(known.get(name, name), what)
        return _made(loaded, name, what) if isinstance(loaded, type) else loaded
    raise ConfigError(f"{unknown_choice(what, name, known)} (or give a path, package.module:attribute)")


def _made(found: type, name: str, what: str) -> Any:
    try:
        return found()
    except GumshoeError:
        raise
    except Exception as error:
        raise ConfigError(f"{what} {name!r} cannot be made: {raised_in(found, error)}") from None
