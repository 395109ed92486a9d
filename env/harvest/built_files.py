"""The files that installing a package in place leaves in its environment and in its own folder."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from gumshoe.env.harvest.archives import copy_tree
from gumshoe.env.harvest.lock import site_packages
from gumshoe.env.harvest.pythons import Interpreter

__all__ = ["WORKSPACE", "entries", "package_files", "ship_project", "small_text"]

WORKSPACE = "/workspace"
MAX_PACKAGE_FILE = 1 << 20
NOT_SHIPPED = frozenset({"build", "dist", "__pycache__", ".git", ".pytest_cache", ".hypothesis", ".eggs"})


def package_files(root: Path, python: Interpreter) -> Iterator[tuple[str, str]]:
    """What an in-place install has put beside the installed packages, by path: metadata and path files."""
    site = site_packages(root, python)
    for path in entries(site):
        editable = path.suffix == ".dist-info" and "file://" + WORKSPACE in small_text(path / "direct_url.json")
        if editable:
            files = [f"{path.name}/{child.name}" for child in entries(path)]
            recorded = [line.split(",")[0] for line in small_text(path / "RECORD").splitlines()]
            files += [name for name in recorded if name.endswith((".pth", ".py")) and ".." not in name]
        else:
            files = [path.name] if path.suffix in (".egg-link", ".pth") and WORKSPACE in small_text(path) else []
        yield from ((name, text) for name in files if (text := small_text(site / name)))


def ship_project(source: Path, built: Path, project: Path) -> None:
    """The original sources, with the regular files that building has added."""
    shutil.rmtree(project, ignore_errors=True)
    project.parent.mkdir(parents=True, exist_ok=True)
    copy_tree(source, project)
    for parent, names, files in os.walk(built):
        relative = Path(parent).relative_to(built)
        names[:] = [name for name in names if name not in NOT_SHIPPED and not Path(parent, name).is_symlink()]
        for name in files:
            made, target = Path(parent, name), project / relative / name
            inside = target.parent.resolve().is_relative_to(project.resolve())
            if made.is_symlink() or not made.is_file() or os.path.lexists(target) or not inside or made.suffix == ".o":
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(made, target, follow_symlinks=False)
            target.chmod(0o755 if made.suffix == ".so" else 0o644)


def entries(folder: Path) -> list[Path]:
    """What a folder holds, sorted; nothing for a link or anything else that is not a folder."""
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def small_text(path: Path) -> str:
    """The text of a small regular file in a folder that a package's code could write to."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        regular = stat.S_ISREG(os.fstat(file).st_mode)
        data = os.read(file, MAX_PACKAGE_FILE) if regular else b""
    finally:
        os.close(file)
    return data.decode("utf-8", "replace")
