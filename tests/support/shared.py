"""What is expensive to make: once for all test processes of a run."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gumshoe.storage import in_turn


def make_once(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name`, which the first test process to ask for it has filled, and the others only read.

    Nothing is kept if `make` raises. The workers of a session have the parent of their temporary folders in common.
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
