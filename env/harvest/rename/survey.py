# ruff: noqa: N815 (ast calls the hooks by the names of its nodes)
"""What the names of a project stand for: read from its syntax trees, without running any of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = ["Survey", "foreign_roots", "survey"]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
HOOK = "pytest_"
BEGINNING = re.compile(r"(_*[A-Za-z]\w*_)(?:%s|\{\w*\})?")


@dataclass
class Survey:
    """The names of a project.

    Attributes:
        variables: bound at module level or in functions, parameters included.
        at_module: those bound at module level.
        parameters: of functions.
        attributes: bound in classes or set on objects.
        fields: class to the names that its body binds, its methods among them.
        callables: functions, methods and classes.
        takes: function, or class, to its parameters, including `**` where it takes any keyword.
        bases: class to the names of its bases.
        borrowed: bound by importing what belongs to others.
        hooks: parameters of pytest's hooks.
        imported: modules of others, as imports name them.
        spoken: strings that could be names.
        beginnings: strings that names are made from, such as `"visit_"`.
        words: every identifier there is.
    """

    variables: set[str] = field(default_factory=set[str])
    at_module: set[str] = field(default_factory=set[str])
    parameters: set[str] = field(default_factory=set[str])
    attributes: set[str] = field(default_factory=set[str])
    fields: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    callables: set[str] = field(default_factory=set[str])
    takes: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    bases: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    borrowed: set[str] = field(default_factory=set[str])
    hooks: set[str] = field(default_factory=set[str])
    imported: set[str] = field(default_factory=set[str])
    spoken: set[str] = field(default_factory=set[str])
    beginnings: set[str] = field(default_factory=set[str])
    words: set[str] = field(default_factory=set[str])

    def fields_of(self, name: str) -> set[str]:
        """What a class and its bases bind."""
        return set[str]().union(*(self.fields.get(item, ()) for item in self._line(name)))

    def taken_by(self, called: str) -> set[str]:
        """The parameters of everything in the project that has this name."""
        return set[str]().union(*(self.takes.get(item, ()) for item in self._line(called)))

    def _line(self, name: str) -> set[str]:
        """A class with its bases and theirs; a function alone."""
        found, queue = {name}, [name]
        while queue:
            new = self.bases.get(queue.pop(), set[str]()) - found
            found |= new
            queue += new
        return found


def survey(trees: Mapping[str, ast.Module], own: Iterable[str]) -> Survey:
    """What the files of a project bind. `own` are the names that its own modules can be imported by."""
    found = Survey()
    for tree in trees.values():
        _Visitor(found, frozenset(own)).visit(tree)
    return found


def foreign_roots(tree: ast.Module, own: frozenset[str]) -> set[str]:
    """The names that a file imports from others."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases = [alias for alias in node.names if alias.name.partition(".")[0] not in own]
            found.update(alias.asname or alias.name.partition(".")[0] for alias in aliases)
        elif isinstance(node, ast.ImportFrom) and not _is_own(node, own):
            found.update(alias.asname or alias.name for alias in node.names)
    return found


def _is_own(node: ast.ImportFrom, own: frozenset[str]) -> bool:
    return node.level > 0 or (node.module or "").partition(".")[0] in own


def _base_name(base: ast.expr) -> str:
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


class _Visitor(ast.NodeVisitor):
    def __init__(self, found: Survey, own: frozenset[str]) -> None:
        self._found = found
        self._own = own
        self._scopes: list[ast.AST] = []

    def _bind(self, name: str) -> None:
        scope = self._scopes[-1] if self._scopes else None
        if isinstance(scope, ast.ClassDef):
            self._found.attributes.add(name)
            self._found.fields.setdefault(scope.name, set()).add(name)
        else:
            self._found.variables.add(name)
            if scope is None:
                self._found.at_module.add(name)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._bind(node.name)
        self._found.words.add(node.name)
        self._found.callables.add(node.name)
        for part in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        names = [item.arg for item in (*arguments, node.args.vararg, node.args.kwarg) if item is not None]
        self._found.parameters.update(names)
        self._found.variables.update(names)
        self._found.words.update(names)
        if node.name.startswith(HOOK):
            self._found.hooks.update(names)
        for item in arguments:
            if item.annotation is not None:
                self.visit(item.annotation)
        scope = self._scopes[-1] if self._scopes else None
        called = scope.name if isinstance(scope, ast.ClassDef) and node.name in ("__init__", "__new__") else node.name
        rest = {"**"} if node.args.kwarg is not None else set[str]()
        self._found.takes.setdefault(called, set()).update({*names, *rest})
        self._inside(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        names = [item.arg for item in arguments if item is not None]
        self._found.parameters.update(names)
        self._found.variables.update(names)
        self._found.words.update(names)
        for part in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(part)
        self._inside(node, [node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._bind(node.name)
        self._found.words.add(node.name)
        self._found.callables.add(node.name)
        self._found.fields.setdefault(node.name, set())
        self._found.bases.setdefault(node.name, set()).update(map(_base_name, node.bases))
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part)
        self._inside(node, node.body)

    def _inside(self, scope: ast.AST, body: Iterable[ast.AST]) -> None:
        self._scopes.append(scope)
        for part in body:
            self.visit(part)
        self._scopes.pop()

    def visit_Name(self, node: ast.Name) -> None:
        self._found.words.add(node.id)
        if not isinstance(node.ctx, ast.Load):
            self._bind(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._found.words.add(node.attr)
        if isinstance(node.ctx, ast.Store):
            self._found.attributes.add(node.attr)
        self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, str):
            return
        if node.value.isidentifier():
            self._found.spoken.add(node.value)
        if made := BEGINNING.fullmatch(node.value):
            self._found.beginnings.add(made[1])

    def visit_keyword(self, node: ast.keyword) -> None:
        self._found.words.update([node.arg] if node.arg else [])
        self.visit(node.value)

    def visit_Global(self, node: ast.Global) -> None:
        self._found.variables.update(node.names)
        self._found.at_module.update(node.names)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self._bind(node.rest)
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._found.words.update(alias.name.split("."))
            if top in self._own:
                self._bind(alias.asname or top)
            else:
                self._found.imported.add(alias.name)
                self._found.borrowed.update({top, alias.asname or top})

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._found.words.update([alias.name, *(node.module or "").split(".")])
            if not _is_own(node, self._own):
                self._found.imported.update({node.module or "", f"{node.module}.{alias.name}"})
                self._found.borrowed.update({alias.name, alias.asname or alias.name})
            elif alias.name != "*":
                self._bind(alias.asname or alias.name)
