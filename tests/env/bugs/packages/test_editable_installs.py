"""Warm sandboxes of packages that are installed in place: a `.pth` file names a folder of the workspace."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.environment import build_environment
from gumshoe.env.sandboxes.open import close_pools, open_sandbox
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.workspace import Workspace
from gumshoe.records import Task, TestRun
from support.sandboxes.warm_sandboxes import fill_pools, servers_in

PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "shop"
version = "1"

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools.packages.find]
where = ["src"]
"""
CODE = "def double(x):\n    return 2 * x\n"
WRONG = "def double(x):\n    return 3 * x\n"
TESTS = """\
import json, sys
from shop import double

def test_double():
    with open("path.json", "w") as file:
        json.dump(sys.path, file)
    assert double(2) == 4
"""
POOL = SandboxConfig(kind="bubblewrap", pool=1, env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})

pytestmark = pytest.mark.needs("bubblewrap")


@pytest.fixture(scope="module")
def task(index: None, tmp_path_factory: pytest.TempPathFactory) -> Task:
    """A task in the environment of a package whose code is in `src`."""
    del index
    folder = tmp_path_factory.mktemp("package")
    files = {"pyproject.toml": PROJECT, "src/shop/__init__.py": CODE, "tests/test_shop.py": TESTS}
    for name, text in files.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUMSHOE_CACHE", str(folder / "cache"))
        build = BuildConfig(python="3.11")
        built = build_environment(folder / "source", folder / "project", build, lambda text: None)
    assert list((folder / "cache").glob("environments/*/root/lib/*/site-packages/*shop*.pth"))
    workspace = workspace_from_folder(folder / "project")
    return Task(
        id="shop",
        source="synth",
        problem_statement="",
        workspace=workspace.model_copy(update={"environment": built.lock.name}),
        entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
    )


@pytest.fixture(autouse=True)
def own_cache(task: Task, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setenv("GUMSHOE_CACHE", str(Path(str(task.workspace.path)).parent / "cache"))
    yield
    close_pools()


def with_file(task: Task, path: str, text: str) -> Task:
    """The task with another file in its workspace."""
    return task.model_copy(update={"workspace": task.workspace.model_copy(update={"overlay": {path: text}})})


def episode(task: Task, config: SandboxConfig = POOL) -> tuple[list[str], TestRun, list[str]]:
    """The servers before the first run, that run, and its import path."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        before = servers_in(sandbox)
        run = Workspace(task, sandbox).run_tests(warm=True)
        path = json.loads(sandbox.read_file("path.json"))
    fill_pools()
    return before, run, path


def test_a_server_waits_and_its_forks_find_the_package(task: Task) -> None:
    fresh = episode(task, POOL.model_copy(update={"test_server": False}))
    assert (fresh[1].passed, fresh[1].result.warm) == (True, False)
    wrong = with_file(task, "src/shop/__init__.py", WRONG)
    for number, (variant, passes) in enumerate([(task, True), (wrong, False), (task, True)]):
        before, run, path = episode(variant)
        assert (run.passed, run.result.warm) == (passes, True)
        assert path == fresh[2]
        assert bool(before) == bool(number)


def test_a_package_that_changes_how_the_interpreter_starts_gets_a_fresh_one(task: Task) -> None:
    episode(task)
    changing = with_file(task, "src/sitecustomize.py", "import sys\nsys.path.append('/elsewhere')\n")
    _, run, path = episode(changing)
    assert (run.passed, run.result.warm, path[-1]) == (True, False, "/elsewhere")
    assert "a module sitecustomize of its own" in str(run.result.cold)
