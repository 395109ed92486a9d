"""What a package's files say about it, read without running any of them."""

from __future__ import annotations

import configparser
import tomllib
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

__all__ = ["PackageFiles", "read_package", "section"]

MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class PackageFiles:
    """The parsed configuration files of a package; empty where there is none, or where it cannot be read."""

    folder: Path
    pyproject: dict[str, Any]
    setup_cfg: configparser.ConfigParser
    tox: configparser.ConfigParser
    metadata: dict[str, list[str]]

    @property
    def requires_python(self) -> str:
        """The specifier of the Pythons that it runs on, such as `>=3.9`; empty where none is given."""
        named = section(self.pyproject, "project").get("requires-python")
        if isinstance(named, str):
            return named
        if self.metadata.get("requires-python"):
            return self.metadata["requires-python"][0]
        return self.setup_cfg.get("options", "python_requires", fallback="")

    @property
    def extras(self) -> list[str]:
        """The names of its optional dependencies."""
        optional = section(self.pyproject, "project", "optional-dependencies")
        poetry = section(self.pyproject, "tool", "poetry", "extras")
        parts = self.setup_cfg
        in_cfg = parts.options("options.extras_require") if parts.has_section("options.extras_require") else []
        return list(dict.fromkeys([*optional, *poetry, *in_cfg, *self.metadata.get("provides-extra", [])]))


def read_package(folder: Path) -> PackageFiles:
    """The configuration of the package in `folder`."""
    return PackageFiles(
        folder,
        _toml(folder / "pyproject.toml"),
        _ini(folder / "setup.cfg"),
        _ini(folder / "tox.ini"),
        _headers(folder / "PKG-INFO"),
    )


def section(data: Any, *keys: str) -> dict[str, Any]:
    """The table below these keys; empty where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def read_text(path: Path) -> str:
    """The text of a regular file of a sensible size; empty where there is none."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _ini(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(read_text(path))
    except configparser.Error:
        return configparser.ConfigParser(interpolation=None)
    return parser


def _headers(path: Path) -> dict[str, list[str]]:
    message = HeaderParser().parsestr(read_text(path))
    return {key.lower(): [str(value) for value in message.get_all(key, [])] for key in message}
