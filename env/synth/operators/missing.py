"""Missing code: statements, branches, returns, arguments, awaits."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.synth.build import unwrapped, without_statement
from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.operators.omissions import is_default, is_guard
from gumshoe.env.synth.source import ParsedFile

__all__ = [
    "DROPPED_ARGUMENT",
    "DROPPED_STATEMENT",
    "LOOP_CONTROL",
    "MISSING_BRANCH",
    "MISSING_RETURN",
    "REMOVED_AWAIT",
]


def _statement(node: cst.SimpleStatementLine, source: ParsedFile) -> Iterator[Mutation]:
    block = source.parent(node)
    if isinstance(block, cst.IndentedBlock) and source.function(node) is not None and _acts(node.body[0]):
        yield replace(block, without_statement(block, node))


def _acts(statement: cst.BaseSmallStatement) -> bool:
    """Whether it changes some state: leaving out what binds a local name would only give a NameError."""
    if isinstance(statement, cst.Assign):
        return not any(isinstance(item.target, cst.Name | cst.Tuple) for item in statement.targets)
    if isinstance(statement, cst.Expr):
        return isinstance(statement.value, cst.Call | cst.Await)
    return isinstance(statement, cst.AugAssign | cst.Del)


DROPPED_STATEMENT = Operator("dropped_statement", "a statement is missing", (cst.SimpleStatementLine,), _statement)


def _branch(node: cst.If, source: ParsedFile) -> Iterator[Mutation]:
    if isinstance(node.orelse, cst.Else):
        yield replace(node, node.with_changes(orelse=None))
    elif isinstance(node.orelse, cst.If):
        yield replace(node, node.with_changes(orelse=node.orelse.orelse))
    block = source.parent(node)
    if not isinstance(block, cst.IndentedBlock) or source.function(node) is None:
        return
    if isinstance(node.orelse, cst.If):
        yield replace(node, node.orelse.with_changes(leading_lines=node.leading_lines))
    elif node.orelse is not None:
        yield replace(block, unwrapped(block, node, node.orelse.body))
    elif not is_guard(node) and not is_default(node):
        yield replace(block, without_statement(block, node))


MISSING_BRANCH = Operator("missing_branch", "a case is not handled", (cst.If,), _branch)


def _return(node: cst.Return, source: ParsedFile) -> Iterator[Mutation]:
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield replace(node, cst.Expr(node.value, semicolon=node.semicolon))


MISSING_RETURN = Operator("missing_return", "a value is computed and not returned", (cst.Return,), _return)


def _argument(node: cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    if len(node.args) < 2 or node.args[-1].star:
        return
    last = node.args[-2].with_changes(comma=node.args[-1].comma)
    yield replace(node, node.with_changes(args=[*node.args[:-2], last]))


DROPPED_ARGUMENT = Operator("dropped_argument", "an argument is left to its default", (cst.Call,), _argument)


def _await(node: cst.Await, source: ParsedFile) -> Iterator[Mutation]:
    yield replace(node, node.expression)


REMOVED_AWAIT = Operator("removed_await", "a coroutine is not awaited", (cst.Await,), _await)


def _loop(node: cst.Break | cst.Continue, source: ParsedFile) -> Iterator[Mutation]:
    other = cst.Continue if isinstance(node, cst.Break) else cst.Break
    for kind in (other, cst.Pass):
        yield replace(node, kind(semicolon=node.semicolon))


LOOP_CONTROL = Operator("loop_control", "a loop ends too early, or too late", (cst.Break, cst.Continue), _loop)
