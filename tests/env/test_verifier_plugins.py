"""Verdicts on tests that a plugin runs in a way of its own, such as asynchronous ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verdict, verify
from gumshoe.records import Oracle, Task, WorkspaceSpec

LOCAL = SandboxConfig(kind="local", unsafe=True)
BUGGY = b"async def double(n):\n    return n + 3\n"
CLEAN = b"async def double(n):\n    return n * 2\n"
# Puts other functions into the tests that come later: one that does nothing, and the same with other variables.
EMPTY = b"""async def double(n):
    import gc
    for item in gc.get_objects():
        if type(item).__name__ == "Function" and "test_double" in getattr(item, "nodeid", ""):
            item.obj = (lambda: None)
    return 1
"""
FAKED = b"""async def double(n):
    import gc, types
    async def right(n):
        return n * 2
    for item in gc.get_objects():
        if type(item).__name__ == "Function" and "test_double" in getattr(item, "nodeid", ""):
            item.obj = types.FunctionType(item.obj.__code__, {**item.obj.__globals__, "double": right})
    return 1
"""
# What pytest-asyncio does: a synchronous function takes the place of the test while it runs, and stays there.
CONFTEST = """
import asyncio
import functools
import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    test = pyfuncitem.obj

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    if asyncio.iscoroutinefunction(test):
        pyfuncitem.obj = run
"""
TESTS = """
from shop import double


async def test_a_first_look():
    assert await double(1) < 9


async def test_double():
    assert await double(2) == 4
"""
NAME = "test_shop.py::test_double"


def judged(folder: Path, after: bytes) -> Verdict:
    (folder / "shop.py").write_bytes(BUGGY)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_shop.py").write_text(TESTS)
    task = Task(
        id="shop/1",
        source="synth",
        problem_statement="double is wrong.",
        workspace=WorkspaceSpec(path=str(folder)),
        entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        readonly=("test_shop.py", "conftest.py"),
    )
    oracle = Oracle(task_id=task.id, gold_patch=make_patch({"shop.py": (BUGGY, CLEAN)}), fail_to_pass=(NAME,))
    return verify(task, oracle, make_patch({"shop.py": (BUGGY, after)}), LOCAL, trusted=True)


def test_a_plugin_may_run_a_test_through_a_function_of_its_own(tmp_path: Path) -> None:
    verdict = judged(tmp_path, CLEAN)
    assert verdict.resolved
    assert verdict.tampering == ()


@pytest.mark.parametrize("after", [EMPTY, FAKED], ids=["empty", "other variables"])
def test_code_under_test_may_not_replace_a_test(tmp_path: Path, after: bytes) -> None:
    verdict = judged(tmp_path, after)
    assert not verdict.resolved
