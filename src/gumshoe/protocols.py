"""The contracts, on one page: what may be replaced by something else of its kind.

Tools are `BaseTool`s. What has only one form is used as the class that it is: an `Episode` holds a `DebugEnv`, and so
do the hosts of a cluster; a solver that is a command is given a `WardenSandbox`.

A call that the agent got wrong raises `ToolFailure`; anything else that goes wrong raises a `GumshoeError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, get_args, runtime_checkable

from pydantic import JsonValue

from gumshoe.records import (
    Completion,
    Edit,
    Entry,
    ExecResult,
    Match,
    Message,
    Oracle,
    Reproduction,
    Score,
    SessionReply,
    Task,
    TestRun,
    ToolSchema,
    Trajectory,
)

SandboxKind = Literal["auto", "docker", "podman", "bubblewrap", "local"]
SANDBOX_KINDS: tuple[SandboxKind, ...] = get_args(SandboxKind)


class Session(Protocol):
    """A program on a terminal inside a sandbox, with a separate control channel.

    The control channel is a socket whose file descriptor is in the program's environment as `GUMSHOE_CONTROL`. It
    carries one JSON object per line in each direction, so that nothing a program prints can be taken for an answer.
    Every request carries a `nonce` that cannot be guessed, and only a message that repeats it is an answer; everything
    else on the channel is dropped. An answer may be announced by messages with the nonce and `"interim": true`. A
    message has at most 8 MiB and 40 levels of nesting.
    """

    def request(self, message: Mapping[str, JsonValue], timeout: float) -> SessionReply:
        """Sends one message on the control channel and waits for the answer to it, collecting what is printed
        meanwhile. Raises SandboxError.
        """
        ...

    def wait_message(self, timeout: float) -> SessionReply:
        """Waits for the answer to the last request without sending another. Raises SandboxError."""
        ...

    def interrupt(self) -> None:
        """Sends SIGINT to the program in the foreground of the terminal."""
        ...

    def close(self) -> None:
        """Kills the program and all it started. Idempotent."""
        ...


@runtime_checkable
class Sandbox(Protocol):
    """A place where programs run. Paths are relative to `root` or absolute inside the sandbox.

    Every method raises SandboxError when the sandbox itself broke and SandboxClosed after `close`; the file methods
    raise FileNotFoundError, IsADirectoryError, NotADirectoryError or PermissionError as the file system answers,
    PermissionError also for a path that leaves `root` (symbolic links followed) while `inside` is true.
    """

    backend: str
    isolated: bool
    root: str
    """Absolute path of the workspace inside the sandbox."""
    support: str
    """Absolute path, inside the sandbox, of the folder with our injected modules (debugger, pytest plugin)."""
    python: str
    """The interpreter inside the sandbox that runs them."""
    image_digest: str | None
    """Digest of the image that a container was made from; None for sandboxes of other kinds."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment of every program that is run there, to which `env` is added."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
        warm: bool = False,
    ) -> ExecResult:
        """Runs a program to its end; at the timeout it and everything it started are killed. A program that does
        not exist gives exit code 127.

        With `warm`, a Python program is forked from the sandbox's test server, which has loaded the test runner, unless
        that could change the outcome: see `cold` of the result.
        """
        ...

    def real_path(self, path: str) -> str:
        """The path with its symbolic links followed, relative to `root` (`.` for the root itself)."""
        ...

    def read_file(self, path: str, *, inside: bool = True) -> bytes:
        """The bytes of a regular file."""
        ...

    def read_real(self, path: str) -> tuple[str, bytes]:
        """`real_path` and `read_file` in one."""
        ...

    def write_file(
        self, path: str, data: bytes, *, inside: bool = True, mode: int | None = None, mtime: float | None = None
    ) -> None:
        """Writes atomically (beside it, then renames), makes missing folders, keeps the mode of an existing file."""
        ...

    def remove_file(self, path: str, *, inside: bool = True) -> None:
        """Removes a file."""
        ...

    def walk(
        self, path: str = ".", *, ignore: Sequence[tuple[bool, str]] = (), depth: int | None = None
    ) -> list[Entry]:
        """Everything below `path`, sorted, links not followed. `ignore` holds (hide or show, regular expression)
        pairs in gitignore order, matched against the path relative to `root`; a hidden folder is not entered.
        """
        ...

    def grep(
        self, pattern: str, path: str = ".", *, ignore: Sequence[tuple[bool, str]] = (), limit: int = 200
    ) -> tuple[list[Match], bool]:
        """Lines that a regular expression matches in text files below `path`, and whether there were more."""
        ...

    def prepare_support(self) -> None:
        """Writes the injected modules again, whatever a program has done to them."""
        ...

    def tampering(self) -> tuple[str, ...]:
        """What programs did to the harness, as short texts: processes that they left running; injected modules, the
        interpreter's startup and the test runner that they changed. Writes the injected modules again.
        """
        ...

    def open_session(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, warm: bool = False) -> Session:
        """Starts a program on a terminal. `warm` as for `run`."""
        ...

    def snapshot(self) -> str:
        """Keeps the workspace's files as they are now and returns a name for them."""
        ...

    def restore(self, name: str, *, only: Sequence[tuple[bool, str]] | None = None) -> None:
        """Restores the workspace's files to a snapshot and removes new files; with `only`, just the paths that these
        patterns (as in `walk`) match.
        """
        ...

    def changes(
        self, name: str, *, ignore: Sequence[tuple[bool, str]] = (), ignore_new: Sequence[tuple[bool, str]] = ()
    ) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Paths whose bytes differ from a snapshot, with their content then and now; without what `ignore` matches, and
        without new files that `ignore_new` matches.
        """
        ...

    def close(self) -> None:
        """Kills everything and removes what was made. Idempotent."""
        ...


class Workspace(Protocol):
    """The repository as the agent may see it. Its methods raise ToolFailure for what the agent may not or cannot do.

    Paths are relative to the repository's root, with `/`, as the agent writes them.
    """

    task: Task
    sandbox: Sandbox
    edits: list[Edit]
    reproduction: Reproduction | None
    """What the tools run instead of the task's tests, once there is one."""

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The argv that the tools run: that of the reproduction, or the task's."""
        ...

    @property
    def debug_entrypoint(self) -> tuple[str, ...]:
        """The argv that the debugger runs."""
        ...

    def read_text(self, path: str) -> str:
        """The file's text, undecodable bytes escaped (`surrogateescape`), newlines as they are."""
        ...

    def write_text(self, path: str, text: str) -> Edit:
        """Replaces or makes a file, unless it is read-only, and records the edit."""
        ...

    def write_reproduction(self, reproduction: Reproduction, texts: Mapping[str, str]) -> list[Edit]:
        """Writes the files of a reproduction, which the tools run from now on. These edits are not in `edits`."""
        ...

    def list(self, path: str = ".", depth: int | None = None) -> list[Entry]:
        """What is below a folder and not hidden, sorted, at most `depth` levels deep."""
        ...

    def grep(self, pattern: str, path: str = ".", *, limit: int = 200) -> tuple[list[Match], bool]:
        """Lines that a regular expression matches in files that are not hidden, and whether there were more."""
        ...

    def run_tests(
        self,
        timeout: float | None = None,
        *,
        plugins: Mapping[str, Mapping[str, str]] | None = None,
        warm: bool = False,
        tracebacks: bool = True,
    ) -> TestRun:
        """Restores the read-only files, then runs `entrypoint`. `plugins` are more injected pytest plugins,
        each with the environment variables that it reads; `warm` is as for `Sandbox.run`. Without `tracebacks`, pytest
        prints none, which takes a fraction of the time where many tests fail.
        """
        ...

    def is_readonly(self, path: str) -> bool:
        """Whether the agent may not change the file."""
        ...

    def patch(self) -> str:
        """Everything that changed since the episode began, as a unified diff in git's format, without read-only
        and ignored paths.
        """
        ...


class Policy(Protocol):
    """Who decides: a model, a script, a person, a recording."""

    kind: str
    model: str
    trusted: bool

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The next turn. Raises PolicyError."""
        ...


@runtime_checkable
class _Closeable(Protocol):
    def close(self) -> None: ...


def close_policy(policy: Policy) -> None:
    """Closes what a policy holds open, such as connections; most hold nothing."""
    if isinstance(policy, _Closeable):
        policy.close()


class Scorer(Protocol):
    """Measures a finished trajectory.

    An attribute `unit`, if there is one, says how the mean is written: see `gumshoe.eval.score.metrics.Metric`.
    """

    name: str

    def score(self, trajectory: Trajectory, oracle: Oracle) -> Score:
        """The score, with what the oracle knows about the task."""
        ...
