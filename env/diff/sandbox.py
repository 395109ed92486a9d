"""Applying a patch to the files in a sandbox, with the official harness's attempts in the same order.

`git apply` knows binary files, modes, links and renames, and tolerates lines that have moved. Where the sandbox has no
git, every line must match exactly.
"""

from __future__ import annotations

import posixpath

from gumshoe.env.diff.apply import apply_patch, source_paths
from gumshoe.errors import TaskError
from gumshoe.protocols import Sandbox
from gumshoe.records import ExecResult

__all__ = ["apply_to_sandbox", "patched_texts", "write_texts"]

ATTEMPTS = (
    ("git", "apply", "--verbose", "-"),
    ("git", "apply", "--verbose", "--3way", "-"),
    ("git", "apply", "--verbose", "--reject", "-"),
    ("patch", "--batch", "--forward", "--fuzz=5", "-p1"),
)
APPLIED_ALREADY = ("git", "apply", "--check", "--reverse", "-")
NO_PROGRAM = 127
TIMEOUT_S = 120.0


def apply_to_sandbox(sandbox: Sandbox, patch: str, task_id: str, clean: str) -> None:
    """Applies a patch to the workspace.

    Args:
        clean: name of the snapshot that the workspace is at now; every attempt begins there.

    Raises:
        TaskError: it does not apply; the message names the task. The workspace is then in no particular state.
    """
    if not patch.strip():
        return
    last = _attempt(sandbox, ATTEMPTS[0], patch)
    if last.exit_code == NO_PROGRAM:
        _apply_exactly(sandbox, patch, task_id)
        return
    for attempt in ATTEMPTS[1:]:
        if last.exit_code == 0:
            return
        sandbox.restore(clean)
        last = _attempt(sandbox, attempt, patch)
    if last.exit_code != 0 and _attempt(sandbox, APPLIED_ALREADY, patch).exit_code != 0:
        sandbox.restore(clean)
        raise TaskError(f"task {task_id}: {_why(sandbox, patch, last)}")


def patched_texts(sandbox: Sandbox, patch: str) -> dict[str, str | None]:
    """The texts that a patch would leave behind, with None for files that it removes. Raises TaskError."""
    files = {path: text for path in source_paths(patch) if (text := _read(sandbox, path)) is not None}
    return apply_patch(files, patch)


def write_texts(sandbox: Sandbox, texts: dict[str, str | None]) -> None:
    """Writes and removes files, whatever is there."""
    for path, text in texts.items():
        if text is not None:
            sandbox.write_file(path, text.encode("utf-8", "surrogateescape"))
        elif _read(sandbox, path) is not None:
            sandbox.remove_file(path)


def _apply_exactly(sandbox: Sandbox, patch: str, task_id: str) -> None:
    try:
        write_texts(sandbox, patched_texts(sandbox, patch))
    except (TaskError, PermissionError, NotADirectoryError, IsADirectoryError) as error:
        raise TaskError(f"task {task_id}: {error}") from None


def _attempt(sandbox: Sandbox, argv: tuple[str, ...], patch: str) -> ExecResult:
    """One attempt, isolated from a person's git settings and from a repository that the workspace may be in."""
    environment = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": posixpath.dirname(sandbox.root),
        "LC_ALL": "C",
    }
    words = (argv[0], "-c", "safe.directory=*", *argv[1:]) if argv[0] == "git" else argv
    data = patch.encode("utf-8", "surrogateescape")
    return sandbox.run(words, input=data, env=environment, timeout=TIMEOUT_S)


def _why(sandbox: Sandbox, patch: str, last: ExecResult) -> str:
    """What a person needs to know: where the text differs, else what the last program said."""
    try:
        patched_texts(sandbox, patch)
    except TaskError as error:
        return str(error)
    lines = last.output.strip().splitlines()[-1:] or [f"exit code {last.exit_code}"]
    return f"the patch does not apply: {lines[0]}"


def _read(sandbox: Sandbox, path: str) -> str | None:
    try:
        return sandbox.read_file(path).decode("utf-8", "surrogateescape")
    except OSError:
        return None
