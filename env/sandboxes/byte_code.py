"""The byte code of a task's tests, as pytest rewrites them, which comes into the sandbox with the repository.

Programs in a sandbox write no byte code, so that pytest would parse, rewrite and compile the test files in each run,
which for many packages takes longer than their tests. It is made by `compile_tests` of `gumshoe.env.verifier.check`,
and kept in the cache under a hash of the project's content and the environment that its tests run in.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
import tarfile
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from gumshoe.records import Task
from gumshoe.storage import cache_folder, write_atomic
from gumshoe.tools.runs.commands import is_pytest

__all__ = ["byte_code_archive", "is_of_tests", "keep_byte_code", "place_of"]

CACHE = "__pycache__"
HEADER = 16
BY_TIME = b"\0\0\0\0"
"""The flags of byte code that names the time and size of its source; other byte code names the source's hash."""
SETTLED_S = 10.0
"""Byte code by time is left out if the file is younger than this: it might still change within the second."""


def place_of(task: Task) -> Path | None:
    """The file in the cache for the byte code of a task's tests; None for a task that has none.

    A task has some if pytest runs the tests of a folder in an environment.
    """
    space = task.workspace
    if space.path is None or space.content is None or space.environment is None or not is_pytest(task.entrypoint):
        return None
    facts = "\n".join((space.content, space.environment, space.workdir))
    return cache_folder() / "byte_code" / f"{hashlib.sha256(facts.encode()).hexdigest()[:24]}.tar"


def is_of_tests(path: str) -> bool:
    """Whether a file is byte code of a test file that pytest has rewritten."""
    parts = path.split("/")
    return CACHE in parts[-2:-1] and "-pytest-" in parts[-1] and path.endswith(".pyc")


def keep_byte_code(place: Path, files: Mapping[str, bytes]) -> None:
    """Keeps the byte code in these files, by their paths in the workspace."""
    place.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(place, _archive(files))


def byte_code_archive(task: Task) -> bytes | None:
    """A tar archive of what is kept for a task, to unpack in its workspace; None where nothing is kept.

    Test files that the task changes or lacks have none. The task's folder is the one that its content was made from.
    """
    place = place_of(task)
    if place is None or not place.is_file():
        return None
    folder, overlay = Path(str(task.workspace.path)), frozenset(task.workspace.overlay)
    return _archive(dict(_fitting(place, folder, overlay)))


def _fitting(place: Path, folder: Path, overlay: Collection[str]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(place) as archive:
        for info in archive:
            source = _source(info.name)
            if not {source, *map(str, PurePosixPath(source).parents)}.isdisjoint(overlay):
                continue
            file = archive.extractfile(info)
            data = _stamped(file.read() if file else b"", folder / source)
            if data is not None:
                yield info.name, data


def _source(path: str) -> str:
    """The test file that byte code is made from."""
    folder, name = posixpath.split(path)
    return posixpath.join(posixpath.dirname(folder), name.partition(".")[0] + ".py")


def _stamped(data: bytes, source: Path) -> bytes | None:
    """The byte code with the time of the file, which its copy in a sandbox keeps; None where it does not fit."""
    try:
        facts = source.stat()
    except OSError:
        return None
    if data[4:8] != BY_TIME:
        return data
    moment, size = (number & 0xFFFFFFFF for number in (int(facts.st_mtime), facts.st_size))
    if data[12:HEADER] != size.to_bytes(4, "little") or time.time() - facts.st_mtime < SETTLED_S:
        return None
    return data[:8] + moment.to_bytes(4, "little") + data[12:]


def _archive(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in sorted(files.items()):
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
