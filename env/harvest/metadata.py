"""What a package's files say about it, read without running any of them."""

from __future__ import annotations

import ast
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
    tox_toml: dict[str, Any]
    setup: dict[str, Any]
    metadata: dict[str, list[str]]

    @property
    def requires_python(self) -> str:
        """The specifier of the Pythons that it runs on, such as `>=3.9`; empty where none is given."""
        named = section(self.pyproject, "project").get("requires-python")
        if isinstance(named, str):
            return named
        if self.metadata.get("requires-python"):
            return self.metadata["requires-python"][0]
        in_setup = self.setup.get("python_requires")
        return in_setup if isinstance(in_setup, str) else self.setup_cfg.get("options", "python_requires", fallback="")

    @property
    def extras(self) -> list[str]:
        """The names of its optional dependencies."""
        optional = section(self.pyproject, "project", "optional-dependencies")
        poetry = section(self.pyproject, "tool", "poetry", "extras")
        parts = self.setup_cfg
        in_cfg = parts.options("options.extras_require") if parts.has_section("options.extras_require") else []
        in_setup = section(self.setup, "extras_require")
        return list(dict.fromkeys([*optional, *poetry, *in_cfg, *in_setup, *self.metadata.get("provides-extra", [])]))


def read_package(folder: Path) -> PackageFiles:
    """The configuration of the package in `folder`."""
    pyproject = _toml(folder / "pyproject.toml")
    legacy = section(pyproject, "tool", "tox").get("legacy_tox_ini")
    return PackageFiles(
        folder,
        pyproject,
        _ini(read_text(folder / "setup.cfg")),
        _ini(legacy if isinstance(legacy, str) else read_text(folder / "tox.ini")),
        _toml(folder / "tox.toml"),
        _setup(folder / "setup.py"),
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


def _setup(path: Path) -> dict[str, Any]:
    """What a setup.py says in plain text: the arguments of `setup(...)` that are constants, or names of constants."""
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    named: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named[node.targets[0].id] = node.value
    found: dict[str, Any] = {}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if getattr(call.func, "id", None) == "setup" or getattr(call.func, "attr", None) == "setup":
            found.update((word.arg, _constant(word.value, named)) for word in call.keywords if word.arg)
    return found


def _constant(node: ast.expr, named: dict[str, ast.expr]) -> Any:
    """The value of an expression, None where only running it would tell; of a dictionary, as much as can be told."""
    if isinstance(node, ast.Name):
        return _constant(named[node.id], {}) if node.id in named else None
    if isinstance(node, ast.Dict):
        keys = ((getattr(key, "value", None), value) for key, value in zip(node.keys, node.values, strict=True))
        return {key: _constant(value, named) for key, value in keys if isinstance(key, str)}
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _ini(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return configparser.ConfigParser(interpolation=None)
    return parser


def _headers(path: Path) -> dict[str, list[str]]:
    message = HeaderParser().parsestr(read_text(path))
    return {key.lower(): [str(value) for value in message.get_all(key, [])] for key in message}
