"""Applying a patch to a folder of the user's own."""

from __future__ import annotations

import os
from pathlib import Path

from gumshoe.env.tasks.apply import apply_patch, patched_paths
from gumshoe.errors import TaskError

__all__ = ["patch_folder"]


def patch_folder(folder: Path, patch: str) -> list[str]:
    """Applies a patch to the files in `folder` and returns the paths that it has changed.

    All of it or nothing: no file is touched unless every part fits, and each is written beside and renamed.

    Raises:
        TaskError: the files are not as the patch says, or a path leads out of the folder.
    """
    root = folder.resolve()
    paths = {path: _inside(root, path) for path in patched_paths(patch)}
    before = {path: _text(place) for path, place in paths.items() if place.is_file()}
    changed = apply_patch(before, patch)
    places = {path: _inside(root, path) for path in changed}
    for path, text in changed.items():
        if text is None:
            places[path].unlink()
        else:
            _write(places[path], text.encode("utf-8", "surrogateescape"))
    return sorted(changed)


def _inside(root: Path, path: str) -> Path:
    place = (root / path).resolve()
    if not place.is_relative_to(root) or ".git" in place.relative_to(root).parts:
        raise TaskError(f"the patch changes {path}, which is not a file of the repository")
    return place


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o7777)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
