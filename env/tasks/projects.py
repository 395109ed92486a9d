"""Projects that tasks are made from: how a stored task names one, a digest of what it holds, and its tests.

A project is stored as `casebook:<name>`, or as a path relative to the folder of the task set, so that a task is read on
any machine; in memory it is always an absolute path.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from gumshoe.errors import TaskError
from gumshoe.records import WorkspaceSpec

CASEBOOK = Path(__file__).resolve().parent.parent / "casebook"
SCHEME = "casebook:"
PYTEST = ("python", "-m", "pytest", "-q")
"""The command of tasks whose tests nothing else runs."""
TEST_FILES = ("test_*.py", "*_test.py", "*_tests.py", "test.py", "tests.py")
CACHES = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})
"""Folders that sandboxes never see."""
# No part of a folder's digest: caches, and git's folder, which differs between equal clones.
LEFT_OUT = CACHES | {".git"}
COPIED = frozenset({stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK})
MAX_FOLDER_BYTES = 2 << 30
BLOCK_BYTES = 1 << 20


def casebook_projects() -> dict[str, Path]:
    """The bundled clean projects by name, sorted."""
    return {case.parent.name: case.parent / "repo" for case in sorted(CASEBOOK.glob("*/case.yaml"))}


def resolve_project(stored: str, folder: Path) -> Path:
    """The absolute path of a project as a task set in `folder` names it. Raises TaskError when it is not there."""
    if stored.startswith(SCHEME):
        path = CASEBOOK / stored.removeprefix(SCHEME) / "repo"
        hint = "this version of Gumshoe does not bundle it"
    else:
        path = folder / stored
        hint = "the task set is incomplete"
    path = path.resolve()
    allowed = CASEBOOK if stored.startswith(SCHEME) else folder.resolve()
    if not path.is_relative_to(allowed) or path == allowed:
        raise TaskError(f"the project {stored} is outside of {allowed}: copy it into the task set")
    if not path.is_dir():
        raise TaskError(f"no project {stored}: {hint}")
    return path


def test_files(project: Path) -> list[Path]:
    """The files with names that pytest collects by default, or that projects commonly tell it to, sorted."""
    return sorted(path for pattern in TEST_FILES for path in project.rglob(pattern) if path.is_file())


def is_doctest(test: str) -> bool:
    """Whether a test's id is that of a doctest in a module.

    pytest names it after the object: `shop/cart.py::shop.cart.Cart.add`; from inside a `src` folder the module's
    name begins later, so any tail of the path counts.
    """
    path, _, name = test.partition("::")
    if not path.endswith(".py") or "::" in name:
        return False
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    tails = (".".join(parts[start:]) for start in range(len(parts)))
    return any(name == tail or name.startswith(f"{tail}.") for tail in tails)


def digest_of(folder: Path, limit: int = MAX_FOLDER_BYTES, without: Collection[str] = ()) -> str:
    """SHA-256 (hex) of the names, kinds, modes and contents of everything below `folder`.

    Caches, byte code, git's own folder and the folders `without` do not count. Raises TaskError when something cannot
    be read, when the folder's own name cannot be part of a task, or when the files hold more than `limit` bytes
    together: what is hashed here is copied into a sandbox later.
    """
    check_name(folder)
    digest = hashlib.sha256()
    left = limit
    try:
        for path in _entries(folder, without):
            left -= 0 if path.is_symlink() else path.stat().st_size
            if left < 0:
                raise TaskError(f"{folder} holds more than {limit >> 20} MiB with {path.name}: move data elsewhere")
            _add_entry(digest.update, path, folder)
    except OSError as error:
        raise TaskError(f"{folder} cannot be read: {error}") from None
    return digest.hexdigest()


def left_out_of_copy(folder: str, names: list[str]) -> set[str]:
    """What is not copied with a project: caches, git's own folder, pipes and the like (for `shutil.copytree`)."""
    special = {name for name in names if stat.S_IFMT(Path(folder, name).lstat().st_mode) not in COPIED}
    return special | (set(names) & LEFT_OUT) | {name for name in names if name.endswith(".pyc")}


def check_name(folder: Path) -> None:
    """Raises TaskError for a folder that a task cannot name, since it does not read as text here."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        why = f"the name is not {sys.getfilesystemencoding()} text: rename the folder, or set LC_ALL to a UTF-8 locale"
        raise TaskError(f"{folder} cannot be read: {why}") from None


def workspace_from_folder(folder: Path, overlay: dict[str, str | None] | None = None) -> WorkspaceSpec:
    """The workspace that copies `folder`. Raises TaskError as `digest_of` does."""
    return WorkspaceSpec(path=str(folder), content=digest_of(folder), overlay=overlay or {})


def _entries(folder: Path, without: Collection[str]) -> Iterator[Path]:
    """Files and links below `folder`; no sockets and the like, which are not copied into sandboxes either."""
    for parent, folders, files in os.walk(folder):
        place = Path(parent).relative_to(folder)
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT and str(place / name) not in without)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        for name in sorted([*links, *(name for name in files if not name.endswith(".pyc"))]):
            path = Path(parent, name)
            if path.is_symlink() or path.is_file():
                yield path


def _add_entry(add: Callable[[bytes], None], path: Path, folder: Path) -> None:
    """Adds the parts of one entry, each after its size in bytes."""
    name = os.fsencode(path.relative_to(folder).as_posix())
    if path.is_symlink():
        parts = (b"link", name, os.fsencode(path.readlink()))
    else:
        parts = (b"program" if path.stat().st_mode & 0o100 else b"file", name)
    for part in parts:
        add(b"%d:%s" % (len(part), part))
    if not path.is_symlink():
        add(b"%d:" % path.stat().st_size)
        with path.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                add(block)
