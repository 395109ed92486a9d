"""What an operator proposes: nodes of the syntax tree to replace, and small pieces of syntax to replace them with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import libcst as cst

from gumshoe.env.bugs.operators.source import ParsedFile

__all__ = [
    "Mutation",
    "Operator",
    "apply",
    "like",
    "negated",
    "operator",
    "parenthesized",
    "pick_name",
    "removed",
    "replace",
    "shifted",
    "unwrapped",
    "without_statement",
]


@dataclass(frozen=True)
class Mutation:
    """Replacements in one file; the first node tells where the cause of the bug is."""

    changes: tuple[tuple[cst.CSTNode, cst.CSTNode], ...]


@dataclass(frozen=True)
class Operator:
    """A kind of mistake. `propose` is asked about each node of one of the types in `nodes`."""

    name: str
    nodes: tuple[type[cst.CSTNode], ...]
    propose: Callable[..., Iterator[Mutation]]

    def proposals(self, source: ParsedFile) -> Iterator[Mutation]:
        """Everything this operator could do to `source`, in the order of the file."""
        for node in source.of(self.nodes):
            yield from self.propose(node, source)


def operator(*nodes: type[cst.CSTNode]) -> Callable[[Callable[..., Iterator[Mutation]]], Operator]:
    """Makes an operator for these types of nodes from a function of a node and its file, named like the function."""
    return lambda propose: Operator(propose.__name__, nodes, propose)


def replace(node: cst.CSTNode, replacement: cst.CSTNode) -> Mutation:
    """The mutation that puts `replacement` where `node` is."""
    return Mutation(((node, replacement),))


def apply(source: ParsedFile, mutation: Mutation) -> str:
    """The file's text after the mutation; everything else keeps its formatting."""
    replacer = _Replacer(source, mutation)
    changed = {source.statement(node) for node, _ in mutation.changes}
    return source.text_with({number: source.module.body[number].visit(replacer) for number in changed})


class _Replacer(cst.CSTTransformer):
    """Replaces nodes by identity, and enters only what holds one of them."""

    def __init__(self, source: ParsedFile, mutation: Mutation) -> None:
        super().__init__()
        self._replacements = dict(mutation.changes)
        self._path = {ancestor for node, _ in mutation.changes for ancestor in source.ancestors(node)}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node in self._path

    def on_leave(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        return self._replacements.get(original_node, updated_node)


ExpressionT = TypeVar("ExpressionT", bound=cst.BaseExpression)
NodeT = TypeVar("NodeT", bound=cst.CSTNode)
ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer, cst.SimpleString, cst.List, cst.Dict, cst.Tuple)
SUMS = (cst.Add, cst.Subtract)
WORDS = (cst.In, cst.NotIn, cst.Is, cst.IsNot)

FLIPPED: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.In: cst.NotIn,
    cst.NotIn: cst.In,
    cst.Is: cst.IsNot,
    cst.IsNot: cst.Is,
}


def parenthesized(node: ExpressionT) -> ExpressionT:
    """`node`, in parentheses unless it binds tightly or has some already."""
    if node.lpar or isinstance(node, ATOMS):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def negated(test: cst.BaseExpression) -> cst.BaseExpression:
    """The opposite of a condition, as a person would write it."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        flipped = FLIPPED.get(type(target.operator))
        if flipped is not None:
            return test.with_changes(comparisons=[target.with_changes(operator=like(flipped, target.operator))])
    return cst.UnaryOperation(cst.Not(), parenthesized(test))


def shifted(node: cst.BaseExpression, by: int) -> cst.BaseExpression:
    """`node + by`, folded where it is a number or already ends in a sum with one."""
    if isinstance(node, cst.Integer):
        return _number(int(node.value.replace("_", ""), 0) + by)
    if (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, SUMS)
        and isinstance(node.right, cst.Integer)
    ):
        sign = 1 if isinstance(node.operator, cst.Add) else -1
        total = sign * int(node.right.value.replace("_", ""), 0) + by
        return node.left if total == 0 else _sum(node.left, total)
    return _sum(parenthesized(node), by)


def _sum(left: cst.BaseExpression, by: int) -> cst.BaseExpression:
    return cst.BinaryOperation(left, cst.Add() if by > 0 else cst.Subtract(), cst.Integer(str(abs(by))))


def _number(value: int) -> cst.BaseExpression:
    number = cst.Integer(str(abs(value)))
    return number if value >= 0 else cst.UnaryOperation(cst.Minus(), number)


def without_statement(block: cst.IndentedBlock, statement: cst.CSTNode) -> Mutation:
    """The mutation that leaves out a statement of a block; `pass` stands in for the only one."""
    body: list[cst.CSTNode] = [item for item in block.body if item is not statement]
    return replace(block, block.with_changes(body=body or [cst.SimpleStatementLine([cst.Pass()])]))


def removed(node: cst.CSTNode, source: ParsedFile) -> Iterator[Mutation]:
    """The mutation that leaves out a statement, if it is one of a function's block."""
    block = source.block(node)
    if block is not None:
        yield without_statement(block, node)


def unwrapped(node: cst.CSTNode, source: ParsedFile, *bodies: cst.BaseSuite) -> Iterator[Mutation]:
    """The mutation that puts what is in `bodies` in place of the compound statement around them."""
    block = source.block(node)
    if block is not None:
        inner = [line for body in bodies for line in _statements(body)]
        body = [line for item in block.body for line in (inner if item is node else (item,))]
        yield replace(block, block.with_changes(body=body))


def _statements(body: cst.BaseSuite) -> Iterator[cst.CSTNode]:
    if isinstance(body, cst.SimpleStatementSuite):
        yield cst.SimpleStatementLine(body.body)
    elif isinstance(body, cst.IndentedBlock):
        yield from body.body


def like(kind: Callable[..., NodeT], old: Any) -> NodeT:
    """An operator of another kind with the spaces of the old one; words always get spaces."""
    if kind in WORDS or type(old) in WORDS:
        return kind()
    return kind(whitespace_before=old.whitespace_before, whitespace_after=old.whitespace_after)


def pick_name(node: cst.CSTNode, names: Sequence[str]) -> str | None:
    """The value of `node` if it is one of these names."""
    return node.value if isinstance(node, cst.Name) and node.value in names else None
