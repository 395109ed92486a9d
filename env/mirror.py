"""A folder on this machine and its copy in a sandbox: what changes in the folder is copied again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gumshoe.env.sandboxes.staging import staged_paths
from gumshoe.errors import SandboxError
from gumshoe.protocols import Sandbox
from gumshoe.records import Edit

__all__ = ["FolderMirror"]

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
        for path in staged_paths(self._folder, self._without):
            try:
                facts = path.lstat()
            except OSError:
                continue
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(self._folder).as_posix()] = (facts.st_mode, facts.st_mtime_ns, facts.st_size)
        return found


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")
