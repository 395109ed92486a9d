"""Environments of packages: what the tests of a package need, built once and shared by all of its tasks.

An environment is a virtual environment that is at `/environment` in every sandbox. It is built by
`gumshoe harvest` from a lock file and named by the hash of what went into it. On this machine it is a folder in the
cache, mounted read-only by bubblewrap and copied into an image layer for docker. A task only names it: no task set can
have another folder of this machine mounted.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gumshoe.errors import TaskError
from gumshoe.storage import cache_folder, read_json

INSIDE = "/environment"
RECORD = "environment.json"
NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Lock:
    """Everything that an environment is made from.

    Attributes:
        python: major.minor of the interpreter.
        machine: system and processor, since extensions differ.
        packages: pinned requirements, sorted.
        files: the package's own metadata and path files, relative to the folder of installed packages.
        variables: environment variables that its tests need.
    """

    python: str
    machine: str
    packages: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict[str, str])
    variables: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def from_json(cls, data: Any) -> Lock:
        """The lock that was written as JSON. Raises ValueError for other data."""
        return TypeAdapter(cls).validate_python(data)

    @classmethod
    def read(cls, path: Path) -> Lock:
        """The lock in a file, which has to be named by its hash. Raises TaskError for another file."""
        try:
            lock = cls.from_json(read_json(path, error=TaskError))
        except ValueError:
            raise TaskError(f"{path} is not an environment lock") from None
        if lock.name != path.stem:
            raise TaskError(f"{path} is damaged: its content hashes to {lock.name}")
        return lock

    @property
    def name(self) -> str:
        """The name of the environment: a hash of all this."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class InstalledEnvironment:
    """An environment on this machine.

    Attributes:
        root: the folder that sandboxes see as `/environment`.
        python: the interpreter that it was made with, outside of the folder.
        version: (major, minor) of that interpreter.
        lock: what it was made from.
    """

    name: str
    root: Path
    python: Path
    version: tuple[int, int]
    lock: Lock

    @property
    def python_home(self) -> Path:
        """The folder of the interpreter and its standard library."""
        return self.python.resolve().parent.parent


def environment_folder(name: str) -> Path:
    """Where the environment of this name belongs. Raises TaskError for an invalid name."""
    if not NAME.fullmatch(name):
        raise TaskError(f"{name!r} is not the name of an environment")
    return cache_folder() / "environments" / name


def is_installed(name: str) -> bool:
    """Whether the environment of this name is on this machine. Raises TaskError for an invalid name."""
    return (environment_folder(name) / RECORD).is_file()


def environment_of(text: str) -> str:
    """The environment that a text names: by its name, or by the folder of a set that has only one. Raises TaskError."""
    if NAME.fullmatch(text):
        return text
    locks = sorted(lock for place in (".", "packages/*") for lock in Path(text).glob(f"{place}/environments/*.json"))
    names = {lock.stem for lock in locks}
    if len(names) > 1:
        raise TaskError(
            f"{text} has {len(names)} environments: give the set of one package in it, or a name, as {locks[0].stem}"
        )
    if not names:
        raise TaskError(f"{text} is neither the name of an environment nor a set with one: gumshoe harvest makes sets")
    return names.pop()


_ENVIRONMENTS = TypeAdapter(InstalledEnvironment)


def find_environment(name: str) -> InstalledEnvironment:
    """The environment of this name. Raises TaskError when it is not on this machine, or its interpreter is gone."""
    found = read_environment(name)
    if not found.python.exists():
        folder = environment_folder(name)
        raise TaskError(f"environment {name} needs {found.python}, which is gone: remove {folder} and rebuild it")
    return found


def read_environment(name: str) -> InstalledEnvironment:
    """The same, whether its interpreter is still there or not."""
    folder = environment_folder(name)
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        return _ENVIRONMENTS.validate_python({"name": name, "root": folder / "root", **record})
    except FileNotFoundError:
        raise TaskError(f"environment {name} is not on this machine: gumshoe harvest --rebuild TASKSET") from None
    except (OSError, ValueError, TypeError) as error:
        raise TaskError(f"environment {name} is damaged ({error}): remove {folder} and rebuild it") from None
