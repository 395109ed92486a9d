"""The configs of `gumshoe synth` and `gumshoe harvest`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from gumshoe.config import Config
from gumshoe.env.config import SandboxConfig

NO_SOURCES = (
    *("tests/", "test/", "test.py", "tests.py", "test_*.py", "*_test.py", "*_tests.py"),
    *("conftest.py", "setup.py", "docs/", ".*/"),
)
"""Files of any project that no bug should be put into: its tests, and what is not part of its code."""


class BugConfig(Config):
    """Which kinds of bugs are made, and how they are split."""

    operators: tuple[str, ...] = Field(default=(), description="kinds of mistakes; empty: all")
    heldout_bugs: float = Field(
        default=0.2,
        ge=0,
        lt=1,
        description="share of the bugs made in each training project or package that is kept out of training; bugs "
        "from a history are never among them",
    )
    heldout_by: Literal["function", "bug"] = Field(
        default="function",
        description="function: all bugs of a function are on one side; bug: other bugs in it may be trained on",
    )


class SynthConfig(BugConfig):
    """Which projects get bugs, how many, and how the bugs are split."""

    projects: tuple[str, ...] = Field(
        default=("casebook",),
        min_length=1,
        description="casebook (all bundled projects), casebook:NAME, or the folder of a project with pytest tests",
    )
    out: str = Field(default="", description="output folder of the task set")
    seed: int = Field(
        default=0,
        description="equal seeds produce equal task sets, byte for byte, under equal versions of Python and pytest",
    )
    per_project: int = Field(default=20, ge=1, description="maximum number of verified bugs per project")
    candidates_per_project: int = Field(default=400, ge=1, description="maximum number of candidates per project")
    exclude: tuple[str, ...] = Field(
        default=(*NO_SOURCES, "venv/"),
        description="gitignore patterns of files that get no bugs",
    )
    readonly: tuple[str, ...] = Field(default=("tests/",), description="gitignore patterns the agent cannot write")
    heldout_projects: float = Field(default=0.25, ge=0, lt=1, description="share of projects kept out of training")
    timeout_s: float = Field(default=10.0, gt=0, description="time limit for one run of a project's tests, in seconds")
    project_s: float | None = Field(
        default=None,
        gt=0,
        description="seconds after which no further batch of a project is started; bugs found by then count, so equal "
        "seeds may no longer produce equal sets",
    )
    batch: int = Field(default=40, ge=1, description="candidates per sandbox batch")
    workers: int = Field(default=2, ge=1, description="sandboxes used in parallel; no influence on the result")
    sandbox: SandboxConfig = Field(default=SandboxConfig(), description="where the tests run")


def _as_version(value: Any) -> Any:
    """The text of a version that YAML reads as a number. It reads 3.10 as 3.1, but no Python 3.1 is supported."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return "3.10" if value == 3.1 else str(value)


class BuildConfig(Config):
    """How an environment is built, in the only sandbox with network."""

    python: Annotated[str, BeforeValidator(_as_version)] = Field(
        default="", description="version such as 3.12; empty: this one if the package allows it"
    )
    as_of: str = Field(
        default="",
        pattern=r"^(\d{4}-\d{2}-\d{2})?$",
        description="a day, as YYYY-MM-DD: no package is used that its index says came later, and a version of Python "
        "such as 3.12 that first came later only if no earlier one is allowed; empty: the newest packages",
    )
    install_timeout_s: float = Field(default=900.0, gt=0, description="time limit for one installation, in seconds")
    collect_timeout_s: float = Field(default=120.0, gt=0, description="time limit for collecting the tests, in seconds")
    install_rounds: int = Field(default=6, ge=1, description="how often missing modules are installed")
    memory_mb: int = Field(default=4096, ge=256, description="address space of each process")
    disk_mb: int = Field(default=4096, ge=64, description="size of the environment and the package")


class BaselineConfig(Config):
    """Which tests of a package count."""

    runs: int = Field(default=3, ge=2, description="runs of the tests; tests whose outcomes differ are deselected")
    run_timeout_s: float = Field(default=240.0, gt=0, description="time limit for one of these runs, in seconds")
    slow_test_s: float = Field(default=2.0, gt=0, description="tests that take longer are deselected")
    suite_s: float = Field(
        default=15.0, gt=0, description="the slowest tests are deselected until the rest takes less time than this"
    )
    max_tests: int = Field(
        default=5000, ge=1, description="test functions with the most parameters are deselected until no more are left"
    )
    max_deselected: int = Field(
        default=500,
        ge=1,
        description="maximum number of tests deselected one by one; beyond it, whole files are left out",
    )
    min_tests: int = Field(default=5, ge=1, description="packages with fewer tests left are refused")


class HarvestConfig(BugConfig):
    """Which packages become tasks, and how."""

    sources: tuple[str, ...] = Field(
        default=(), description="folders, git repositories, sdists, requirements, or files that list them"
    )
    out: str = Field(default="", description="output folder of the task set")
    seed: int = Field(default=0, description="equal seeds produce equal candidates")
    per_package: int = Field(default=300, ge=0, description="maximum number of bugs that are made per package")
    candidates_per_package: int = Field(default=2000, ge=1, description="maximum number of candidates per package")
    bugs_s: float = Field(
        default=3600,
        gt=0,
        description="seconds after which no more bugs are made for a package; bugs found by then count",
    )
    bug_run_s: float = Field(
        default=30,
        gt=0,
        description="seconds that one run of the tests with a bug may take; five times the clean run if that is more",
    )
    verify_s: float = Field(
        default=600,
        gt=0,
        description="seconds that running a package's tests may take in the check and the difficulty stage together: "
        "packages whose tests take long get fewer bugs, down to ten",
    )
    history: int = Field(
        default=200,
        ge=0,
        description="git repositories only: number of commits to search, newest first, for bugs that they fixed",
    )
    exclude: tuple[str, ...] = Field(
        default=(
            *NO_SOURCES,
            *("testing/", "noxfile.py", "doc/", "examples/", "benchmarks/", "bench/", "scripts/", "tools/", "tasks.py"),
            *("_version.py", "_vendor/", "build/"),
        ),
        description="gitignore patterns of files that get no bugs",
    )
    runner: Literal["pytest", "unittest", "doctest"] = Field(
        default="pytest",
        description="what runs the tests in the tasks; pytest runs those of unittest, too",
    )
    heldout_packages: float = Field(default=0.25, ge=0, lt=1, description="share of packages kept out of training")
    difficulty: bool = Field(
        default=True, description="measure how hard each bug is to find, and tag the tasks accordingly"
    )
    workers: int = Field(default=1, ge=1, description="packages processed in parallel")
    build: BuildConfig = Field(default=BuildConfig(), description="the environment stage")
    baseline: BaselineConfig = Field(default=BaselineConfig(), description="the baseline stage")
    sandbox: SandboxConfig = Field(
        default=SandboxConfig(kind="bubblewrap"), description="where tests run; bubblewrap builds in any case"
    )
