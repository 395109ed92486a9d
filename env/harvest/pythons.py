"""The Pythons of this machine, and the one that a package asks for."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from gumshoe.errors import TaskError

__all__ = ["Interpreter", "choose_python", "interpreters"]

OLDEST, NEWEST = 6, 20
TIMEOUT_S = 30


@dataclass(frozen=True)
class Interpreter:
    """One Python outside of any virtual environment."""

    path: Path
    version: tuple[int, int, int]

    @property
    def text(self) -> str:
        """The version as `3.11.7`."""
        return ".".join(map(str, self.version))


@functools.cache
def interpreters() -> tuple[Interpreter, ...]:
    """The interpreters that can be found, one of each minor version, this process's own first, then the newest."""
    found: dict[tuple[int, int], Interpreter] = {}
    for path in _candidates():
        version = _version(path)
        if version is not None:
            found.setdefault(version[:2], Interpreter(path, version))
    own = sys.version_info[:2]
    return tuple(sorted(found.values(), key=lambda item: (item.version[:2] != own, [-part for part in item.version])))


def choose_python(requires: str, wanted: str = "") -> Interpreter:
    """The first of `interpreters` that `requires` (a specifier) and `wanted` (a version) allow. Raises TaskError."""
    try:
        allowed = SpecifierSet(requires)
    except InvalidSpecifier:
        allowed = SpecifierSet()
    for interpreter in interpreters():
        chosen = not wanted or interpreter.text == wanted or interpreter.text.startswith(f"{wanted}.")
        if chosen and interpreter.text in allowed:
            return interpreter
    there = ", ".join(interpreter.text for interpreter in interpreters())
    asked = " and ".join(
        filter(None, (requires and f"requires-python {requires}", wanted and f"build.python={wanted}"))
    )
    raise TaskError(f"no Python for {asked}: there are {there}")


def _candidates() -> list[Path]:
    own = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    roots = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions", Path("/opt/python")]
    managed = [path for root in roots if root.is_dir() for path in sorted(root.glob("*/bin/python3"))]
    named = [shutil.which(f"python3.{minor}", path="/usr/local/bin:/usr/bin") for minor in range(OLDEST, NEWEST)]
    return [own, *managed, *(Path(name) for name in named if name)]


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        result = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"Python 3\.(\d+)\.(\d+)", result.stdout)
    return (3, int(match[1]), int(match[2])) if match and int(match[1]) >= OLDEST else None
