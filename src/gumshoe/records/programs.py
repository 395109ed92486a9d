"""The results of running programs in a sandbox."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from gumshoe.records.base import LineNumber, Record, TimedRecord


class ExecResult(TimedRecord):
    """What a program run in a sandbox did. `output` is stdout and stderr as they came, decoded with replacement."""

    exit_code: int | None = Field(description="None when it was killed for taking too long")
    output: str
    duration_s: float = Field(ge=0)
    timed_out: bool = False
    truncated: bool = False
    warm: bool = Field(default=False, description="it was a fork of the sandbox's test server")
    cold: str | None = Field(default=None, description="why it was not, where it was to be")


class DebugFrame(Record):
    """One stack frame of a stopped program, innermost last. `path` is relative to the workspace if it is inside it."""

    path: str
    line: LineNumber = Field(lt=1 << 31)
    function: str
    code: str = ""
    local_values: dict[str, str] = Field(default_factory=dict, description="name to repr, shortened")


PASSING = ("passed", "xfailed")
"""The outcomes of tests that pass, or fail as expected."""
FAILING = ("failed", "error", "crashed", "timed_out")
"""The outcomes of tests that fail."""


class TestOutcome(Record):
    """The outcome of one test. `xfailed` counts as passed, as in SWE-bench.

    A test `crashed` if the process ended while it was running, and `timed_out` if the time was up; one that was
    `not_run` would have come after it.
    """

    __test__ = False

    id: str
    outcome: Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed", "crashed", "timed_out", "not_run"]
    message: str = Field(default="", description="the exception, or why the test was skipped")
    title: str = Field(default="", description="first line of its docstring, where the runner names it by that")
    frames: tuple[DebugFrame, ...] = Field(
        default=(), description="frames of the project that the exception went through, innermost last"
    )

    @property
    def passed(self) -> bool:
        """Whether it passed, or failed as expected."""
        return self.outcome in PASSING

    @property
    def failed(self) -> bool:
        """Whether it failed, ended with an error, or did not end."""
        return self.outcome in FAILING


class Edit(Record):
    """One change of a file in the workspace. None stands for a file that was not there, or no longer is."""

    path: str
    before: str | None
    after: str | None


class SessionReply(Record):
    """What an interactive program did during one exchange.

    `output` is what it printed on its terminal; `message` is its framed answer on the control channel, None if it
    gave none, and `interim` what announced that answer. With `timed_out` the program is still running. `exit_code` is
    set once it has ended.
    """

    output: str = ""
    message: dict[str, JsonValue] | None = None
    interim: tuple[dict[str, JsonValue], ...] = ()
    timed_out: bool = False
    truncated: bool = False
    exit_code: int | None = None


class Entry(Record):
    """One path below a folder, relative to the sandbox's root; its kind is `file`, `dir`, `link` or `other`."""

    path: str
    kind: str
    size: int = 0


class Match(Record):
    """One line that a search found; `line` counts from 1, `text` has no line end and is shortened."""

    path: str
    line: int
    text: str


class TestRun(Record):
    """One run of the entrypoint: per-test outcomes where the runner is known, else none."""

    __test__ = False

    result: ExecResult
    outcomes: tuple[TestOutcome, ...] = ()

    @property
    def passed(self) -> bool:
        """No test failed, and the program ended with 0 in time. For a verdict, see `gumshoe.env.verifier`."""
        failed = any(outcome.failed for outcome in self.outcomes)
        return self.result.exit_code == 0 and not self.result.timed_out and not failed


class Reproduction(Record):
    """A test that the agent wrote from an issue: its files, which no patch holds, and the argv that runs it alone."""

    path: str
    files: tuple[str, ...]
    entrypoint: tuple[str, ...]
