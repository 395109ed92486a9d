"""The environment stage: installs a package and what its tests need, until its tests can be collected.

The package is installed in place: what is edited in the workspace counts, and C extensions are built beside the
sources. What the build leaves in the package's folder (extensions, metadata, generated modules) becomes part of the
project that tasks ship; a file that was there before is never changed by it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.cache import FolderCache
from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages import stage_folder
from gumshoe.env.bugs.packages.build_sandbox import PYTHON, WORKSPACE, NewEnvironment, new_environment
from gumshoe.env.bugs.packages.machine import choose_python, this_machine
from gumshoe.env.bugs.packages.requirements import (
    TEST_NAMES,
    PackageFiles,
    missing_packages,
    plugins_used,
)
from gumshoe.env.bugs.packages.sources import entries, read_text
from gumshoe.env.bugs.projects import copy_tree, reason_of
from gumshoe.env.virtualenvs import INSIDE, Lock, is_installed
from gumshoe.errors import TaskError

# For repositories whose version comes from tags that are not there.
UNVERSIONED = {"SETUPTOOLS_SCM_PRETEND_VERSION": "0.0.1", "PBR_VERSION": "0.0.1", "PDM_BUILD_SCM_VERSION": "0.0.1"}
NOT_SHIPPED = frozenset({"build", "dist", "__pycache__", ".git", ".pytest_cache", ".hypothesis", ".eggs"})
# uv notes here when the sources were last changed: an environment should not be named by that.
TIMES = "uv_cache.json"
DEVELOP = (PYTHON, "setup.py", "--quiet", "develop", "--no-deps")
COLLECT = (PYTHON, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")
ALL_COLLECTED = 0
COLLECTED = re.compile(r"^\S+\.(?:py|txt|rst|md)::", re.MULTILINE)
FILES_OF_TESTS = "python_files=test*.py *_test.py *_tests.py tests.py"
Ways = tuple[tuple[str, ...], ...]
"""Arguments of pytest with which to collect the tests; the first that work are used. Those of pytest: the project's own
options, other names of files, without its options, and only doctests.
"""
PYTEST_WAYS: Ways = (
    (),
    ("-o", FILES_OF_TESTS),
    ("-o", "addopts=", "-o", FILES_OF_TESTS, "-W", "default"),
    ("--doctest-modules",),
)
DOCTEST_FILES = tuple(f"--doctest-glob=*.{ending}" for ending in ("rst", "md", "txt"))
ONLY_DOCTESTS = ("-o", "addopts=", "-o", "python_files=", "-W", "default", "--doctest-modules")
DOCTEST_WAYS: Ways = ((*ONLY_DOCTESTS, *DOCTEST_FILES), ONLY_DOCTESTS)
# Plugins that get in the way of single, repeatable runs, and what turns them off.
TURNED_OFF = {
    "pytest-benchmark": ("--benchmark-disable",),
    "pytest-cov": ("--no-cov",),
    "pytest-randomly": ("-p", "no:randomly"),
    "pytest-xdist": ("-n0",),
}


@dataclass(frozen=True)
class Built:
    """What the stage gives.

    Attributes:
        project: the folder of the project that tasks ship.
        added: the files that building has added to it.
        skipped: requirements that could not be installed.
        arguments: what pytest needs.
    """

    lock: Lock
    project: Path
    added: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def get_environment(
    key: str, source: Path, config: BuildConfig, say: Callable[[str], None], ways: Ways = PYTEST_WAYS
) -> Built:
    """What is kept under a key of the stage, built where there is none, or no such environment on this machine.

    Takes the other arguments of `build_environment`, and raises what it does.
    """
    return FolderCache(stage_folder("environment"), Built).find(
        key,
        lambda folder: build_environment(source, folder / "project", config, say, ways),
        lambda built: is_installed(built.lock.name),
    )


def build_environment(
    source: Path, project: Path, config: BuildConfig, say: Callable[[str], None], ways: Ways = PYTEST_WAYS
) -> Built:
    """Builds the environment of the package in `source` and writes the project that tasks ship to `project`.

    `say` receives progress messages. Raises TaskError with the reason when its tests cannot be collected.
    """
    package = PackageFiles(source)
    python = choose_python(package.requires_python, config.python, config.as_of)
    day = f" as of {config.as_of}" if config.as_of else ""
    say(f"installing with Python {python.text}{day}")
    with new_environment(python, config) as environment:
        copy_tree(source, environment.workspace)
        builder = Builder(environment, package, config, say)
        builder.install()
        builder.collect(ways)
        lock = Lock(
            python=".".join(map(str, python.version[:2])),
            machine=this_machine(),
            packages=environment.freeze(),
            files=dict(_package_files(environment.site)),
            variables=environment.variables,
        )
        added = tuple(_ship_project(source, environment.workspace, project))
        environment.keep(lock)
    arguments = (*quiet_arguments(lock.packages), *builder.arguments)
    return Built(lock, project, added, tuple(builder.skipped), arguments)


def install_lock(lock: Lock, config: BuildConfig) -> None:
    """Builds the environment of a lock. Raises TaskError."""
    python = choose_python(f"=={lock.python}.*")
    if this_machine() != lock.machine:
        raise TaskError(f"environment {lock.name} is for {lock.machine}, this machine is {this_machine()}")
    with new_environment(python, config) as environment:
        result = environment.create()
        if result.ok:
            result = environment.install(("--no-deps", *lock.packages))
        if not result.ok:
            raise TaskError(f"environment {lock.name} cannot be rebuilt: {result.why}")
        for name, text in lock.files.items():
            target = environment.site / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        environment.keep(lock)


class Builder:
    """Installs a package with what its tests need.

    Attributes:
        skipped: requirements that could not be installed.
        arguments: what pytest needs to collect the tests.
    """

    def __init__(
        self, environment: NewEnvironment, package: PackageFiles, config: BuildConfig, say: Callable[[str], None]
    ) -> None:
        self._environment = environment
        self._package = package
        self._source = package.folder
        self._config = config
        self._say = say
        self.skipped: list[str] = []
        self.arguments: tuple[str, ...] = ()

    def install(self) -> None:
        """Makes the environment, installs the package and the requirements of its tests. Raises TaskError."""
        made = self._environment.create()
        if not made.ok:
            raise TaskError(f"no virtual environment: {made.why}")
        wanted = self._package.test_requirements()
        needed = ["pytest", *wanted.packages, *plugins_used(self._source)]
        files = [word for name in wanted.files for word in ("-r", f"{WORKSPACE}/{name}")]
        # uv passes over extras that the package does not have.
        in_place = ("-e", f"{WORKSPACE}[{','.join(TEST_NAMES)}]")
        if not self._environment.install([*in_place, *files, *needed]).ok:
            self._install_package(in_place)
            self._install(needed)
            for name in wanted.files:
                if not self._environment.install(["-r", f"{WORKSPACE}/{name}"]).ok:
                    self._install(_lines(self._source / name))

    def collect(self, ways: Ways) -> None:
        """Finds how the tests can be collected: in the first of the `ways` that works, else in one of them with the
        newest pytest. Raises TaskError with the first way's complaint.
        """
        complaint = self._first_complaint(ways)
        if complaint is not None and self._install_newer_pytest():
            complaint = self._first_complaint(ways)
        if complaint is not None:
            raise TaskError(f"its tests cannot be collected: {complaint}")

    def _first_complaint(self, ways: Ways) -> str | None:
        """What is wrong with the first way; None where one works, which is taken."""
        complaints: list[str] = []
        for arguments in ways:
            complaint = self._collect(arguments)
            if complaint is None:
                self.arguments = arguments
                return None
            complaints.append(complaint)
        return complaints[0]

    def _install_newer_pytest(self) -> bool:
        """Whether there was one. Some projects pin one that is too old for the Python that they allow."""
        before = self._environment.freeze()
        self._say("installing the newest pytest")
        return self._environment.install(["--upgrade", "pytest"]).ok and self._environment.freeze() != before

    def _collect(self, arguments: tuple[str, ...]) -> str | None:
        """Installs what is missing until all tests can be collected, or nothing more is found. None if some can be."""
        tried: set[str] = set()
        bases = (self._source, self._source / "src")
        own = {path.name.removesuffix(".py") for base in bases for path in entries(base)}
        complaint = output = ""
        for round_ in range(self._config.install_rounds + 1):
            self._say("collecting tests" if not round_ else f"collecting tests again ({round_})")
            # A conftest runs now: it must not change what all tasks of the package will share.
            result = self._environment.run((*COLLECT, *arguments), limit="collect_timeout_s", sealed=(INSIDE,))
            if result.problem is not None:
                return result.problem
            if result.exit_code == ALL_COLLECTED:
                return None
            output = result.output
            complaint = reason_of(output)
            missing = [name for name in missing_packages(output, own) if name not in tried]
            if not missing:
                break
            tried.update(missing)
            self._say(f"installing {', '.join(missing)}")
            self._install(missing)
        return None if COLLECTED.search(output) else complaint

    def _install_package(self, in_place: Sequence[str]) -> None:
        """Installs the package in place; if its build does not work that way, its requirements and its path."""
        install = self._environment.install
        bare = ("-e", WORKSPACE)
        first = install(in_place)
        if first.ok or install(bare).ok or install(bare, UNVERSIONED).ok:
            return
        declaring = [name for name in ("pyproject.toml", "setup.py") if (self._source / name).is_file()]
        for name in declaring:
            install(["-r", f"{WORKSPACE}/{name}"])
        # The way of setuptools before version 64, which are the ones for Python 3.6.
        if "setup.py" in declaring and install(["setuptools"]).ok and self._environment.run(DEVELOP).ok:
            return
        self.skipped.append(f"the package itself ({first.why})")
        path = f"{WORKSPACE}/src" if (self._source / "src").is_dir() else WORKSPACE
        self._environment.variables["PYTHONPATH"] = path

    def _install(self, requirements: Sequence[str]) -> None:
        """Installs requirements together; if that fails, one by one, and notes those that cannot be installed."""
        if not requirements or self._environment.install(requirements).ok:
            return
        for requirement in requirements:
            result = self._environment.install([requirement])
            if not result.ok:
                self.skipped.append(f"{requirement} ({result.why})")


def quiet_arguments(packages: Sequence[str]) -> tuple[str, ...]:
    """The pytest arguments that turn off those plugins among these pinned requirements that disturb single runs."""
    names = {package.partition("==")[0] for package in packages}
    return tuple(word for name, words in TURNED_OFF.items() if name in names for word in words)


def _lines(path: Path) -> list[str]:
    lines = [line.partition("#")[0].strip() for line in read_text(path).splitlines()]
    return [line for line in lines if line and not line.startswith("-")]


def _package_files(site: Path) -> Iterator[tuple[str, str]]:
    """What an in-place install has put beside the installed packages, by path: metadata and path files."""
    for path in entries(site):
        if path.suffix == ".dist-info" and "file://" + WORKSPACE in read_text(path / "direct_url.json"):
            record = [line for line in read_text(path / "RECORD").splitlines() if TIMES not in line]
            recorded = [line.split(",")[0] for line in record]
            files = [f"{path.name}/{child.name}" for child in entries(path) if child.name not in (TIMES, "RECORD")]
            files += [name for name in recorded if name.endswith((".pth", ".py")) and ".." not in name]
            yield f"{path.name}/RECORD", "".join(f"{line}\n" for line in record)
        else:
            files = [path.name] if path.suffix in (".egg-link", ".pth") and WORKSPACE in read_text(path) else []
        yield from ((name, text) for name in files if (text := read_text(site / name)))


def _ship_project(source: Path, built: Path, project: Path) -> Iterator[str]:
    """Writes the original sources, with the regular files that building has added, whose paths are yielded."""
    shutil.rmtree(project, ignore_errors=True)
    project.parent.mkdir(parents=True, exist_ok=True)
    copy_tree(source, project)
    for parent, names, files in os.walk(built):
        relative = Path(parent).relative_to(built)
        names[:] = [name for name in names if name not in NOT_SHIPPED and not Path(parent, name).is_symlink()]
        for name in files:
            made, target = Path(parent, name), project / relative / name
            inside = target.parent.resolve().is_relative_to(project.resolve())
            if made.is_symlink() or not made.is_file() or os.path.lexists(target) or not inside or made.suffix == ".o":
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(made, target, follow_symlinks=False)
            target.chmod(0o755 if made.suffix == ".so" else 0o644)
            yield (relative / name).as_posix()


def add_built_files(built: Built, tree: Path) -> None:
    """Copies what building has added to a project into another tree of it, unless the tree has a file of that name."""
    for name in built.added:
        target = tree / name
        if not os.path.lexists(target) and target.parent.resolve().is_relative_to(tree.resolve()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(built.project / name, target)
