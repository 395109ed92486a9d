"""Puts a task's repository and Gumshoe's modules into a sandbox, and activates its environment.

An environment that an image keeps for its repository is activated once, for every program that runs there later.
`FolderMirror` brings the copy of a repository up to date later, when the original has changed.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from gumshoe.env.config import SandboxConfig
from gumshoe.env.git import remove_future
from gumshoe.env.sandboxes.byte_code import byte_code_archive
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.tasks.projects import CACHES
from gumshoe.env.virtualenvs import INSIDE, find_environment
from gumshoe.errors import SandboxError, TaskError
from gumshoe.protocols import Sandbox
from gumshoe.records import Edit, Task

__all__ = ["FolderMirror", "stage"]

ARCHIVE_BYTES = 8 << 20
COMMAND_CHARS = 80
ACTIVATION_TIMEOUT_S = 120.0
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
MARK = "gumshoe-environment"
# What the code prints comes before the mark.
SHOW = f"printf '%s\\0' {MARK} \"$(command -v python || command -v python3)\" && exec env -0"
OF_THE_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
# The oldest Python that our injected modules run on.
FIT = "import sys; sys.exit(sys.version_info < (3, 6))"


def stage(sandbox: WardenSandbox, task: Task, config: SandboxConfig) -> None:
    """Copies the repository in, lays the overlay over it, adds byte code of the tests where it is known, activates its
    environment, runs the setup commands and removes git's future. What programs do to the harness counts as tampering
    from then on.

    Raises TaskError when the repository is missing or a setup command fails.
    """
    overlay = _checked_overlay(task)
    if task.workspace.path is not None:
        for archive in _archives(_repository(task), frozenset(overlay)):
            sandbox.unpack(archive, sandbox.root)
    for path, text in overlay.items():
        if text is not None:
            sandbox.write_file(path, text.encode("utf-8", "surrogateescape"))
        elif task.workspace.path is None:
            _remove(sandbox, path)
    byte_code = byte_code_archive(task)
    if byte_code is not None:
        sandbox.unpack(byte_code, sandbox.root)
    sandbox.prepare_support()
    _use_environment(sandbox, task)
    _activate(sandbox, task)
    for argv in task.setup:
        result = sandbox.run(argv, timeout=config.setup_timeout_s)
        if result.exit_code != 0:
            how = "took too long" if result.timed_out else f"ended with exit code {result.exit_code}"
            last = result.output.strip().splitlines()[-1:] or ["no output"]
            raise TaskError(f"task {task.id}: setup command {_shortened(argv)!r} {how}: {last[0]}")
    remove_future(sandbox)
    sandbox.begin_episode()


def _shortened(argv: Sequence[str]) -> str:
    """A command on one line; a script may hold a whole patch."""
    words = " ".join(" ".join(argv).split())
    return words if len(words) <= COMMAND_CHARS else f"{words[:COMMAND_CHARS]}..."


def _checked_overlay(task: Task) -> dict[str, str | None]:
    overlay: dict[str, str | None] = {}
    for path, text in task.workspace.overlay.items():
        clean = PurePosixPath(path)
        if clean.is_absolute() or ".." in clean.parts or not clean.parts:
            raise TaskError(f"task {task.id}: overlay path {path!r} leads out of the workspace")
        overlay[str(clean)] = text
    return overlay


def _repository(task: Task) -> Path:
    folder = Path(str(task.workspace.path))
    if not folder.is_dir():
        raise TaskError(f"task {task.id}: its repository {folder} is not a folder on this machine")
    return folder


def _archives(folder: Path, without: frozenset[str]) -> Iterator[bytes]:
    """The repository as tar archives of some megabytes each; owners are left out."""
    buffer = io.BytesIO()
    archive = tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by turns
    for path in _staged_paths(folder, without):
        archive.add(path, arcname=path.relative_to(folder).as_posix(), recursive=False, filter=_without_owner)
        if buffer.tell() > ARCHIVE_BYTES:
            archive.close()
            yield buffer.getvalue()
            buffer = io.BytesIO()
            archive = tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
    archive.close()
    yield buffer.getvalue()


def _staged_paths(folder: Path, without: frozenset[str] = frozenset()) -> Iterator[Path]:
    """Everything below a folder that is copied into a sandbox; caches and the paths in `without` are not."""
    for parent, folders, files in os.walk(folder):
        place = Path(parent).relative_to(folder)
        # A folder that the overlay deletes is left out with all that it holds.
        folders[:] = sorted(name for name in folders if name not in CACHES and str(place / name) not in without)
        for name in [*folders, *sorted(files)]:
            if str(place / name) not in without and not name.endswith(".pyc"):
                yield Path(parent, name)


def _without_owner(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (info.isreg() or info.isdir() or info.issym() or info.islnk()):
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _remove(sandbox: WardenSandbox, path: str) -> None:
    try:
        sandbox.remove_file(path)
    except FileNotFoundError:
        return


def _use_environment(sandbox: WardenSandbox, task: Task) -> None:
    """Makes the task's environment, if it has one, the Python of every program. Raises TaskError if it is not here."""
    name = task.workspace.environment
    if name is None:
        return
    path = sandbox.environment.get("PATH", DEFAULT_PATH)
    variables = {"PATH": f"{INSIDE}/bin:{path}", "VIRTUAL_ENV": INSIDE, **find_environment(name).variables}
    sandbox.activate(variables, f"{INSIDE}/bin/python")


