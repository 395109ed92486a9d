"""Runs that are given twice, or that overlap: an episode that is in both counts once."""

from __future__ import annotations

import hashlib

from gumshoe.records import Trajectory

__all__ = ["Copies"]


class Copies:
    """Tells copies of episodes from episodes that only have the same id, as those of two arms may have.

    Attributes:
        count: how many copies there were.
    """

    def __init__(self) -> None:
        self.count = 0
        self._seen: set[bytes] = set()

    def is_copy(self, trajectory: Trajectory) -> bool:
        """Whether one with the same content was asked about before."""
        digest = hashlib.sha256(trajectory.model_dump_json().encode()).digest()
        copied = digest in self._seen
        self._seen.add(digest)
        self.count += copied
        return copied
