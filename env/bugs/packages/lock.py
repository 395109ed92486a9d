"""What an environment is made from, the Pythons of this machine, and making an environment from its lock."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from pydantic import TypeAdapter
from uv import find_uv_bin

from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.build_sandbox import UV, BuildSandbox
from gumshoe.env.environments import INSIDE, RECORD, environment_folder, is_installed
from gumshoe.errors import TaskError
from gumshoe.storage import cache_folder, read_json, write_atomic

__all__ = [
    "INSTALL",
    "PYTHON",
    "Interpreter",
    "Lock",
    "build_folder",
    "choose_python",
    "compile_environment",
    "install_lock",
    "interpreters",
    "keep_environment",
    "make_venv",
    "site_packages",
    "this_machine",
]

PYTHON = f"{INSIDE}/bin/python"
INSTALL = (UV, "pip", "install", "--quiet", "--python", PYTHON)
# Sandboxes mount the environment read-only, so Python could not keep any byte code in it: each run of the tests would
# compile pytest and every dependency anew. Hashes instead of times, which an image layer may change.
COMPILE = (PYTHON, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", f"{INSIDE}/lib")
# pytest rewrites the assertions of its plugins, including all of hypothesis, and keeps byte code of its own for that.
# A session without tests loads them.
REWRITE = (PYTHON, "-m", "pytest", "--collect-only", "-c", os.devnull, "-p", "no:cacheprovider")
OLDEST = (3, 6)
# The days of the first releases of these versions (https://devguide.python.org/versions).
RELEASED = {
    (3, 6): "2016-12-23",
    (3, 7): "2018-06-27",
    (3, 8): "2019-10-14",
    (3, 9): "2020-10-05",
    (3, 10): "2021-10-04",
    (3, 11): "2022-10-24",
    (3, 12): "2023-10-02",
    (3, 13): "2024-10-07",
    (3, 14): "2025-10-07",
}
LISTING_S = 120


@dataclass(frozen=True)
class Interpreter:
    """One Python outside of any virtual environment."""

    path: Path
    version: tuple[int, int, int]

    @property
    def text(self) -> str:
        """The version as `3.11.7`."""
        return ".".join(map(str, self.version))


@functools.cache
def interpreters() -> tuple[Interpreter, ...]:
    """The interpreters that uv finds, one of each minor version, this process's own first, then the newest."""
    own_path = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    own = Interpreter(own_path, (sys.version_info.major, sys.version_info.minor, sys.version_info.micro))
    found = {own.version[:2]: own}
    roots = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions", Path("/opt/python")]
    folders = [str(path) for root in roots for path in sorted(root.glob("3*/bin"))]
    argv = [find_uv_bin(), "python", "list", "--no-config", "--only-installed", "--output-format", "json"]
    environment = {**os.environ, "PATH": ":".join([*folders, "/usr/local/bin", "/usr/bin"])}
    listed = subprocess.run(argv, capture_output=True, env=environment, timeout=LISTING_S, check=False)
    for row in json.loads(listed.stdout or "[]"):
        version = tuple(row["version_parts"][part] for part in ("major", "minor", "patch"))
        if row["implementation"] == "cpython" and row["variant"] == "default" and version >= OLDEST:
            found.setdefault(version[:2], Interpreter(Path(row["path"]), version))
    return tuple(sorted(found.values(), key=lambda item: (item != own, [-part for part in item.version])))


def choose_python(requires: str, wanted: str = "", as_of: str = "") -> Interpreter:
    """The first of `interpreters` that `requires` (a specifier) and `wanted` (a version) allow, of those that were out
    on the day `as_of` (YYYY-MM-DD), if it is given and any of them was. Raises TaskError.
    """
    try:
        allowed = SpecifierSet(requires)
    except InvalidSpecifier:
        allowed = SpecifierSet()
    out = [one for one in interpreters() if not as_of or RELEASED.get(one.version[:2], as_of + "~") <= as_of]
    for interpreter in [*out, *interpreters()]:
        chosen = not wanted or interpreter.text == wanted or interpreter.text.startswith(f"{wanted}.")
        if chosen and interpreter.text in allowed:
            return interpreter
    there = ", ".join(interpreter.text for interpreter in interpreters())
    asked = " and ".join(
        filter(None, (requires and f"requires-python {requires}", wanted and f"build.python={wanted}"))
    )
    raise TaskError(f"no Python for {asked}: there are {there}")


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


def this_machine() -> str:
    """System and processor, as a lock names them."""
    return f"{platform.system()}-{platform.machine()}".lower()


def install_lock(lock: Lock, config: BuildConfig) -> Path:
    """Builds the environment of a lock, if it is not on this machine. Raises TaskError."""
    folder = environment_folder(lock.name)
    if is_installed(lock.name):
        return folder
    python = choose_python(f"=={lock.python}.*")
    if this_machine() != lock.machine:
        raise TaskError(f"environment {lock.name} is for {lock.machine}, this machine is {this_machine()}")
    with build_folder() as root:
        sandbox = BuildSandbox({INSIDE: root}, python.path, config)
        for argv in (make_venv(python), (*INSTALL, "--no-deps", *lock.packages)):
            result = sandbox.run(argv, timeout=config.install_timeout_s, limit="build.install_timeout_s")
            if not result.ok:
                raise TaskError(f"environment {lock.name} cannot be rebuilt: {result.why}")
        for name, text in lock.files.items():
            target = site_packages(root, python) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        compile_environment(sandbox, config)
        keep_environment(root, lock, python)
    return folder


@contextmanager
def build_folder() -> Generator[Path]:
    """An empty folder for a new environment, on the file system where environments are kept.

    It is removed at the end, with its parent, which may take in other files of the build.
    """
    environments = cache_folder() / "environments"
    environments.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=environments, ignore_cleanup_errors=True) as parent:
        root = Path(parent, "root")
        root.mkdir()
        yield root


def make_venv(python: Interpreter) -> tuple[str, ...]:
    """The command that makes the virtual environment in a build sandbox, whose folder is there and empty."""
    return (UV, "venv", "--quiet", "--allow-existing", "--python", str(python.path), INSIDE)


def compile_environment(sandbox: BuildSandbox, config: BuildConfig) -> None:
    """Keeps the byte code of all installed Python files."""
    # Neither exit code says anything: some templates are not valid Python, and there are no tests.
    sandbox.run(COMPILE, timeout=config.install_timeout_s, limit="build.install_timeout_s")
    kept = {"PYTHONDONTWRITEBYTECODE": ""}
    sandbox.run(REWRITE, cwd="/tmp", env=kept, timeout=config.collect_timeout_s, limit="build.collect_timeout_s")  # noqa: S108


def keep_environment(root: Path, lock: Lock, python: Interpreter) -> None:
    """Moves a finished environment to where sandboxes find it, next to a record that no package can write."""
    folder = environment_folder(lock.name)
    if is_installed(lock.name):
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    root.replace(folder / "root")
    (folder / "root").chmod(0o755)
    record = {"python": str(python.path), "version": list(python.version[:2]), "lock": asdict(lock)}
    write_atomic(folder / RECORD, json.dumps(record, indent=1))


def site_packages(root: Path, python: Interpreter) -> Path:
    """Where the environment at `root` keeps its packages."""
    return root / "lib" / f"python3.{python.version[1]}" / "site-packages"
