"""One way in which a project may be broken: the changed files, and the places where they are changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from gumshoe.env.synth.candidates import Candidate

__all__ = ["Bug", "CodePosition", "bug_of"]

CodePosition = tuple[str, str]
"""A file, and the qualified name of a function or class in it; empty at module level."""


@dataclass(frozen=True)
class Bug:
    """A variant of a project, not yet known to break anything.

    Attributes:
        operator: the kind of mistake.
        files: the changed files, path to text.
        lines: of each clean file, the lines that are changed, with the first lines of the statements around them.
        places: where the causes are.
        tags: what else a task should say about it.
    """

    operator: str
    files: Mapping[str, str]
    lines: Mapping[str, tuple[int, ...]]
    places: tuple[CodePosition, ...]
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def digest(self) -> str:
        """Eight hex digits that tell the bugs of a project apart."""
        content = "\0".join(f"{path}\0{text}" for path, text in sorted(self.files.items()))
        return hashlib.sha256(content.encode()).hexdigest()[:8]


def bug_of(candidate: Candidate) -> Bug:
    """The bug that one mutation makes."""
    return Bug(
        operator=candidate.operator,
        files={candidate.path: candidate.text},
        lines={candidate.path: candidate.lines},
        places=((candidate.path, candidate.symbol),),
    )
