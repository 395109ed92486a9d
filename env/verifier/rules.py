"""Which files that a patch changes come from the original repository in a verdict: tests and what configures them."""

from __future__ import annotations

import configparser
import functools
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gumshoe.env.diff import drop_files, parse_patch
from gumshoe.env.inside.programs.project import is_test_file
from gumshoe.env.patterns import Patterns
from gumshoe.env.tasks.projects import is_doctest
from gumshoe.errors import TaskError
from gumshoe.records import Oracle

ALWAYS = {"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"}
"""Files that configure tests whatever is in them, in any folder."""
STARTUP = {"sitecustomize.py", "usercustomize.py"}
RUNNERS = {"pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli", "attr", "attrs"}
"""pytest and what it imports."""
MORE_RUNNERS = {"colorama", "xdist", "execnet", "coverage", "pytest_cov", "pytest_timeout", "hypothesis", "tox"}
"""Plugins of pytest, and other programs that run tests."""
SHADOWED = RUNNERS | MORE_RUNNERS | set(sys.stdlib_module_names) | {"sitecustomize", "usercustomize"}
"""Modules that a new file must not be imported in place of. Python's own `test` is not among the `stdlib_module_names`:
it is a common name for a folder of tests.
"""
CONFIGURATION_FILES = (
    *sorted(ALWAYS | STARTUP),
    "setup.cfg",
    "pyproject.toml",
    "gumshoe_*",
    "*.pth",
    "*.py[co]",
    "entry_points.txt",
)
"""gitignore patterns of what `is_configuration` may take for configuration, without bytecode folders and `*.egg-link`.

Of `*.dist-info/` and `*.egg-info/` they have only `entry_points.txt`, which names plugins.
"""
SYMPY_RUNNERS = ("sympy/testing/runtests.py", "sympy/utilities/runtests.py", "sympy/testing/pytest.py")
MAKEFILES = {"Makefile", "makefile", "GNUmakefile"}
MODULE = re.compile(r"(\w+?)(\.cpython-[\w-]+|\.abi3)?(\.\w+)?")
Sides = tuple[bytes | None, bytes | None]
"""The content of a file before and after a change; None where there is no file."""
UNREADABLE: Sides = (b"\xff", b"\xff")
"""Stands for the content of what is not a regular file, or is not looked at. No text in UTF-8 has this byte, so that
`is_configuration` cannot read a `setup.cfg` or `pyproject.toml` of it, and says yes to be on the safe side.
"""


@dataclass(frozen=True)
class Rules:
    """What is put back for one task.

    Attributes:
        oracle: the answer.
        expected: names the tests that decide.
        entrypoint: the argv that runs them.
    """

    oracle: Oracle
    expected: Oracle
    entrypoint: tuple[str, ...]

    def is_test(self, path: str, readonly: Patterns) -> bool:
        """Whether a file holds tests that decide, or is read-only, or holds tests by the common layouts and is neither
        a `conftest.py` nor changed by the gold patch.
        """
        if path in self.named or readonly.match(path):
            return True
        return is_test_file(path) and path not in self.gold_paths and not path.endswith("conftest.py")

    def configuration(self, changed: Mapping[str, Sides]) -> set[str]:
        """The changed files that configure the tests or run them."""
        found = {path for path, sides in changed.items() if is_configuration(path, sides)}
        if self._own_answer:
            found -= self.gold_paths
        found.update(path for path in set(changed) - self.gold_paths if is_runner(path, self.entrypoint))
        return found

    @functools.cached_property
    def named(self) -> frozenset[str]:
        """The files with the tests that decide."""
        return frozenset((*named_test_files(self.expected), *patch_sides(self.oracle.test_patch)))

    @functools.cached_property
    def gold_paths(self) -> frozenset[str]:
        """The files that the gold patch changes."""
        return frozenset(patch_sides(self.oracle.gold_patch))

    @functools.cached_property
    def own_configuration(self) -> frozenset[str]:
        """Test configuration that the gold patch changes besides the code."""
        configuration = frozenset(path for path in self.gold_paths if is_configuration(path, UNREADABLE))
        return frozenset() if self._own_answer else configuration

    @functools.cached_property
    def _own_answer(self) -> bool:
        """Whether the answer is nothing but test configuration, which is then the code to repair."""
        paths = self.gold_paths
        return bool(paths) and all(is_configuration(path, UNREADABLE) for path in paths)


