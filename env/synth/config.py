"""The config of `gumshoe synth`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gumshoe.config import Config
from gumshoe.env.config import SandboxConfig

__all__ = ["NO_SOURCES", "SynthConfig"]

NO_SOURCES = (
    *("tests/", "test/", "test.py", "tests.py", "test_*.py", "*_test.py", "*_tests.py"),
    *("conftest.py", "setup.py", "docs/", ".*/"),
)
"""Files of any project that no bug should be put into: its tests, and what is not part of its code."""


class SynthConfig(Config):
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
    operators: tuple[str, ...] = Field(default=(), description="kinds of mistakes; empty: all")
    pairs: float = Field(
        default=0.1,
        ge=0,
        lt=1,
        description="share of bugs that are in two places, combined from two proven bugs in different functions",
    )
    exclude: tuple[str, ...] = Field(
        default=(*NO_SOURCES, "venv/"),
        description="gitignore patterns of files that get no bugs",
    )
    readonly: tuple[str, ...] = Field(default=("tests/",), description="gitignore patterns the agent cannot write")
    heldout_projects: float = Field(default=0.25, ge=0, lt=1, description="share of projects kept out of training")
    heldout_bugs: float = Field(
        default=0.2, ge=0, lt=1, description="share of the bugs of each training project kept out, by mutated function"
    )
    heldout_by: Literal["function", "bug"] = Field(
        default="function",
        description="function: all bugs of a function are on one side; bug: other bugs in it may be trained on",
    )
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
