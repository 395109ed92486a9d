"""A source file as the operators see it: its syntax tree with parents, positions and enclosing functions."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

__all__ = ["ParsedFile"]

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
        self._walk(self.module)

    @functools.cached_property
    def dump(self) -> str:
        """The abstract syntax tree as text: equal for texts that mean the same to Python."""
        return ast.dump(ast.parse(self.text))

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
        """The function that `node` stands in."""
        return self.enclosing(node, cst.FunctionDef)

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

    def inside(self, node: cst.CSTNode, kind: type[NodeT]) -> list[NodeT]:
        """All nodes of a kind in `node`, nested functions included."""
        return [item for item in self.nodes[slice(*self._below[node])] if isinstance(item, kind)]

    @functools.cached_property
    def statement_spans(self) -> list[range]:
        """The lines of every statement, compound ones as a whole."""
        kinds = cst.BaseStatement | cst.SimpleStatementLine
        return [self.span(node) for node in self.nodes if isinstance(node, kinds)]

    def _walk(self, node: cst.CSTNode) -> None:
        self.nodes.append(node)
        first = len(self.nodes)
        for child in node.children:
            if not isinstance(child, SKIPPED) and not _is_docstring(child, node):
                self._parents[child] = node
                self._walk(child)
        self._below[node] = (first, len(self.nodes))


def _is_docstring(child: cst.CSTNode, parent: cst.CSTNode) -> bool:
    """Whether `child` is a statement that only consists of a text."""
    return isinstance(parent, cst.SimpleStatementLine) and (
        isinstance(child, cst.Expr) and isinstance(child.value, cst.SimpleString | cst.ConcatenatedString)
    )