def patch_sides(patch: str) -> dict[str, Sides]:
    """The paths that a patch names; None where there is no file before or after, links included."""
    try:
        files = parse_patch(patch) if patch.strip() else []
    except TaskError:
        return {}
    found: dict[str, Sides] = {}
    for file in files:
        if file.source is not None:
            found[file.source] = (UNREADABLE[0], None if file.target != file.source else UNREADABLE[1])
        if file.target is not None and file.target not in found:
            found[file.target] = (None, UNREADABLE[1])
    return found


def is_configuration(path: str, sides: Sides) -> bool:
    """Whether a change to a file tells the test runner or the interpreter what to do.

    Args:
        path: relative to the repository's root.
        sides: its content before and after the change; None where there is no file.
    """
    name = path.rpartition("/")[2]
    if name in ALWAYS or name in STARTUP or name.endswith((".pth", ".pyc", ".pyo")):
        return True
    folders = path.split("/")
    if "__pycache__" in folders or path.endswith(".egg-link"):
        return True
    if any(folder.startswith("gumshoe_") for folder in folders):  # May be imported in place of our own package.
        return True
    if any(folder.endswith((".dist-info", ".egg-info")) for folder in folders):  # May name plugins of pytest.
        return True
    if name not in ("setup.cfg", "pyproject.toml"):
        return False
    read = _toml_section if name.endswith(".toml") else _ini_section
    before, after = read(sides[0]), read(sides[1])
    return before is None or after is None or before != after


def is_runner(path: str, entrypoint: Collection[str]) -> bool:
    """Whether a file is part of what `entrypoint`, the argv that runs the tests, starts: a script or its runner."""
    words = {word.removeprefix("./") for word in entrypoint}
    if any(word.endswith("bin/test") for word in words) and path in SYMPY_RUNNERS:
        return True
    return (path in words and not is_test_file(path)) or ("make" in words and path in MAKEFILES)


def named_test_files(oracle: Oracle) -> list[str]:
    """The files that hold the tests to pass, where their names tell. The source files of doctests are left out."""
    tests = [test for test in (*oracle.fail_to_pass, *oracle.pass_to_pass) if "::" in test and not is_doctest(test)]
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def shadowing_paths(changed: Mapping[str, Sides], present: Collection[str]) -> Iterable[str]:
    """New files that Python would import in place of a module of the test runner or of the standard library.

    Args:
        changed: path to content before and after.
        present: every file that is in the repository now.
    """
    new = {path for path, (before, _) in changed.items() if before is None}
    old_folders = {folder for path in (set(present) | set(changed)) - new for folder in _folders(path)}
    for path in sorted(new):
        parts = path.split("/")
        for depth, part in enumerate(parts):
            here, parent = "/".join(parts[: depth + 1]), "/".join(parts[:depth])
            match = MODULE.fullmatch(part)
            in_package = f"{parent}/__init__.py" in present if parent else False
            if match and match[1] in SHADOWED and here not in old_folders and not in_package and _importable(path):
                yield path
                break


def _importable(path: str) -> bool:
    return path.endswith((".py", ".pyc", ".so", ".zip"))


def _folders(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def _ini_section(data: bytes | None) -> Any:
    """What `setup.cfg` says about pytest; None where it cannot be read."""

    def read(text: str) -> Any:
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
        return {name: dict(parser[name]) for name in parser.sections() if "pytest" in name}

    return _read(data, read, configparser.Error)


def _toml_section(data: bytes | None) -> Any:
    """What `pyproject.toml` says about pytest; None where it cannot be read."""
    return _read(data, lambda text: tomllib.loads(text).get("tool", {}).get("pytest", {}), ValueError)


def _read(data: bytes | None, read: Callable[[str], Any], error: type[Exception]) -> Any:
    try:
        return {} if data is None else read(data.decode("utf-8"))
    except (error, UnicodeDecodeError, AttributeError):
        return None


def without_tests(patch: str, oracle: Oracle) -> str:
    """A patch in git's format without the files that the oracle's tests are in. Raises TaskError.

    An agent that does not know the hidden tests may well write to their files; a grader puts them back anyway.
    """
    tests = {path for file in parse_patch(oracle.test_patch) for path in file.paths}
    tests.update(named_test_files(oracle))
    return drop_files(patch, tests)
