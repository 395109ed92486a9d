"""What an environment is made from, and making it again from that."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gumshoe.env.environments import INSIDE, RECORD, environment_folder
from gumshoe.env.harvest.build_sandbox import BuildSandbox
from gumshoe.env.harvest.config import BuildConfig
from gumshoe.env.harvest.pythons import Interpreter, choose_python
from gumshoe.errors import TaskError
from gumshoe.storage import write_atomic

__all__ = ["PIP", "PYTHON", "Lock", "compile_environment", "install_lock", "keep_environment", "site_packages"]

PYTHON = f"{INSIDE}/bin/python"
PIP = (PYTHON, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--no-compile", "--prefer-binary")
# Sandboxes mount the environment read-only, so Python could not keep any byte code in it: each run of the tests would
# compile pytest and every dependency anew. Hashes instead of times, which an image layer may change.
COMPILE = (PYTHON, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", f"{INSIDE}/lib")
# pytest rewrites the assertions of its plugins, including all of hypothesis, and keeps byte code of its own for that.
# A session without tests loads them.
REWRITE = (PYTHON, "-m", "pytest", "--collect-only", "-c", os.devnull, "-p", "no:cacheprovider")


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
        """The lock that was written as JSON. Raises TypeError, KeyError or AttributeError for other data."""
        return cls(
            python=str(data["python"]),
            machine=str(data["machine"]),
            packages=tuple(str(item) for item in data["packages"]),
            files={str(key): str(value) for key, value in data["files"].items()},
            variables={str(key): str(value) for key, value in data["variables"].items()},
        )

    @property
    def name(self) -> str:
        """The name of the environment: a hash of all this."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]


def install_lock(lock: Lock, config: BuildConfig) -> Path:
    """Builds the environment of a lock, if it is not on this machine. Raises TaskError."""
    folder = environment_folder(lock.name)
    if (folder / RECORD).is_file():
        return folder
    python = choose_python(f"=={lock.python}.*")
    here = f"{platform.system()}-{platform.machine()}".lower()
    if here != lock.machine:
        raise TaskError(f"environment {lock.name} is for {lock.machine}, this machine is {here}")
    beside = folder.parent / f".build-{os.getpid()}-{lock.name}"
    shutil.rmtree(beside, ignore_errors=True)
    root = beside / "root"
    root.mkdir(parents=True)
    try:
        sandbox = BuildSandbox({INSIDE: root}, python.path, config)
        for argv in ([str(python.path), "-m", "venv", INSIDE], [*PIP, "--no-deps", *lock.packages]):
            result = sandbox.run(argv, timeout=config.install_timeout_s, limit="build.install_timeout_s")
            if not result.ok:
                raise TaskError(f"environment {lock.name} cannot be rebuilt: {result.why}")
        for name, text in lock.files.items():
            target = site_packages(root, python) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        compile_environment(sandbox, config)
        keep_environment(root, lock, python)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def compile_environment(sandbox: BuildSandbox, config: BuildConfig) -> None:
    """Keeps the byte code of all installed Python files."""
    # Neither exit code says anything: some templates are not valid Python, and there are no tests.
    sandbox.run(COMPILE, timeout=config.install_timeout_s, limit="build.install_timeout_s")
    kept = {"PYTHONDONTWRITEBYTECODE": ""}
    sandbox.run(REWRITE, cwd="/tmp", env=kept, timeout=config.collect_timeout_s, limit="build.collect_timeout_s")  # noqa: S108


def keep_environment(root: Path, lock: Lock, python: Interpreter) -> None:
    """Moves a finished environment to where sandboxes find it, next to a record that no package can write."""
    folder = environment_folder(lock.name)
    if (folder / RECORD).is_file():
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
