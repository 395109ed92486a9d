"""Unpacks a source distribution without trusting it."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from gumshoe.errors import TaskError

__all__ = ["copy_tree", "unpack"]

MAX_BYTES = 512 << 20
MAX_FILES = 50_000


def unpack(archive: Path, folder: Path) -> Path:
    """Writes the regular files of an archive below `folder` and returns the folder that holds them all.

    Links, devices, absolute paths and paths with `..` are not unpacked; modes are reduced to "executable or not".

    Raises TaskError when it is not an archive, or unpacks to more than 512 MiB or 50,000 files.
    """
    written = files = 0
    try:
        for name, executable, stream in _members(archive):
            target = _target(folder, name)
            files += 1
            if target is None:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                while chunk := stream.read(1 << 20):
                    written += len(chunk)
                    if written > MAX_BYTES or files > MAX_FILES:
                        raise TaskError(
                            f"{archive.name} unpacks to more than {MAX_BYTES >> 20} MiB or {MAX_FILES} files"
                        )
                    file.write(chunk)
            target.chmod(0o755 if executable else 0o644)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise TaskError(f"{archive.name} cannot be unpacked: {error}") from None
    found = [path for path in folder.iterdir() if path.is_dir()]
    return found[0] if len(found) == 1 and len(list(folder.iterdir())) == 1 else folder


def _members(archive: Path) -> Iterator[tuple[str, bool, IO[bytes]]]:
    """(name, executable, content) of each regular file."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                if not info.is_dir():
                    with packed.open(info) as stream:
                        yield info.filename, bool((info.external_attr >> 16) & 0o100), stream
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            stream = packed.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield member.name, bool(member.mode & 0o100), stream


def _target(folder: Path, name: str) -> Path | None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
        return None
    return folder / path


def copy_tree(source: Path, target: Path) -> None:
    """Copies one of the user's own folders: links that lead out of it, caches and git's folder are left out.

    Raises TaskError when something cannot be read.
    """

    def left_out(folder: str, names: list[str]) -> set[str]:
        return {
            name for name in names if name in CACHES or name.endswith(".pyc") or _leads_out(Path(folder, name), source)
        }

    try:
        shutil.copytree(source, target, symlinks=True, ignore=left_out)
    except (OSError, shutil.Error) as error:
        raise TaskError(f"{source} cannot be copied: {' '.join(str(error).split())}") from None


CACHES = frozenset(
    {
        ".git",
        "__pycache__",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".hypothesis",
        ".venv",
        "venv",
        ".tox",
        ".nox",
    }
)


def _leads_out(path: Path, root: Path) -> bool:
    if path.is_symlink():
        try:
            return not path.resolve().is_relative_to(root.resolve())
        except (OSError, RuntimeError):  # Links that lead in a circle.
            return True
    return not (path.is_dir() or path.is_file())
