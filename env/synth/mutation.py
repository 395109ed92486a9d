"""What an operator proposes: nodes of the syntax tree to replace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from gumshoe.env.synth.source import ParsedFile

__all__ = ["Mutation", "Operator", "apply", "replace"]


@dataclass(frozen=True)
class Mutation:
    """Replacements in one file; the first node tells where the cause of the bug is."""

    changes: tuple[tuple[cst.CSTNode, cst.CSTNode], ...]


@dataclass(frozen=True)
class Operator:
    """A kind of mistake. `propose` is asked about each node of one of the types in `nodes`."""

    name: str
    summary: str
    nodes: tuple[type[cst.CSTNode], ...]
    propose: Callable[..., Iterator[Mutation]]

    def proposals(self, source: ParsedFile) -> Iterator[Mutation]:
        """Everything this operator could do to `source`, in the order of the file."""
        for node in source.of(self.nodes):
            yield from self.propose(node, source)


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