def _activate(sandbox: WardenSandbox, task: Task) -> None:
    """Runs the task's activation code, if it has any, and keeps the variables that it sets.

    Our injected modules then run on the Python that is first in its `PATH`, unless that is older than 3.6.

    Raises:
        TaskError: the code failed, or the sandbox has no bash.
    """
    code = task.workspace.activate
    if not code:
        return
    result = sandbox.run(["bash", "-c", f"{code}\n{SHOW}"], timeout=ACTIVATION_TIMEOUT_S)
    printed, found, rest = result.output.partition(f"{MARK}\0")
    if result.exit_code != 0 or not found:
        why = printed.strip().splitlines()[-1:] or [f"exit code {result.exit_code}"]
        raise TaskError(f"task {task.id}: its environment cannot be activated: {why[0]}")
    python, *lines = rest.split("\0")
    pairs = [line.partition("=") for line in lines if "=" in line]
    known = sandbox.environment
    sandbox.activate(
        {name: value for name, _, value in pairs if name not in OF_THE_SHELL and known.get(name) != value},
        sandbox.python,
    )
    if python and sandbox.run([python, "-c", FIT], timeout=ACTIVATION_TIMEOUT_S).exit_code == 0:
        sandbox.activate({}, python)


Fact = tuple[int, int, int]
"""Mode, time of the last change in nanoseconds, size in bytes."""


class FolderMirror:
    """Remembers what a folder held when it was copied into a sandbox, and brings the copy up to date later.

    Changes are noticed by mode, time and size. What programs have changed in the sandbox stays, unless the same file
    changes in the folder.

    Args:
        folder: the folder; the sandbox's copy is made just after.
        without: what is not copied.
    """

    def __init__(self, folder: Path, without: Iterable[str] = ()) -> None:
        self._folder = folder
        self._without = frozenset(without)
        self._known = self._facts()

    def update(self, sandbox: Sandbox) -> list[Edit]:
        """Copies what has changed since the last time, and returns the changes.

        Raises:
            SandboxError: a file cannot be copied; a new sandbox is needed.
        """
        now = self._facts()
        changed = sorted(path for path in now.keys() | self._known.keys() if now.get(path) != self._known.get(path))
        self._known = now
        try:
            return [self._copy(path, sandbox) for path in changed]
        except OSError as error:
            raise SandboxError(f"{self._folder} cannot be copied again: {error}") from None

    def _copy(self, path: str, sandbox: Sandbox) -> Edit:
        try:
            before = sandbox.read_file(path)
        except FileNotFoundError:
            before = None
        try:
            after = (self._folder / path).read_bytes()
        except FileNotFoundError:
            after = None
        if after is not None:
            sandbox.write_file(path, after, mode=(self._folder / path).stat().st_mode & 0o777)
        elif before is not None:
            sandbox.remove_file(path)
        return Edit(path=path, before=_text(before), after=_text(after))

    def _facts(self) -> dict[str, Fact]:
        """The regular files that are copied into sandboxes."""
        found: dict[str, Fact] = {}
        for path in _staged_paths(self._folder, self._without):
            try:
                facts = path.lstat()
            except OSError:
                continue
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(self._folder).as_posix()] = (facts.st_mode, facts.st_mtime_ns, facts.st_size)
        return found


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")
