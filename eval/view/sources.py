"""What `gumshoe view` was given: run folders, datasets and evaluations, found out from the files in them.

Nothing else is ever served. A file that a link leads out of the given folder is refused, as it is not in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Literal

from gumshoe.errors import ConfigError

__all__ = ["Kind", "Source", "find_sources", "inside", "parquet_files"]

Kind = Literal["run", "dataset", "evaluation"]
TRAJECTORIES = "trajectories.jsonl"
ARMS = "arms"
DEPTH = 3
"""How many folders below an evaluation the run folders of its arms may lie."""
_SHARD = re.compile(r"^(?P<split>.+)-[0-9a-f]+-\d+$|^(?P<plain>[^-]+)(?:-.*)?$")


@dataclass(frozen=True)
class Source:
    """One thing to look at.

    `slug` stands for it in addresses and stays the same from one start to the next; `name` is what it is called on
    the screen; `parent` is the slug of the evaluation that a run belongs to; `root` is the folder that was given,
    which no file of it may lead out of.
    """

    slug: str
    kind: Kind
    path: Path
    root: Path
    parent: str | None = None
    name: str = ""


def find_sources(paths: Sequence[Path]) -> list[Source]:
    """Every source in the given folders, evaluations in front of their runs.

    A folder that is none itself is looked through, one level deep, so that the folder of a whole demo can be given.
    Raises ConfigError where there is nothing to be seen.
    """
    found: list[Source] = []
    for path in paths:
        if not path.is_dir():
            raise ConfigError(f"there is no folder {path}: give the folder of a run, a dataset or an evaluation")
        root = path.resolve()
        here = list(_sources_in(root, root))
        if not here:
            here = [one for child in _folders(root) for one in _sources_in(child, root)]
        if not here:
            raise ConfigError(
                f"{path} holds no run, dataset or evaluation: make one with gumshoe collect, export or eval"
            )
        found += here
    return _with_slugs(found)


def inside(path: Path, root: Path) -> bool:
    """Whether the file is there and, links followed, below the folder that was given."""
    return path.is_file() and path.resolve().is_relative_to(root)


def parquet_files(source: Source) -> Iterator[tuple[str, str, Path]]:
    """The shards of a dataset as (view, split, file), in a fixed order; a plain folder's view is `default`."""
    for file in sorted(source.path.glob("*.parquet")):
        yield "default", _split_of(file), file
    for file in sorted(source.path.glob("*/*.parquet")):
        yield file.parent.name, _split_of(file), file


def _split_of(file: Path) -> str:
    match = _SHARD.match(file.stem)
    return (match["split"] or match["plain"]) if match else file.stem


def _sources_in(folder: Path, root: Path) -> Iterator[Source]:
    """The source that a folder is, with those below it; nothing where it is none."""
    kind = _kind_of(folder)
    if kind is None:
        return
    yield Source("", kind, folder, root)
    if kind == "evaluation":
        for run in _runs_below(folder, DEPTH):
            yield Source("", "run", run, root, parent=str(folder))


def _kind_of(folder: Path) -> Kind | None:
    if (folder / "summary.json").is_file() or (folder / "results.jsonl").is_file() or (folder / ARMS).is_dir():
        return "evaluation"
    if (folder / TRAJECTORIES).is_file() or (folder / "journal").is_dir():
        return "run"
    if any(folder.glob("*.parquet")) or any(folder.glob("*/*.parquet")):
        return "dataset"
    return None


def _runs_below(folder: Path, depth: int) -> Iterator[Path]:
    for child in _folders(folder):
        if (child / TRAJECTORIES).is_file() or (child / "journal").is_dir():
            yield child
        elif depth > 1:
            yield from _runs_below(child, depth - 1)


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())


def _with_slugs(found: Iterable[Source]) -> list[Source]:
    """Each source once, with a slug and a name of its own."""
    once: dict[Path, Source] = {}
    for source in found:
        once.setdefault(source.path, source)
    called = Counter(source.path.name for source in once.values() if source.parent is None)
    slugs: dict[Path, str] = {}
    named: list[Source] = []
    for source in once.values():
        parent = slugs.get(Path(source.parent)) if source.parent is not None else None
        name = _name(source, alone=called[source.path.name] == 1)
        wanted = _slug((name if parent is None else f"{parent}.{name}").replace("/", "."))
        slug = slugs[source.path] = _free(wanted, slugs.values())
        told_apart = source.parent is not None or slug == wanted
        named.append(replace(source, slug=slug, parent=parent, name=name if told_apart else slug))
    return named


def _free(wanted: str, taken: Collection[str]) -> str:
    """The slug, with a number behind it where another source has it."""
    tried = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    return next(slug for slug in tried if slug not in taken)


def _name(source: Source, *, alone: bool) -> str:
    """What a source is called: by its folder, with the one above where others are called the same."""
    if source.parent is not None:
        return _name_in(source.path, Path(source.parent))
    return source.path.name if alone else f"{source.path.parent.name}/{source.path.name}"


def _name_in(run: Path, evaluation: Path) -> str:
    """An arm by its name alone, what else an evaluation holds by its path: `solver/ARM`."""
    parts = run.relative_to(evaluation).parts
    return "/".join(parts[1:] if parts[0] == ARMS and len(parts) > 1 else parts)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "source"
