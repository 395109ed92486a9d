"""All the bugs that could be put into the files of a project, in an order drawn from a seed."""

from __future__ import annotations

import hashlib
import random
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import TypeVar

import libcst as cst

from gumshoe.env.bugs.operators import OPERATORS
from gumshoe.env.bugs.operators.mutation import Mutation, ParsedFile, apply
from gumshoe.env.diff import split_lines

CodePosition = tuple[str, str]
"""A file, and the qualified name of a function or class in it; empty at module level."""

ItemT = TypeVar("ItemT")


@dataclass(frozen=True)
class Candidate:
    """One mutated file, not yet known to break anything.

    Attributes:
        path: the file.
        operator: the kind of mistake.
        symbol: qualified name of the function or class that holds the cause; empty at module level.
        text: the mutated file's.
        lines: the lines of the clean file that are changed, with those before them in the statements that they are in.
    """

    path: str
    operator: str
    symbol: str
    text: str
    lines: tuple[int, ...]

    @property
    def position(self) -> CodePosition:
        """Where the cause is."""
        return self.path, self.symbol

    @cached_property
    def digest(self) -> str:
        """Eight hex digits that tell the candidates of a project apart."""
        return hashlib.sha256(f"{self.path}\0{self.text}".encode()).hexdigest()[:8]


def candidates(
    source: str, seed: int, *, path: str = "module.py", operators: Collection[str] | None = None
) -> Iterator[Candidate]:
    """The candidates of one file: lazy, each mutated text once, equal for equal arguments.

    Raises ValueError when `source` is not Python.
    """
    return project_candidates({path: source}, seed, operators=operators)


def project_candidates(
    files: dict[str, str], seed: int, *, operators: Collection[str] | None = None
) -> Iterator[Candidate]:
    """The candidates of several files (path to text). The operators take turns, so that rare ones come early.

    The files are read up front, the mutated texts are made one by one. Files that cannot be parsed get no bugs.

    Raises ValueError when no file is Python.
    """
    names, sources = sorted(OPERATORS if operators is None else operators), _parse(files)
    proposals = [
        [
            (path, source, name, mutation)
            for path, source in sources.items()
            for mutation in OPERATORS[name].proposals(source)
        ]
        for name in names
    ]
    rng = random.Random(f"gumshoe.synth {seed}")
    for group in proposals:
        rng.shuffle(group)
    return _distinct(take_turns(proposals))


def _parse(files: dict[str, str]) -> dict[str, ParsedFile]:
    sources: dict[str, ParsedFile] = {}
    broken: list[str] = []
    for path, text in sorted(files.items()):
        try:
            sources[path] = ParsedFile(text)
        except cst.ParserSyntaxError as error:
            broken.append(f"{path}:{error.raw_line} is not Python: {error.message.splitlines()[0]}")
    if not sources:
        raise ValueError(broken[0] if broken else "there is no file")
    return sources


def _distinct(proposals: Iterable[tuple[str, ParsedFile, str, Mutation]]) -> Iterator[Candidate]:
    seen: set[str] = set()
    for path, source, operator, mutation in proposals:
        text = apply(source, mutation)
        try:
            if source.means(text):
                continue
        except (SyntaxError, ValueError):
            continue
        symbol = source.symbol(mutation.changes[0][0])
        candidate = Candidate(path, operator, symbol, text, changed_lines(source, text))
        if candidate.digest not in seen:
            seen.add(candidate.digest)
            yield candidate


def take_turns(groups: Iterable[Iterable[ItemT]]) -> Iterator[ItemT]:
    """The first of each group, then the second of each, and so on, so that any first part is balanced.

    No group is read further than needed.
    """
    waiting = deque(map(iter, groups))
    while waiting:
        group = waiting.popleft()
        for item in group:
            yield item
            waiting.append(group)
            break


def changed_lines(source: ParsedFile, after: str) -> tuple[int, ...]:
    """The lines of `source` that differ in `after`, with those before them in the statements that they belong to.

    Tracing may report any of these alone: of a condition in parentheses, only the first operand if it decides. Where
    lines are only added, these are the lines around them. Blank lines and comments count where nothing else does.
    """
    before, changed = split_lines(source.text), split_lines(after)
    same = _common(before, changed)
    rest = _common(before[same:][::-1], changed[same:][::-1])
    matcher = SequenceMatcher(
        None, before[same : len(before) - rest], changed[same : len(changed) - rest], autojunk=False
    )
    lines: set[int] = set()
    for tag, start, end, _, _ in matcher.get_opcodes():
        if tag != "equal":
            first, last = same + start, same + end
            lines |= {*range(first + 1, last + 1)} or {first, first + 1} & {*range(1, len(before) + 1)}
    lines = {line for line in lines if before[line - 1].strip() and before[line - 1].lstrip()[0] != "#"} or lines
    return tuple(sorted({number for line in lines for number in range(_statement_start(source, line), line + 1)}))


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """How many equal lines two texts begin with."""
    return next(
        (number for number, (one, other) in enumerate(zip(first, second, strict=False)) if one != other),
        min(len(first), len(second)),
    )


def _statement_start(source: ParsedFile, line: int) -> int:
    """The first line of the smallest statement that spans `line`."""
    around = [span for span in source.statement_spans if line in span]
    return min(around, key=len).start if around else line
