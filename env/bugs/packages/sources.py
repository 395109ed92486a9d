"""The get stage: what a package can be named by, and its sources as a folder, without running any of its code.

A source is a folder, a git repository, an sdist, a requirement, or a file that lists them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from gumshoe.cache import FolderCache
from gumshoe.config import find_config
from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages import stage_folder, stage_key
from gumshoe.env.bugs.packages.build_sandbox import BuildSandbox
from gumshoe.env.bugs.packages.machine import interpreters
from gumshoe.env.bugs.projects import copy_tree
from gumshoe.env.git import run_git
from gumshoe.env.tasks.projects import digest_of
from gumshoe.errors import ConfigError, TaskError

ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:[<>=!~][^;\[\]@]*)?$")
REMOTE = re.compile(r"^(?:git\+)?(?:https?|ssh|git|file)://|^git@")
MAX_BYTES = 512 << 20
MAX_FILES = 50_000
MAX_TEXT_BYTES = 4 << 20


@dataclass(frozen=True)
class RequestedPackage:
    """One package as the user named it. `name` is good for folders and ids."""

    kind: Literal["folder", "git", "sdist", "requirement"]
    text: str
    name: str


def parse_sources(texts: Iterable[str]) -> list[RequestedPackage]:
    """The sources, lists read in place, each once, in order. Raises ConfigError for what is not a source."""
    found = dict.fromkeys(source for text in texts for source in _parse(text))
    names: dict[str, RequestedPackage] = {}
    for source in found:
        other = names.setdefault(source.name, source)
        if other != source:
            raise ConfigError(f"two sources are called {source.name}: {other.text} and {source.text}")
    return list(found)


def _parse(text: str, base: Path = Path()) -> Iterator[RequestedPackage]:
    if not text.strip():
        raise ConfigError("no source '': give a folder, a git repository, an sdist, a requirement or a list")
    path = base / Path(text).expanduser()
    if REMOTE.match(text) or _is_repository(path):
        place = text.removeprefix("git+") if REMOTE.match(text) else str(_place(path))
        yield RequestedPackage(
            "git", place, _slug(place.rstrip("/").removesuffix(".git").rpartition("/")[2].partition("@")[0])
        )
    elif path.is_dir():
        yield RequestedPackage("folder", str(_place(path)), _slug(_place(path).name))
    elif path.is_file() and text.endswith(ARCHIVES):
        stem = next(path.name.removesuffix(suffix) for suffix in ARCHIVES if path.name.endswith(suffix))
        yield RequestedPackage("sdist", str(path.resolve()), _slug(re.sub(r"-\d[^-]*$", "", stem)))
    elif path.is_file():
        yield from _listed(path)
    elif match := REQUIREMENT.match(text):
        yield RequestedPackage("requirement", text, _slug(match["name"]))
    elif (bundled := find_config(Path(text))).is_file():
        yield from _listed(bundled)
    else:
        raise ConfigError(f"no source {text!r}: give a folder, a git repository, an sdist, a requirement or a list")


def _place(path: Path) -> Path:
    """The absolute path of a folder; a link keeps its own name, which tells more than that of what it leads to."""
    return path.resolve() if path.name in ("", "..") else path.parent.resolve() / path.name


def _is_repository(path: Path) -> bool:
    """Whether a folder is a git repository, with a working tree or bare."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def _listed(path: Path) -> Iterator[RequestedPackage]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a list of packages: {error}") from None
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip() if not REMOTE.match(line.strip()) else line.strip()
        if text:
            try:
                yield from _parse(text, path.parent)
            except ConfigError as error:
                raise ConfigError(f"{path}:{number}: {error}") from None


