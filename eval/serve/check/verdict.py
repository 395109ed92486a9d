"""The outcome of one item of the check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CheckItem", "Status"]

Status = Literal["ok", "not supported", "wrong", "not judged"]
"""`not supported`: the server refuses or ignores it, as its answer shows. `wrong`: it answers, but not with what was
asked for. `not judged`: the model gave no occasion, or what it takes to judge is not installed.
"""


@dataclass(frozen=True)
class CheckItem:
    """One item, its status, and what was seen."""

    item: str
    status: Status
    seen: str
