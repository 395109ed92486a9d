"""What counts as a change of the test runner."""

from __future__ import annotations

import gc
import sys
import unittest.mock
from types import ModuleType
from typing import Any

import pytest

from gumshoe.tools.inside import gumshoe_integrity as integrity

HERE = "/repository/app.py"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module that is watched."""
    module: Any = ModuleType("runner_under_watch")
    exec(
        compile("class Case:\n    def run(self): return 1\n\ndef passed(): return True\n", "runner.py", "exec"),
        vars(module),
    )
    module.Case.__module__ = module.__name__
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def watch(*packages: str) -> Any:
    watch = integrity.RunnerState(packages)
    watch.begin(lambda name: name == HERE)
    return watch


def made_there(source: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    exec(compile(source, HERE, "exec"), found)
    return found


def test_objects_that_have_every_attribute_are_not_taken_for_changed() -> None:
    assert unittest.mock.call.anything is not None
    assert watch("unittest").differences() == []


def test_functions_of_a_changed_file_count(runner: Any) -> None:
    watching = watch(runner.__name__)
    made = made_there("def passed(): return False\ndef run(self): return 2\n")
    runner.passed = made["passed"]
    runner.Case.run = made["run"]
    assert watching.differences() == [
        "runner_under_watch.passed was changed",
        "runner_under_watch.Case.run was changed",
    ]


def test_code_put_into_a_function_counts(runner: Any) -> None:
    watching = watch(runner.__name__)
    runner.passed.__code__ = made_there("def passed(): return False\n")["passed"].__code__
    assert watching.differences() == ["runner_under_watch.passed was changed"]


def test_an_object_that_answers_for_its_code_counts(runner: Any) -> None:
    watching = watch(runner.__name__)
    runner.passed = unittest.mock.call
    assert watching.differences() == ["runner_under_watch.passed was changed"]


def test_functions_of_other_files_do_not_count(runner: Any) -> None:
    watching = watch(runner.__name__)
    plugin: dict[str, Any] = {}
    exec(compile("def passed(): return True\n", "/environment/plugin.py", "exec"), plugin)
    runner.passed = plugin["passed"]
    assert watching.differences() == []


def test_modules_that_the_garbage_collector_adds_do_not_disturb_the_watch(runner: Any) -> None:
    """Jinja2's loader takes its modules out of the list as soon as nobody uses them any more."""
    added: list[str] = []

    class Garbage:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            if len(added) < 300:
                added.append(f"added_by_garbage_{len(added)}")
                sys.modules[added[-1]] = ModuleType(added[-1])
                Garbage()

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        Garbage()
        watched = watch(runner.__name__)
        assert [watched.differences() for _ in range(20)] == [[]] * 20
    finally:
        gc.set_threshold(*before)
        for name in added:
            sys.modules.pop(name, None)
    assert added
