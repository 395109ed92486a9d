# ruff: noqa: N802 (libcst calls the hooks by the names of its nodes)
"""Replaces the names in one Python file, each according to its role there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import libcst as cst

from gumshoe.env.harvest.rename.foreign import BUILTINS
from gumshoe.env.harvest.rename.names import Names
from gumshoe.env.harvest.rename.prose import in_data, in_distribution, in_prose, is_compound
from gumshoe.env.harvest.rename.strings import (
    CODE_STRINGS,
    LISTS_OF_NAMES,
    in_arguments,
    in_literals,
    in_module_option,
    in_string,
)
from gumshoe.env.harvest.rename.survey import foreign_roots

__all__ = ["rewrite"]

VARIABLE, ATTRIBUTE, OWN, KEEP = "variable", "attribute", "own", "keep"
PARAMETER, ANYTHING = "parameter", "anything"
# These pass on the keyword arguments that they are given.
PASSING_ON = frozenset({"partial", "partialmethod", "replace", "_replace", "__init__", "__new__", "__call__", "cls"})
LITERALS = (cst.BaseString, cst.BaseNumber, cst.List, cst.Tuple, cst.Dict, cst.Set)


def rewrite(text: str, names: Names, own: frozenset[str]) -> str:
    """The file with its names replaced. `own` are the names that the project's modules can be imported by.

    Raises libcst.ParserSyntaxError or SyntaxError when `text` is not Python.
    """
    roots = foreign_roots(ast.parse(text), own)
    return cst.parse_module(text).visit(_Rewriter(names, own, frozenset(roots))).code


class _Rewriter(cst.CSTTransformer):
    """Hooks for the fields of nodes tell the role of the name that comes next."""

    def __init__(self, names: Names, own: frozenset[str], foreign: frozenset[str]) -> None:
        super().__init__()
        self._names = names
        self._own = own
        self._foreign = foreign
        self._roles: list[str] = []
        self._calls: list[cst.Call | None] = []
        self._prose = 0
        self._annotated = 0
        # The class whose body is being read, or None inside a function.
        self._scopes: list[str | None] = []
        self._keywords: list[str] = []

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self._new(original_node.value))

    def _new(self, name: str) -> str:
        role = self._roles[-1] if self._roles else VARIABLE
        if role == KEEP:
            return name
        if role == OWN:
            return self._names.part(name)
        if role == ANYTHING:
            return self._names.anything(name)
        if role == VARIABLE and self._in_class(name):
            role = ATTRIBUTE
        return self._names.attribute(name) if role == ATTRIBUTE else self._names.variable(name)

    def _in_class(self, name: str) -> bool:
        scope = self._scopes[-1] if self._scopes else None
        return scope is not None and name in self._names.survey.fields.get(scope, ())

    # Attributes

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:
        self._roles.append(self._role_behind(node.value))

    def leave_Attribute_attr(self, node: cst.Attribute) -> None:
        self._roles.pop()

    def _role_behind(self, value: cst.BaseExpression) -> str:
        if self._roles and self._roles[-1] in (OWN, KEEP):
            return self._roles[-1]
        if isinstance(value, LITERALS):
            return KEEP
        root = _root(value)
        if root in self._foreign or (root in BUILTINS and root != "super"):
            return KEEP
        return (
            OWN if root in self._names.survey.at_module | self._names.modules and self._leads_on(value) else ATTRIBUTE
        )

    def _leads_on(self, value: cst.BaseExpression) -> bool:
        """Whether an expression names a module of the project."""
        name = value.value if isinstance(value, cst.Name) else _last(value)
        return name in self._names.modules

    def visit_MatchKeywordElement_key(self, node: cst.MatchKeywordElement) -> None:
        self._roles.append(ATTRIBUTE)

    def leave_MatchKeywordElement_key(self, node: cst.MatchKeywordElement) -> None:
        self._roles.pop()

    # Definitions

    def visit_ClassDef_body(self, node: cst.ClassDef) -> None:
        self._scopes.append(node.name.value)

    def leave_ClassDef_body(self, node: cst.ClassDef) -> None:
        self._scopes.pop()

    def visit_ClassDef_keywords(self, node: cst.ClassDef) -> None:
        self._calls.append(None)

    def leave_ClassDef_keywords(self, node: cst.ClassDef) -> None:
        self._calls.pop()

    def visit_FunctionDef_body(self, node: cst.FunctionDef) -> None:
        self._scopes.append(None)
        rest = node.params.star_kwarg
        self._keywords.append(rest.name.value if rest is not None else "")

    def leave_FunctionDef_body(self, node: cst.FunctionDef) -> None:
        self._scopes.pop()
        self._keywords.pop()

    def visit_Lambda_body(self, node: cst.Lambda) -> None:
        self._scopes.append(None)

    def leave_Lambda_body(self, node: cst.Lambda) -> None:
        self._scopes.pop()

    def visit_Param_name(self, node: cst.Param) -> None:
        self._roles.append(PARAMETER)

    def leave_Param_name(self, node: cst.Param) -> None:
        self._roles.pop()

    # Imports

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        inside_from = bool(self._roles) and self._roles[-1] == OWN
        return inside_from or _first(node.name) in self._own

    def visit_ImportAlias_name(self, node: cst.ImportAlias) -> None:
        self._roles.append(OWN)

    def leave_ImportAlias_name(self, node: cst.ImportAlias) -> None:
        self._roles.pop()

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        own = bool(node.relative) or (node.module is not None and _first(node.module) in self._own)
        if own:
            self._roles.append(OWN)
        return own

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        own = original_node.relative or (original_node.module is not None and _first(original_node.module) in self._own)
        if own:
            self._roles.pop()
        return updated_node

    # Arguments

    def visit_Call(self, node: cst.Call) -> None:
        self._calls.append(node)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        self._calls.pop()
        called = _last(original_node.func)
        if called in CODE_STRINGS:
            return updated_node.with_changes(args=in_arguments(called, updated_node.args, self._names))
        value = original_node.func.value if isinstance(original_node.func, cst.Attribute) else None
        if called in ("get", "pop", "setdefault") and value is not None and self._is_keywords(value):
            return updated_node.with_changes(args=in_arguments("usefixtures", updated_node.args, self._names))
        return updated_node

    def visit_Arg_keyword(self, node: cst.Arg) -> None:
        self._roles.append(self._role_of_keyword(node))

    def leave_Arg_keyword(self, node: cst.Arg) -> None:
        self._roles.pop()

    def _role_of_keyword(self, node: cst.Arg) -> str:
        call = self._calls[-1] if self._calls else None
        if call is None or node.keyword is None:
            return KEEP
        name, called, survey = node.keyword.value, _last(call.func), self._names.survey
        root = _root(call.func)
        if root == called == "dict":
            # Treated as strings are.
            return ANYTHING if is_compound(name) else KEEP
        theirs = root in self._foreign or (root in BUILTINS and root not in ("super", "type"))
        if theirs and not called.startswith(("partial", "replace")):
            return KEEP
        if called in survey.takes or called in survey.fields:
            taken = survey.taken_by(called)
            # What is taken as `**` may be looked up by a string, and only strings of several words are replaced.
            spoken = name in survey.spoken or name not in survey.parameters
            if name in taken or ("**" in taken and (is_compound(name) or not spoken)):
                return PARAMETER
            return ATTRIBUTE if name in survey.fields_of(called) else KEEP
        if name not in survey.parameters:
            return ATTRIBUTE if any(name in fields for fields in survey.fields.values()) else KEEP
        return KEEP if called in self._names.theirs and called not in PASSING_ON else PARAMETER

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.Subscript:
        if not self._is_keywords(original_node.value):
            return updated_node
        return updated_node.with_changes(
            slice=[in_literals(element, self._names.variable) for element in updated_node.slice]
        )

    def _is_keywords(self, value: cst.BaseExpression) -> bool:
        """Whether an expression is the name in which a function takes further keyword arguments."""
        return isinstance(value, cst.Name) and bool(self._keywords) and value.value == self._keywords[-1]

    # Texts

    def visit_Expr(self, node: cst.Expr) -> None:
        self._prose += isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.Expr:
        self._prose -= isinstance(original_node.value, cst.SimpleString | cst.ConcatenatedString)
        return updated_node

    def visit_Annotation(self, node: cst.Annotation) -> None:
        self._annotated += 1

    def leave_Annotation(self, original_node: cst.Annotation, updated_node: cst.Annotation) -> cst.Annotation:
        self._annotated -= 1
        return updated_node

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        text = updated_node.value
        if "b" in updated_node.prefix.lower():
            return updated_node
        if self._prose:
            return updated_node.with_changes(value=in_prose(text, self._names))
        if self._annotated or updated_node.raw_value in self._names.tops:
            return in_string(updated_node, self._names.anything)
        if updated_node.raw_value.replace("-", "_") in self._names.tops:
            return updated_node.with_changes(value=in_distribution(text, self._names))
        return updated_node.with_changes(value=in_data(text, self._names))

    def leave_FormattedStringText(
        self, original_node: cst.FormattedStringText, updated_node: cst.FormattedStringText
    ) -> cst.FormattedStringText:
        return updated_node.with_changes(value=in_data(updated_node.value, self._names))

    def leave_Comment(self, original_node: cst.Comment, updated_node: cst.Comment) -> cst.Comment:
        return updated_node.with_changes(value=in_prose(updated_node.value, self._names))

    def leave_List(self, original_node: cst.List, updated_node: cst.List) -> cst.List:
        return updated_node.with_changes(elements=in_module_option(updated_node.elements, self._names))

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        named = [target.target for target in original_node.targets]
        return self._listed(named, updated_node)

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.AnnAssign:
        return self._listed([original_node.target], updated_node)

    def leave_AugAssign(self, original_node: cst.AugAssign, updated_node: cst.AugAssign) -> cst.AugAssign:
        return self._listed([original_node.target], updated_node)

    def _listed(self, targets: Sequence[cst.BaseExpression], node: Any) -> Any:
        """An assignment, with the strings in it replaced if they are names, as in `__all__`."""
        listing = any(isinstance(target, cst.Name) and target.value in LISTS_OF_NAMES for target in targets)
        if not listing or node.value is None:
            return node
        of_module = any(isinstance(target, cst.Name) and target.value in LISTS_OF_NAMES[:2] for target in targets)
        exchange = self._names.variable if of_module else self._names.attribute
        return node.with_changes(value=in_literals(node.value, exchange))


def _root(value: cst.BaseExpression) -> str:
    """The name that a chain of attributes begins with; empty where it begins with something else."""
    while isinstance(value, cst.Attribute):
        value = value.value
    return value.value if isinstance(value, cst.Name) else ""


_first = _root


def _last(value: cst.BaseExpression) -> str:
    """The last name of a chain of attributes; empty where it ends in something else."""
    if isinstance(value, cst.Attribute):
        return value.attr.value
    return value.value if isinstance(value, cst.Name) else ""
