"""A copy of everything as files that a web server or a double click can show.

A page opened from a disk may load scripts but no data, so the data comes as scripts, each calling
`gumshoePut(name, data)`.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.eval.view.library import Library, open_library
from gumshoe.eval.view.sources import GoldPatches
from gumshoe.storage import new_folder

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {
    "index.html": "text/html; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "app.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files of the front end. Nothing else in its folder is served."""

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file: data:; "
    "base-uri 'none'; form-action 'none'"
)
MARK = "gumshoe-view.txt"
TEXT_CHUNK = 4_000_000
"""Characters of searchable text that are loaded at a time."""


def write_static(library: Library, out: Path) -> int:
    """Writes the copy; its catalog must be up to date. Returns how many episodes there are.

    An earlier copy in `out` is replaced. Raises ConfigError if it holds something else, or cannot be written.
    """
    if out.exists() and not (out / MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not empty: choose an empty or a new folder")
    try:
        with new_folder(out) as fresh:
            return _write(library, fresh)
    except OSError as error:
        raise ConfigError(f"{out} cannot be written: {error}") from None


def write_beside(evaluation: Path, gold: Mapping[str, str]) -> Path:
    """Writes the viewer of an evaluation into its own folder. Returns the page to open.

    `gold` holds gold patches by task id. Raises ConfigError if the folder cannot be written.
    """
    out = evaluation / "view"
    with open_library([evaluation], GoldPatches(known=gold)) as library:
        library.catalog.refresh()
        write_static(library, out)
    return out / "index.html"


def _write(library: Library, folder: Path) -> int:
    (folder / "data").mkdir()
    (folder / MARK).write_text("Made by gumshoe view --static. Open index.html.\n", encoding="utf-8")
    for name in PAGE_FILES:
        shutil.copy(PAGE / name, folder / name)
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    page = page.replace("<meta charset", f"{policy}\n<meta charset", 1).replace("<html ", '<html data-static="1" ', 1)
    (folder / "index.html").write_text(page, encoding="utf-8")
    overview = library.overview()
    for source in overview["sources"]:
        if source["kind"] == "evaluation":
            _write_evaluation(library, folder, source["slug"])
        source["live"] = False
    found = library.rows("", 0, limit=sys.maxsize)
    rows = [*found["rows"], *found["live"]]
    for number, row in enumerate(rows):
        _put(folder, f"episode-{number}", _or_error(lambda key=row["key"]: library.episode(key)))
        if overview["masks"] and row["kind"] == "dataset":
            _put(folder, f"mask-{number}", _or_error(lambda key=row["key"]: library.mask(key)))
    _put(folder, "overview", {**overview, "texts": _write_texts(library, folder)})
    _put(folder, "rows", rows)
    return len(rows)


def _write_evaluation(library: Library, folder: Path, slug: str) -> None:
    """Writes an evaluation's figures, and each of its tasks in a file of its own."""
    found = _or_error(lambda: library.evaluation(slug))
    _put(folder, f"evaluation-{slug}", found)
    for number, name in enumerate(found.get("tasks", ())):
        _put(folder, f"task-{slug}-{number}", _or_error(lambda name=name: library.task(slug, name)))


def _write_texts(library: Library, folder: Path) -> int:
    """Writes the searchable words, in lower case, to several files. Returns how many files there are."""
    chunk: list[tuple[int, str]] = []
    size = written = 0
    entries = library.catalog.entries()
    for number, entry in enumerate(entries):
        chunk.append((number, library.catalog.words(entry).lower()))
        size += len(chunk[-1][1])
        if size > TEXT_CHUNK or number == len(entries) - 1:
            _put(folder, f"text-{written}", chunk)
            chunk, size, written = [], 0, written + 1
    return written


def _or_error(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except GumshoeError as error:
        return {"error": str(error)}


def _put(folder: Path, name: str, data: Any) -> None:
    """Writes ASCII only, and no `<`: nothing in the data can end the script or begin another one."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    (folder / "data" / f"{name}.js").write_text(f"gumshoePut({json.dumps(name)},{text});\n", encoding="ascii")
