"""Config of the sandboxes."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from gumshoe.config import Config
from gumshoe.protocols import SandboxKind

PYTEST = ("pytest",)


class SandboxConfig(Config):
    """Where programs run, and how much they may use there."""

    kind: SandboxKind = Field(
        default="auto",
        description="auto takes the first of docker, podman, bubblewrap and local that works for the task",
    )
    image: str = Field(default="gumshoe-python:latest", description="container image for tasks that come as a folder")
    pull: Literal["missing", "never"] = Field(
        default="missing", description="whether the engine pulls images that it does not have (docker, podman)"
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
        default=PYTEST,
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
    test_server: bool = Field(
        default=True,
        description="fork test runs of the tools, and the debugger, from a process that has loaded the test runner; "
        "false starts an interpreter for each",
    )
    accept_unverifiable: bool = Field(
        default=False,
        description="also call patches resolved that could find out how they are tested; false says nothing about them",
    )
    env: dict[str, str] = Field(default_factory=dict, description="environment variables set in the sandbox")

    @model_validator(mode="after")
    def _packages_need_bubblewrap(self) -> Self:
        if self.kind not in ("auto", "bubblewrap") and self.packages != PYTEST:
            where = "this Python" if self.kind == "local" else "the image"
            raise ValueError(f"packages are for bubblewrap alone; with {self.kind}, programs import what {where} has")
        return self
