"""What operators are made of: a source file as they see it, and what they propose to change in it.

`ParsedFile` is a syntax tree with parents, positions and enclosing functions. A `Mutation` names nodes of it and what
takes their places; an `Operator` proposes such mutations. The functions below make small pieces of syntax for them.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from gumshoe.env.diff import split_lines

NodeT = TypeVar("NodeT", bound=cst.CSTNode)
FUNCTIONS = (cst.FunctionDef, cst.Lambda)
# Where a change would be noise: it alters no behavior, or stops the file from loading.
SKIPPED = (cst.Annotation, cst.Import, cst.ImportFrom, cst.Decorator, cst.BaseParenthesizableWhitespace)


class ParsedFile:
    """A parsed file. Raises libcst.ParserSyntaxError when `text` is not Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents: dict[cst.CSTNode, cst.CSTNode] = {}
        self.nodes: list[cst.CSTNode] = []
        # A node's descendants follow it in `nodes`: from the first number to the second.
        self._below: dict[cst.CSTNode, tuple[int, int]] = {}
        # Where the nodes of each type are in `nodes`.
        self._numbers: dict[type[cst.CSTNode], list[int]] = {}
        self._walk(self.module)

    def means(self, text: str) -> bool:
        """Whether another text means the same to Python. Raises SyntaxError and ValueError if it is not Python."""
        mine, others = self._statements, statements(text)
        # Most of the text is the same to the letter, and comparing trees takes longer than comparing text.
        return len(mine) == len(others) and all(
            part == other or ast.dump(node) == ast.dump(twin)
            for (part, node), (other, twin) in zip(mine, others, strict=True)
        )

    @functools.cached_property
    def _statements(self) -> list[tuple[list[str], ast.AST]]:
        return statements(self.text)

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The node that holds `node`; None for the module."""
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """From the parent of `node` up to the module."""
        current = self.parent(node)
        while current is not None:
            yield current
            current = self.parent(current)

    def enclosing(self, node: cst.CSTNode, *kinds: type[NodeT]) -> NodeT | None:
        """The nearest ancestor of one of these kinds."""
        return next((ancestor for ancestor in self.ancestors(node) if isinstance(ancestor, kinds)), None)

    def function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function that `node` is in."""
        return self.enclosing(node, cst.FunctionDef)

    def block(self, node: cst.CSTNode) -> cst.IndentedBlock | None:
        """The block that `node` is a statement of, if that is in a function."""
        block = self.parent(node)
        return block if isinstance(block, cst.IndentedBlock) and self.function(node) is not None else None

    def symbol(self, node: cst.CSTNode) -> str:
        """The qualified name of the function or class around `node`, itself included; empty at module level."""
        chain = [node, *self.ancestors(node)]
        names = [item.name.value for item in chain if isinstance(item, cst.FunctionDef | cst.ClassDef)]
        return ".".join(reversed(names))

    def span(self, node: cst.CSTNode) -> range:
        """The lines that `node` takes up, from 1, without the comments above it."""
        position = self._positions[node]
        return range(position.start.line, position.end.line + 1)

    def code(self, node: cst.CSTNode) -> str:
        """The text of `node`."""
        return self.module.code_for_node(node)

    def of(self, kinds: tuple[type[cst.CSTNode], ...]) -> Iterator[cst.CSTNode]:
        """All nodes of some kinds, in the order of the file."""
        groups = [numbers for kind, numbers in self._numbers.items() if issubclass(kind, kinds)]
        return (self.nodes[number] for number in merge(*groups))

    def statement(self, node: cst.CSTNode) -> int:
        """Which statement of the module `node` is in, from 0."""
        top = node
        while (parent := self.parent(top)) is not self.module:
            assert parent is not None
            top = parent
        return self._tops[top]

    @functools.cached_property
    def _tops(self) -> dict[cst.CSTNode, int]:
        return {node: number for number, node in enumerate(self.module.body)}

    def text_with(self, changed: Mapping[int, Any]) -> str:
        """The text with some of the module's statements replaced."""
        body = [self.code(changed[number]) if number in changed else text for number, text in enumerate(self._parts)]
        head = "".join(self.code(line) for line in self.module.header)
        foot = "".join(self.code(line) for line in self.module.footer)
        text = head + "".join(body) + foot
        # As libcst does for a file that does not end in a line break.
        return text if self.module.has_trailing_newline else text.removesuffix(self.module.default_newline)

    @functools.cached_property
    def _parts(self) -> list[str]:
        return [self.code(node) for node in self.module.body]

    def inside(self, node: cst.CSTNode, kind: type[NodeT]) -> list[NodeT]:
        """All nodes of a kind that has no subclasses, in `node`, nested functions included."""
        first, last = self._below[node]
        numbers = self._numbers.get(kind, [])
        found = (self.nodes[number] for number in numbers[bisect_left(numbers, first) : bisect_left(numbers, last)])
        return [item for item in found if isinstance(item, kind)]

    @functools.cached_property
    def statement_spans(self) -> list[range]:
        """The lines of every statement, compound ones as a whole."""
        kinds = cst.BaseStatement | cst.SimpleStatementLine
        return [self.span(node) for node in self.nodes if isinstance(node, kinds)]

    def _walk(self, node: cst.CSTNode) -> None:
        self._numbers.setdefault(type(node), []).append(len(self.nodes))
        self.nodes.append(node)
        first = len(self.nodes)
        for child in _children(node):
            if not isinstance(child, SKIPPED) and not _is_docstring(child, node):
                self._parents[child] = node
                self._walk(child)
        self._below[node] = (first, len(self.nodes))


def statements(text: str) -> list[tuple[list[str], ast.AST]]:
    """The statements of a module, each with the lines that it is in; the whole text where its syntax is newer than this
    Python's. Raises SyntaxError and ValueError if it is not Python.
    """
    lines = split_lines(text)
    try:
        nodes = ast.parse(text).body
    except SyntaxError:
        try:
            cst.parse_module(text)
        except cst.ParserSyntaxError as error:
            raise SyntaxError(error.message) from None
        return [(lines, ast.Constant(text))]
    starts = [min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]) for node in nodes]
    return [(lines[start - 1 : node.end_lineno], node) for start, node in zip(starts, nodes, strict=True)]


def _children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What `CSTNode.children` holds, without its visitors, which take most of the time."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, list | tuple):
            yield from (item for item in value if isinstance(item, cst.CSTNode))


@functools.cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _is_docstring(child: cst.CSTNode, parent: cst.CSTNode) -> bool:
    """Whether `child` is a statement that consists only of a string."""
    return isinstance(parent, cst.SimpleStatementLine) and (
        isinstance(child, cst.Expr) and isinstance(child.value, cst.SimpleString | cst.ConcatenatedString)
    )


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


def without_each(items: Iterable[NodeT]) -> Iterator[list[NodeT]]:
    """The items without the first, then without the second, and so on."""
    kept = list(items)
    return (kept[:number] + kept[number + 1 :] for number in range(len(kept)))


def called(call: cst.Call) -> cst.Name | None:
    """The name of the function or method that is called; None where another expression gives it."""
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return name if isinstance(name, cst.Name) else None


def pick_name(node: cst.CSTNode | None, names: Sequence[str]) -> str | None:
    """The value of `node` if it is one of these names."""
    return node.value if isinstance(node, cst.Name) and node.value in names else None
