"""The injected debugger alone, without a sandbox."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.tools.driver import PYTEST, Driver, Start, script


@pytest.fixture
def start(python: str, project: Path) -> Generator[Start]:
    """Starts the debugger in the project; what was started is killed at the end."""
    with ExitStack() as stack:
        yield lambda *program, **env: stack.enter_context(Driver(python, project, *program, env=env))


@pytest.fixture
def start_script(start: Start, project: Path) -> Start:
    """Starts it with a `script.py` of this text, and arguments."""
    return lambda text, *arguments: start(script(project, text), *arguments)


@pytest.fixture
def start_test(start: Start, project: Path) -> Start:
    """Starts it with tests of this text, and a module `late` that they may import."""

    def begin(text: str, module: str = "def add(n):\n    return n + 1\n") -> Driver:
        script(project, module, "late.py")
        return start(*PYTEST, script(project, text, "test_late.py"))

    return begin