def _slug(name: str) -> str:
    """The name in the form in which package indexes compare names."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "package"


DOWNLOADS = "/downloads"


@dataclass(frozen=True)
class FetchedSource:
    """A package's sources on this machine.

    Attributes:
        folder: the sources.
        digest: hash of what they hold.
        version: as the index or git names it; empty where neither does.
        repository: a bare clone, where the source is a git repository.
    """

    folder: Path
    digest: str
    version: str = ""
    repository: Path | None = None


def get_source(source: RequestedPackage, config: BuildConfig) -> FetchedSource:
    """The sources of a package. Raises TaskError when they cannot be obtained."""
    key = stage_key(source.kind, source.text, _state(source))
    cache = FolderCache(stage_folder("get"), FetchedSource)
    return cache.find(key, lambda folder: _get(source, folder, config), lambda known: known.folder.is_dir())


def _state(source: RequestedPackage) -> str:
    """What has to be equal for a source to be the same as before."""
    if source.kind == "folder":
        return digest_of(Path(source.text))
    if source.kind == "sdist":
        facts = Path(source.text).stat()
        return f"{facts.st_size} {facts.st_mtime_ns}"
    return run_git("ls-remote", source.text, "HEAD").decode().strip() if source.kind == "git" else ""


def _get(source: RequestedPackage, folder: Path, config: BuildConfig) -> FetchedSource:
    target = folder / "source"
    shutil.rmtree(target, ignore_errors=True)
    version, repository = "", None
    if source.kind == "folder":
        copy_tree(Path(source.text), target)
        found = target
    elif source.kind == "git":
        repository, archive, version = _clone(source.text, folder)
        found = unpack(archive, target)
    elif source.kind == "sdist":
        found = unpack(Path(source.text), target)
    else:
        archive, version = _download(source.text, folder, config)
        found = unpack(archive, target)
    return FetchedSource(found, digest_of(found), version, repository)


def _download(requirement: str, folder: Path, config: BuildConfig) -> tuple[Path, str]:
    """The sdist that a requirement names, and its version."""
    downloads = folder / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir()
    python = interpreters()[0].path
    sandbox = BuildSandbox({DOWNLOADS: downloads}, python, config)
    result = sandbox.run([str(python), "/gumshoe/fetch_sdist.py", requirement, DOWNLOADS])
    if result.problem is not None:
        raise TaskError(f"{requirement} cannot be downloaded: {result.problem}")
    try:
        answer = json.loads(result.output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise TaskError(f"{requirement} cannot be downloaded: {result.output.strip()[-200:]}") from None
    if "error" in answer:
        raise TaskError(f"{requirement} cannot be downloaded: {answer['error']}")
    return downloads / Path(answer["file"]).name, str(answer["version"])


def _clone(place: str, folder: Path) -> tuple[Path, Path, str]:
    """A bare clone, its HEAD as an archive, and the beginning of that commit's name."""
    repository, archive = folder / "repository.git", folder / "head.tar"
    shutil.rmtree(repository, ignore_errors=True)
    run_git("clone", "--bare", "--template=", "--no-local", "--", place, str(repository))
    run_git("archive", "--format=tar", "--prefix=head/", "-o", str(archive.resolve()), "HEAD", folder=repository)
    version = run_git("rev-parse", "HEAD", folder=repository).decode().strip()
    return repository, archive, version[:12]


def unpack(archive: Path, folder: Path) -> Path:
    """Writes the regular files of an archive below `folder` and returns the folder that holds them all.

    Links, devices, absolute paths and paths with `..` are not unpacked; modes are reduced to "executable or not".

    Raises TaskError when it is not an archive, or unpacks to more than 512 MiB or 50,000 files.
    """
    written = 0
    folder.mkdir(parents=True, exist_ok=True)
    try:
        for number, (name, executable, stream) in enumerate(_members(archive), 1):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts or "\\" in name:
                continue
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                while chunk := stream.read(1 << 20):
                    written += len(chunk)
                    if written > MAX_BYTES or number > MAX_FILES:
                        raise TaskError(
                            f"{archive.name} unpacks to more than {MAX_BYTES >> 20} MiB or {MAX_FILES} files"
                        )
                    file.write(chunk)
            target.chmod(0o755 if executable else 0o644)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise TaskError(f"{archive.name} cannot be unpacked: {error}") from None
    found = list(folder.iterdir())
    return found[0] if len(found) == 1 and found[0].is_dir() else folder


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


def entries(folder: Path) -> list[Path]:
    """What a folder holds, sorted; nothing for a link or anything else that is not a folder."""
    return sorted(folder.iterdir()) if folder.is_dir() and not folder.is_symlink() else []


def read_text(path: Path) -> str:
    """The text of a regular file in a folder that a package's code could write to, of which 4 MiB are read at most.

    Empty where there is none.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        regular = stat.S_ISREG(os.fstat(file).st_mode)
        data = os.read(file, MAX_TEXT_BYTES) if regular else b""
    finally:
        os.close(file)
    return data.decode("utf-8", "replace")
