"""Puts a task's repository and Gumshoe's modules into a sandbox, and activates its environment.

An environment that an image keeps for its repository is activated once, for every program that runs there later.

With the repository comes the byte code of the task's tests, as pytest rewrites them. Programs in a sandbox write none,
so that pytest would parse, rewrite and compile the test files in each run, which for many packages takes longer than
their tests. It is made by `gumshoe.env.sandboxes.open.compile_tests`, and kept in the cache under a hash of the
project's content, its place, and the environment that its tests run in.
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import tarfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from gumshoe.env.git import remove_future
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.tasks.projects import CACHES
from gumshoe.env.virtualenvs import INSIDE, find_environment
from gumshoe.errors import TaskError
from gumshoe.records import Task
from gumshoe.storage import cache_folder, write_atomic
from gumshoe.tools.runs.commands import is_pytest

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
BYTE_CODE_FOLDER = "__pycache__"
BYTE_CODE_HEADER = 16
BY_TIME = b"\0\0\0\0"
"""The flags of byte code that names the time and size of its source; other byte code names the source's hash."""
SETTLED_S = 10.0
"""Byte code by time is left out if the file is younger than this: it might still change within the second."""


def stage(sandbox: WardenSandbox, task: Task, setup_timeout_s: float) -> None:
    """Copies the repository in, lays the overlay over it, adds byte code of the tests where it is known, activates its
    environment, runs the setup commands and removes git's future. What programs do to the harness counts as tampering
    from then on. A setup command may take `setup_timeout_s`.

    Raises TaskError when the repository is missing or a setup command fails.
    """
    overlay = checked_overlay(task)
    if task.workspace.path is not None:
        for archive in _archives(repository_of(task), frozenset(overlay)):
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
        result = sandbox.run(argv, timeout=setup_timeout_s)
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


def checked_overlay(task: Task) -> dict[str, str | None]:
    """The task's overlay, by clean paths. Raises TaskError for a path that leads out of the workspace."""
    overlay: dict[str, str | None] = {}
    for path, text in task.workspace.overlay.items():
        clean = PurePosixPath(path)
        if clean.is_absolute() or ".." in clean.parts or not clean.parts:
            raise TaskError(f"task {task.id}: overlay path {path!r} leads out of the workspace")
        overlay[str(clean)] = text
    return overlay


def repository_of(task: Task) -> Path:
    """The folder that the task's repository is copied from. Raises TaskError where there is none."""
    folder = Path(str(task.workspace.path))
    if not folder.is_dir():
        raise TaskError(f"task {task.id}: its repository {folder} is not a folder on this machine")
    return folder


def _archives(folder: Path, without: frozenset[str]) -> Iterator[bytes]:
    """The repository as tar archives of some megabytes each; owners are left out."""
    buffer = io.BytesIO()
    archive = tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by turns
    for path in staged_paths(folder, without):
        archive.add(path, arcname=path.relative_to(folder).as_posix(), recursive=False, filter=_without_owner)
        if buffer.tell() > ARCHIVE_BYTES:
            archive.close()
            yield buffer.getvalue()
            buffer = io.BytesIO()
            archive = tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
    archive.close()
    yield buffer.getvalue()


def staged_paths(folder: Path, without: frozenset[str] = frozenset()) -> Iterator[Path]:
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
    variables = {"PATH": f"{INSIDE}/bin:{path}", "VIRTUAL_ENV": INSIDE, **find_environment(name).lock.variables}
    sandbox.activate(variables, f"{INSIDE}/bin/python")


def _activate(sandbox: WardenSandbox, task: Task) -> None:
    """Runs the task's activation code, if it has any, and keeps the variables that it sets.

    Our injected modules then run on the Python that is first in its `PATH`, unless that is older than 3.6. Raises
    TaskError where the code failed, or the sandbox has no bash.
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


def byte_code_place(task: Task) -> Path | None:
    """The file in the cache for the byte code of a task's tests; None for a task that has none.

    A task has some if pytest runs the tests of a folder in an environment.
    """
    space = task.workspace
    if space.path is None or space.content is None or space.environment is None or not is_pytest(task.entrypoint):
        return None
    facts = "\n".join((space.content, space.environment, space.workdir))
    return cache_folder() / "byte_code" / f"{hashlib.sha256(facts.encode()).hexdigest()[:24]}.tar"


def is_byte_code_of_tests(path: str) -> bool:
    """Whether a file is byte code of a test file that pytest has rewritten."""
    parts = path.split("/")
    return BYTE_CODE_FOLDER in parts[-2:-1] and "-pytest-" in parts[-1] and path.endswith(".pyc")


def keep_byte_code(place: Path, files: Mapping[str, bytes]) -> None:
    """Keeps the byte code in these files, by their paths in the workspace."""
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(place, _byte_code_tar(files))


def byte_code_archive(task: Task) -> bytes | None:
    """A tar archive of what is kept for a task, to unpack in its workspace; None where nothing is kept.

    Test files that the task changes or lacks have none. The task's folder is the one that its content was made from.
    """
    place = byte_code_place(task)
    if place is None or not place.is_file():
        return None
    folder, overlay = Path(str(task.workspace.path)), frozenset(task.workspace.overlay)
    return _byte_code_tar(dict(_fitting_byte_code(place, folder, overlay)))


def _fitting_byte_code(place: Path, folder: Path, overlay: Collection[str]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(place) as archive:
        for info in archive:
            source = _test_file_of(info.name)
            if not {source, *map(str, PurePosixPath(source).parents)}.isdisjoint(overlay):
                continue
            file = archive.extractfile(info)
            data = _with_time_of(file.read() if file else b"", folder / source)
            if data is not None:
                yield info.name, data


def _test_file_of(path: str) -> str:
    """The test file that byte code is made from."""
    folder, name = posixpath.split(path)
    return posixpath.join(posixpath.dirname(folder), name.partition(".")[0] + ".py")


def _with_time_of(data: bytes, source: Path) -> bytes | None:
    """The byte code with the time of the file, which its copy in a sandbox keeps; None where it does not fit."""
    try:
        facts = source.stat()
    except OSError:
        return None
    if data[4:8] != BY_TIME:
        return data
    moment, size = (number & 0xFFFFFFFF for number in (int(facts.st_mtime), facts.st_size))
    if data[12:BYTE_CODE_HEADER] != size.to_bytes(4, "little") or time.time() - facts.st_mtime < SETTLED_S:
        return None
    return data[:8] + moment.to_bytes(4, "little") + data[12:]


def _byte_code_tar(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items()):
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
