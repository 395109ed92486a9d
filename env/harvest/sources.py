"""What a package can be named by: a folder, a git repository, an sdist, a requirement, or a file that lists them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gumshoe.config import find_config
from gumshoe.errors import ConfigError

__all__ = ["RequestedPackage", "parse_sources"]

ARCHIVES = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:[<>=!~][^;\[\]@]*)?$")
REMOTE = re.compile(r"^(?:git\+)?(?:https?|ssh|git|file)://|^git@")


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
    if REMOTE.match(text) or (path / ".git").exists() or (text.endswith(".git") and path.is_dir()):
        place = text.removeprefix("git+") if REMOTE.match(text) else str(path.resolve())
        yield RequestedPackage(
            "git", place, _slug(place.rstrip("/").removesuffix(".git").rpartition("/")[2].partition("@")[0])
        )
    elif path.is_dir():
        yield RequestedPackage("folder", str(path.resolve()), _slug(path.resolve().name))
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
