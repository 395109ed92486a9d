# ruff: noqa: SIM905 (lists of words read better as text)
"""The names that belong to others: those of Python, its standard library, and what is installed with a project."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import importlib
import inspect
import keyword
import re
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gumshoe.env.harvest.built_files import entries

__all__ = ["BUILTINS", "ForeignNames", "foreign_names"]

BUILTINS = frozenset({*dir(builtins), *keyword.kwlist, *keyword.softkwlist})
# Whatever a project imports, it may be handed objects of these.
ALWAYS = (
    "abc argparse collections collections.abc contextlib dataclasses datetime decimal enum fractions functools io"
    " inspect itertools logging os pathlib re string sys threading traceback types typing unittest unittest.mock"
    " warnings weakref"
).split()
# Importing these has side effects.
NOT_IMPORTED = frozenset({"antigravity", "this", "idlelib", "turtle", "turtledemo", "tkinter", "lib2to3", "__main__"})
PYTEST = ("pytest", "_pytest")
MAX_BYTES = 2 << 20
WORD = re.compile(rb"[A-Za-z_]\w{2,}")


@dataclass
class ForeignNames:
    """Names of others that a project may meet.

    Attributes:
        attributes: of their classes and objects.
        parameters: of their functions.
        fixtures: of pytest and its plugins: a test asks for them by the name of a parameter.
        modules: that can be imported.
    """

    attributes: set[str] = field(default_factory=set[str])
    parameters: set[str] = field(default_factory=set[str])
    fixtures: set[str] = field(default_factory=set[str])
    modules: set[str] = field(default_factory=set[str])

    @property
    def every(self) -> set[str]:
        """All of these names, with Python's built-in ones."""
        return {*BUILTINS, *self.attributes, *self.parameters, *self.fixtures, *self.modules}


def foreign_names(imported: Iterable[str], site: Path) -> ForeignNames:
    """The names of what a project imports. `site` is the folder of its installed packages, whose code is only read."""
    found = ForeignNames(modules={*sys.stdlib_module_names})
    tops = {name.partition(".")[0] for name in imported} - {""}
    for name in sorted({*ALWAYS, *(name for name in imported if name.partition(".")[0] in sys.stdlib_module_names)}):
        _add(found, *_standard(name))
    for kind in vars(types).values():
        if isinstance(kind, type):
            found.attributes.update(dir(kind))
    for kind in vars(builtins).values():
        found.attributes.update(dir(kind) if isinstance(kind, type) else ())
    for path in entries(site):
        module = path.name.partition(".")[0]
        if path.suffix in (".dist-info", ".pth", ".egg-info") or module == "__pycache__":
            continue
        found.modules.add(module)
        plugin = module.startswith(("pytest", "_pytest")) or module in {"hypothesis", "anyio", "mock"}
        if module in tops or plugin:
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                _read(found, file, names=module in tops or module in PYTEST)
    return found


def _read(found: ForeignNames, file: Path, names: bool) -> None:
    """Adds what one installed file defines; for a compiled one, every word that it holds."""
    if file.suffix not in (".py", ".pyi", ".so") or not file.is_file() or file.stat().st_size > MAX_BYTES:
        return
    data = file.read_bytes()
    if file.suffix == ".so":
        words = {word.decode() for word in WORD.findall(data)} if names else set[str]()
        _add(found, words, words)
        return
    tree = _parsed(data)
    if tree is None:
        return
    if names:
        _add(found, *_of_tree(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = " ".join(ast.dump(item) for item in node.decorator_list)
            if "fixture" in marks:
                found.fixtures.add(node.name)


def _add(found: ForeignNames, attributes: Iterable[str], parameters: Iterable[str]) -> None:
    found.attributes.update(attributes)
    found.parameters.update(parameters)


@functools.cache
def _standard(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes and the parameters of a module of the standard library, or of a name in one."""
    if name.partition(".")[0] in NOT_IMPORTED:
        return frozenset(), frozenset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
    except (ImportError, SyntaxError):
        return frozenset(), frozenset()
    attributes, parameters = set[str](), set[str]()
    for value in list(vars(module).values()):
        if isinstance(value, type):
            attributes.update(dir(value))
            for member in list(vars(value).values()):
                parameters.update(_parameters(member))
        parameters.update(_parameters(value))
    file = getattr(module, "__file__", None)
    tree = _parsed(Path(file).read_bytes()) if file and file.endswith(".py") else None
    if tree is not None:
        more = _of_tree(tree)
        attributes |= more[0]
        parameters |= more[1]
    return frozenset(attributes), frozenset(parameters)


def _parameters(value: Any) -> Iterable[str]:
    try:
        return inspect.signature(value).parameters if callable(value) else ()
    except (ValueError, TypeError):
        return ()


def _parsed(data: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _of_tree(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The attributes that the classes of a file have, and the parameters of its functions."""
    attributes, parameters = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            attributes.update(_bound(node.body))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            attributes.add(node.attr)
        elif isinstance(node, ast.arguments):
            parameters.update(item.arg for item in (*node.posonlyargs, *node.args, *node.kwonlyargs))
    return attributes, parameters


def _bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that the body of a class binds."""
    queue = collections.deque[ast.AST](body)
    while queue:
        node = queue.popleft()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, ast.expr):
            queue.extend(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Tuple):
            queue.extend(node.elts)
