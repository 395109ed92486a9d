"""How the tests of a project are run: in which environment, with which arguments, for how long."""

from __future__ import annotations

from dataclasses import dataclass

from gumshoe.records import Limits, Task, WorkspaceSpec

__all__ = ["ENTRYPOINT", "Suite"]

ENTRYPOINT = ("python", "-m", "pytest", "-q")


@dataclass(frozen=True)
class Suite:
    """The command that runs a project's tests.

    Attributes:
        environment: name of the environment that it needs; None runs on the sandbox's own Python.
        arguments: what pytest gets beside the project's own options: files and tests that do not count, plugins off.
        command_timeout_s: the limit that tasks have for one command; None leaves the default.
    """

    environment: str | None = None
    arguments: tuple[str, ...] = ()
    command_timeout_s: float | None = None

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The whole command line."""
        return (*ENTRYPOINT, *self.arguments)

    @property
    def limits(self) -> Limits:
        """The limits of a task with this suite."""
        return Limits() if self.command_timeout_s is None else Limits(command_timeout_s=self.command_timeout_s)

    def task(self, name: str, path: str, overlay: dict[str, str | None] | None = None) -> Task:
        """A task that runs this suite on the project in `path`."""
        return Task(
            id=name,
            source="synth",
            problem_statement="",
            workspace=WorkspaceSpec(path=path, overlay=overlay or {}, environment=self.environment),
            entrypoint=self.entrypoint,
            limits=self.limits,
        )
