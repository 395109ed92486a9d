"""A commit of a bare repository as the folder that an image gets: its own history, and nothing later."""

from __future__ import annotations

import io
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from gumshoe.env.repositories import run_git
from gumshoe.errors import TaskError

__all__ = ["checkout_archive", "commit_date", "first_file"]

TIMEOUT_S = 900.0


def checkout_archive(repository: Path, commit: str, root: str) -> io.BytesIO:
    """A repository at `commit`, with the history and the tags that lead there, as a tar archive below `root`.

    Raises:
        TaskError: the bare repository lacks what is needed.
    """
    with tempfile.TemporaryDirectory(prefix="gumshoe-checkout-") as folder:
        place = Path(folder)
        _git(place, "init", "--quiet", "--initial-branch=main")
        _fetch(place, repository, commit)
        _git(place, "reset", "--quiet", "--hard")
        (place / ".git" / "FETCH_HEAD").unlink(missing_ok=True)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
            archive.add(place, arcname=root.lstrip("/"), filter=_of_root)
    buffer.seek(0)
    return buffer


def commit_date(repository: Path, commit: str) -> datetime | None:
    """When the commit was made; None where the repository does not have it."""
    try:
        return datetime.fromtimestamp(int(_git(repository, "show", "-s", "--format=%ct", f"{commit}^{{commit}}")), UTC)
    except (TaskError, ValueError):
        return None


def first_file(repository: Path, commit: str, paths: tuple[str, ...]) -> str | None:
    """The first of these files that is there at the commit."""
    found = set(_git(repository, "ls-tree", "--name-only", commit, "--", *paths).splitlines()) if paths else set[str]()
    return next((path for path in paths if path in found), None)


def _fetch(place: Path, repository: Path, commit: str) -> None:
    """The commit with its history, or without it where the history has holes, as in partial clones."""
    fetch = ("fetch", "--quiet", "--update-head-ok", "--no-tags")
    tags = [f"refs/tags/{tag}:refs/tags/{tag}" for tag in _git(repository, "tag", "--merged", commit).split()]
    source, branch = f"file://{repository.resolve()}", f"{commit}:refs/heads/main"
    try:
        _git(place, *fetch, source, branch, *tags)
    except TaskError:
        try:
            _git(place, *fetch, "--depth=1", source, branch)
        except TaskError:
            raise TaskError(f"{repository} lacks some files of {commit[:10]}") from None


def _of_root(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if info.isdir():
        info.mode |= 0o755
    return info


def _git(folder: Path, *arguments: str) -> str:
    return run_git(folder, *arguments, timeout_s=TIMEOUT_S).decode("utf-8", "surrogateescape")
