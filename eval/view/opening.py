"""Opens a library over folders, and writes the static copy next to an evaluation."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gumshoe.errors import ConfigError
from gumshoe.eval.view.gold_patches import GoldPatches
from gumshoe.eval.view.index import Index
from gumshoe.eval.view.library import Library
from gumshoe.eval.view.masks import Masks
from gumshoe.eval.view.sources import find_sources
from gumshoe.eval.view.static import write_static
from gumshoe.eval.view.watch import Watcher

__all__ = ["open_library", "write_beside"]


@contextmanager
def open_library(
    paths: Sequence[Path], cache: Path, gold: GoldPatches, model: Path | None = None
) -> Generator[Library]:
    """What there is to see in some folders; the watcher is not started.

    Args:
        paths: folders of runs, datasets and evaluations.
        cache: where the index is kept.
        gold: knows the gold patches.
        model: folder of the model whose tokenizer is used for the mask.

    Raises:
        ConfigError: there is nothing to be seen in the folders, or no such model folder.
        TaskError: a task source that was named cannot be read.
    """
    find_sources(paths)
    gold.check()
    if model is not None and not model.is_dir():
        raise ConfigError(f"there is no model folder {model}: gumshoe train makes one")
    masks = Masks(model) if model is not None else None
    with Index(paths, cache) as index:
        watcher = Watcher(paths, index)
        try:
            yield Library(watcher, index, gold, masks)
        finally:
            watcher.close()
            if masks is not None:
                masks.close()


def write_beside(evaluation: Path, gold: Mapping[str, str]) -> Path:
    """Writes the viewer of an evaluation into its own folder. Returns the page to open.

    Args:
        evaluation: the evaluation's folder.
        gold: gold patches by task id.

    Raises:
        ConfigError: the folder cannot be written.
    """
    out = evaluation / "view"
    with (
        tempfile.TemporaryDirectory(dir=evaluation, prefix=".index-") as cache,
        open_library([evaluation], Path(cache), GoldPatches(known=gold)) as library,
    ):
        library.watcher.look()
        write_static(library, out)
    return out / "index.html"
