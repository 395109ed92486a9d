"""How the tests of a project are run: in which environment, with which arguments, for how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gumshoe.records import Limits, Task, WorkspaceSpec

__all__ = ["ENTRYPOINT", "Suite"]

ENTRYPOINT = ("python", "-m", "pytest", "-q")


@dataclass(frozen=True)
class Suite:
    """The command that runs a project's tests.

    Bugs are judged by pytest, which also runs unittest tests. The tasks may use another command.

    Attributes:
        environment: name of the environment that it needs; None runs on the sandbox's own Python.
        arguments: what pytest gets besides the project's own options: files and tests that do not count, plugins off.
        command_timeout_s: the limit that tasks have for one command; None leaves the default.
        command: what runs the tests in the tasks; empty: pytest.
        limit: the key of the config that limits one run, for messages.
        repeatable: whether tests must not use random numbers without a seed, nor measure time.
        names: what this command calls the tests, by their names for pytest; others do not count. None: the same names.
    """

    environment: str | None = None
    arguments: tuple[str, ...] = ()
    command_timeout_s: float | None = None
    command: tuple[str, ...] = ()
    names: Mapping[str, str] | None = None
    limit: str = "timeout_s"
    repeatable: bool = False

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The whole command line of pytest."""
        return (*ENTRYPOINT, *self.arguments)

    @property
    def task_entrypoint(self) -> tuple[str, ...]:
        """The command line in the tasks."""
        return self.command or self.entrypoint

    def named(self, tests: Iterable[str]) -> tuple[str, ...]:
        """Tests as the tasks name them, without those that do not count there."""
        return tuple(tests) if self.names is None else tuple(self.names[one] for one in tests if one in self.names)

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
