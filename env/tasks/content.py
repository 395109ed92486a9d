"""What a folder holds, as a digest that is the same wherever the folder stands."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from gumshoe.errors import TaskError
from gumshoe.records import WorkspaceSpec

__all__ = ["at_folder", "digest_of"]

# As in staging: never copied into a sandbox, so no part of the task.
LEFT_OUT = frozenset({".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})


def digest_of(folder: Path) -> str:
    """SHA-256 (hex) of the names, kinds, modes and contents of everything below `folder`.

    Caches and git's own folder do not count. Raises TaskError when something cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for parent, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
            links = [name for name in folders if Path(parent, name).is_symlink()]
            for name in sorted([*links, *(name for name in files if not name.endswith(".pyc"))]):
                for part in _facts(Path(parent, name), folder):
                    digest.update(b"%d:%b" % (len(part), part))
    except OSError as error:
        raise TaskError(f"{folder} cannot be read: {error}") from None
    return digest.hexdigest()


def _facts(path: Path, folder: Path) -> tuple[bytes, ...]:
    """What one entry adds; nothing for sockets and the like, which are not copied into sandboxes either."""
    name = os.fsencode(path.relative_to(folder).as_posix())
    if path.is_symlink():
        return b"link", name, os.fsencode(path.readlink())
    if not path.is_file():
        return ()
    return b"program" if path.stat().st_mode & 0o100 else b"file", name, path.read_bytes()


def at_folder(folder: Path, overlay: dict[str, str | None] | None = None) -> WorkspaceSpec:
    """The workspace that copies `folder`. Raises TaskError as `digest_of` does."""
    return WorkspaceSpec(path=str(folder), content=digest_of(folder), overlay=overlay or {})
