"""The environment of a renamed project: the one of the original, with the project's own files in it renamed as well."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from gumshoe.env.environments import RECORD, environment_folder, find_environment
from gumshoe.env.harvest.lock import Lock, keep_environment
from gumshoe.env.harvest.pythons import Interpreter
from gumshoe.env.harvest.rename.names import Names
from gumshoe.env.harvest.rename.prose import in_code

__all__ = ["installed_names", "keep_renamed_environment", "renamed_lock", "site_of"]

# What programs ask an installed package for. The rest describes it.
HEADERS = ("metadata-version", "name", "version", "requires-python", "requires-dist", "provides-extra")
MAPPED = re.compile(r"""["']([A-Za-z_]\w*)["']\s*:\s*["']/workspace""")


def site_of(environment: str) -> Path:
    """The folder of an environment's installed packages."""
    found = find_environment(environment)
    return found.root / "lib" / f"python{found.version[0]}.{found.version[1]}" / "site-packages"


def installed_names(lock: Lock) -> tuple[str, frozenset[str]]:
    """The name of a project's distribution as part of a path, and the names that its metadata says it installs."""
    distribution, tops = "", set[str]()
    for path, text in lock.files.items():
        if path.endswith(".dist-info/METADATA"):
            distribution = path.split("-")[0]
        if path.endswith("/top_level.txt"):
            tops.update(text.split())
        if path.endswith(("_finder.py", ".pth")):
            tops.update(MAPPED.findall(text))
    return distribution, frozenset(tops)


def renamed_lock(lock: Lock, names: Names, distribution: str) -> Lock:
    """The lock with the package's own files renamed and freed of its description."""
    files: dict[str, str] = {}
    words = sorted({*names.tops, distribution} - {""}, key=len, reverse=True)
    for path, text in lock.files.items():
        if path.endswith("/METADATA"):
            text = _headers(text)
        if path.endswith("/entry_points.txt"):
            text = "".join(_entry(line, names) for line in text.splitlines(keepends=True))
        if path.endswith("/RECORD"):
            continue
        files[_exchanged(path, words, names)] = _exchanged(text, words, names)
    return replace(lock, files=files)


def _exchanged(text: str, words: Iterable[str], names: Names) -> str:
    """Replaces names that may be parts of longer ones, as in `__editable___NAME_1_0_finder`."""
    for word in words:
        new = names.anything(word)
        for old, made in {(word, new), (word.replace("_", "-"), new.replace("_", "-"))}:
            text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(old)}(?![A-Za-z0-9])", made, text, flags=re.IGNORECASE)
    return text


def _entry(line: str, names: Names) -> str:
    name, equals, target = line.partition("=")
    return name + equals + in_code(target, names.part) if equals else line


def _headers(text: str) -> str:
    """The metadata without links, authors and the description."""
    head = text.partition("\n\n")[0].splitlines()
    kept = [line for line in head if line.partition(":")[0].lower() in HEADERS]
    return "\n".join([*kept, ""])


def keep_renamed_environment(old: Lock, new: Lock) -> None:
    """Makes the environment of a lock that differs from an installed one in the package's own files only."""
    folder = environment_folder(new.name)
    if (folder / RECORD).is_file():
        return
    known = find_environment(old.name)
    beside = folder.parent / f".renamed-{new.name}"
    shutil.rmtree(beside, ignore_errors=True)
    root = beside / "root"
    try:
        shutil.copytree(known.root, root, symlinks=True)
        site = root / site_of(old.name).relative_to(known.root)
        for path in old.files:
            (site / path).unlink(missing_ok=True)
            for compiled in (site / path).parent.glob(f"__pycache__/{Path(path).stem}.*.pyc"):
                compiled.unlink()
        for folder_of_metadata in {site / path.partition("/")[0] for path in old.files if "/" in path}:
            shutil.rmtree(folder_of_metadata, ignore_errors=True)
        for path, text in new.files.items():
            target = site / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        keep_environment(root, new, Interpreter(known.python, (*known.version, 0)))
    finally:
        shutil.rmtree(beside, ignore_errors=True)
