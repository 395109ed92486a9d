"""What is expensive to make: once for all test processes of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gumshoe.storage import in_turn

__all__ = ["make_once"]


def make_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name`, which the first test process to ask for it makes and the others only read.

    Args:
        temporary: of the session; workers have the parent of their folders in common.
        name: of the folder.
        make: fills the folder that it is given; nothing is kept if it raises.
    """
    own = temporary.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "shared" / name
    folder.parent.mkdir(exist_ok=True)
    with in_turn(folder.parent):
        if not folder.exists():
            unfinished = own / f"unfinished-{name}"
            make(unfinished)
            unfinished.rename(folder)
    return folder
