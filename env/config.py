"""Config of the sandboxes."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field

from gumshoe.config import Config
from gumshoe.protocols import SandboxKind

__all__ = ["PullPolicy", "SandboxConfig"]

PullPolicy = Literal["missing", "never", "always"]


class SandboxConfig(Config):
    """Where programs run, and how much they may use there."""

    kind: SandboxKind = Field(
        default="auto",
        description="auto takes the first of docker, podman, bubblewrap and local that works for the task",
    )
    image: str = Field(default="gumshoe-python:latest", description="container image for tasks that come as a folder")
    pull: PullPolicy = Field(
        default="missing",
        description="when images are pulled (docker, podman): `missing` pulls missing ones; `always` checks every "
        "image once per process",
    )
    pulls_at_once: int = Field(default=2, ge=1, description="images that a process pulls at a time")
    pull_stall_s: float = Field(
        default=900.0, gt=0, description="seconds without any message from the engine after which a pull is abandoned"
    )
    mirror: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$",
        description="registry to pull images from, put before their names, such as localhost:5000",
    )
    images_gb: float | None = Field(
        default=None,
        gt=0,
        description="maximum disk space for images pulled by Gumshoe: before a pull, unused ones are removed, least "
        "recently used first; None removes none",
    )
    unsafe: bool = Field(
        default=False,
        description="let the local sandbox, which does not isolate, run models' calls, models' patches and tasks that "
        "are not built in",
    )
    runtime: str | None = Field(
        default=None,
        description="runtime of the container, such as runsc or kata; None uses the engine's default (docker, podman)",
    )
    userns: str | None = Field(
        default=None,
        description="user namespace of the container, as the engine names it: `host`, or `auto` and others with podman",
    )
    packages: tuple[str, ...] = Field(
        default=("pytest",),
        description="distributions of this Python, with their dependencies, that programs may import (bubblewrap)",
    )
    memory_mb: int = Field(default=2048, ge=64, description="memory of the container, else of each process")
    pids: int = Field(default=512, ge=8, description="processes and threads at a time (docker, podman, bubblewrap)")
    cpus: float = Field(default=2.0, gt=0, description="processors (docker, podman)")
    disk_mb: int = Field(default=1024, ge=16, description="workspace and temporary files; also the largest single file")
    patch_mb: int = Field(default=32, ge=1, description="contents of all files that an agent has changed, together")
    output_kb: int = Field(
        default=256, ge=1, description="how much output of one program is kept, half of it head and half tail"
    )
    setup_timeout_s: float = Field(
        default=600.0, gt=0, description="time limit for each of the task's setup commands, in seconds"
    )
    pool: int = Field(
        default=0,
        ge=0,
        description="sandboxes kept warm for the next tasks of each environment, twice as many for verdicts, and "
        "as many prepared for tasks in images that are played again (not local); 0 starts a new one each time",
    )
    test_server: bool = Field(
        default=True,
        description="fork test runs of the tools, and the debugger, from a process that has loaded the test runner; "
        "false starts an interpreter for each",
    )
    accept_unverifiable: bool = Field(
        default=False,
        description="also call patches resolved that could find out how they are tested; false says nothing about them",
    )
    keep_git_future: bool = Field(
        default=False, description="leave branches, stashes and objects later than HEAD in a git repository"
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment variables set in the sandbox")

    def with_pool(self, size: int) -> Self:
        """The same with a pool of this size, unless it has one."""
        return self if self.pool else self.model_copy(update={"pool": size})
