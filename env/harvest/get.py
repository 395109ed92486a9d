"""The get stage: the sources of a package as a folder, without running any of its code."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.env.harvest.archives import copy_tree, unpack
from gumshoe.env.harvest.build_sandbox import BuildSandbox
from gumshoe.env.harvest.config import BuildConfig
from gumshoe.env.harvest.pythons import interpreters
from gumshoe.env.harvest.repository import run_git
from gumshoe.env.harvest.sources import RequestedPackage
from gumshoe.env.harvest.stages import StageCache, key_of
from gumshoe.env.tasks.projects import digest_of
from gumshoe.errors import TaskError

__all__ = ["Got", "get_source"]

DOWNLOADS = "/downloads"


@dataclass(frozen=True)
class Got:
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


def get_source(source: RequestedPackage, config: BuildConfig) -> Got:
    """The sources of a package. Raises TaskError when they cannot be obtained."""
    key = key_of(source.kind, source.text, _state(source))
    made = StageCache("get").get(key, lambda folder: _get(source, folder, config), _is_there)
    repository = made.get("repository")
    return Got(Path(made["folder"]), made["digest"], made["version"], Path(repository) if repository else None)


def _state(source: RequestedPackage) -> str:
    """What has to be equal for a source to be the same as before."""
    if source.kind == "folder":
        return digest_of(Path(source.text))
    if source.kind == "sdist":
        stat = Path(source.text).stat()
        return f"{stat.st_size} {stat.st_mtime_ns}"
    return run_git("ls-remote", source.text, "HEAD").strip() if source.kind == "git" else ""


def _is_there(made: dict[str, Any]) -> bool:
    return Path(made["folder"]).is_dir()


def _get(source: RequestedPackage, folder: Path, config: BuildConfig) -> dict[str, Any]:
    target = folder / "source"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    found: dict[str, Any] = {"version": ""}
    if source.kind == "folder":
        target.rmdir()
        copy_tree(Path(source.text), target)
        found["folder"] = str(target)
    elif source.kind == "git":
        found |= _clone(source.text, folder)
        found["folder"] = str(unpack(Path(found.pop("archive")), target))
    elif source.kind == "sdist":
        found["folder"] = str(unpack(Path(source.text), target))
    else:
        archive, version = _download(source.text, folder, config)
        found |= {"folder": str(unpack(archive, target)), "version": version}
    return {**found, "digest": digest_of(Path(found["folder"]))}


def _download(requirement: str, folder: Path, config: BuildConfig) -> tuple[Path, str]:
    """The sdist that a requirement names, and its version."""
    downloads = folder / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir()
    python = interpreters()[0].path
    sandbox = BuildSandbox({DOWNLOADS: downloads}, python, config)
    argv = [str(python), "/gumshoe/fetch_sdist.py", requirement, DOWNLOADS]
    result = sandbox.run(argv, timeout=config.install_timeout_s, limit="build.install_timeout_s")
    if result.problem is not None:
        raise TaskError(f"{requirement} cannot be downloaded: {result.problem}")
    try:
        answer = json.loads(result.output.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise TaskError(f"{requirement} cannot be downloaded: {result.output.strip()[-200:]}") from None
    if "error" in answer:
        raise TaskError(f"{requirement} cannot be downloaded: {answer['error']}")
    return downloads / Path(answer["file"]).name, str(answer["version"])


def _clone(place: str, folder: Path) -> dict[str, Any]:
    """A bare clone, and its HEAD as an archive."""
    repository, archive = folder / "repository.git", folder / "head.tar"
    shutil.rmtree(repository, ignore_errors=True)
    run_git("clone", "--bare", "--template=", "--no-local", "--", place, str(repository))
    run_git("--git-dir", str(repository), "archive", "--format=tar", "--prefix=head/", "-o", str(archive), "HEAD")
    version = run_git("--git-dir", str(repository), "rev-parse", "HEAD").strip()
    return {"repository": str(repository), "archive": str(archive), "version": version[:12]}
