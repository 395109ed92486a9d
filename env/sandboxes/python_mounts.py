"""Which parts of this Python a bubblewrap sandbox sees: the interpreter, its standard library and named distributions.

Everything else that is installed stays outside, Gumshoe itself and its casebook above all.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from gumshoe.errors import ConfigError

__all__ = ["distribution_paths", "python_mounts"]

REQUIREMENT = re.compile(r"[\w.-]+")


def python_mounts(system_folders: Iterable[str], packages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(kind, path) in the order of mounting: `bind` a path read-only, or put an empty folder at it (`hide`).

    Args:
        system_folders: folders that are mounted already.
        packages: names of distributions, which bring what they require.

    Raises:
        ConfigError: one of them is not installed here.
    """
    mounted = tuple(f"{folder}/" for folder in system_folders)
    for prefix in _prefixes():
        if f"{prefix}/".startswith(mounted):
            continue
        if prefix == sys.prefix != sys.base_prefix:
            yield from (("bind", path) for path in _environment(prefix))
        else:
            yield "bind", prefix
        mounted = (*mounted, f"{prefix}/")
    for folder in _site_folders():
        if f"{folder}/".startswith(mounted):
            yield "hide", folder
    for folder in _own_folders():
        if f"{folder}/".startswith(mounted) and not f"{folder}/".startswith(tuple(f"{s}/" for s in _site_folders())):
            yield "hide", folder
    for path in distribution_paths(packages):
        yield "bind", path


def _prefixes() -> list[str]:
    """The folders of the interpreter: the one it was installed in first, then the virtual environment."""
    resolved = str(Path(sys.executable).resolve().parent.parent)
    return [folder for folder in dict.fromkeys((sys.base_prefix, resolved, sys.prefix)) if folder != "/"]


def _environment(prefix: str) -> list[str]:
    """What makes a virtual environment one, without what is installed in it."""
    names = ("bin", "pyvenv.cfg")
    return [path for path in (os.path.join(prefix, name) for name in names) if os.path.exists(path)]  # noqa: PTH110, PTH118


def _site_folders() -> list[str]:
    """The folders of this Python, and of the one its environment was made from, that distributions are installed in."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    found = [sysconfig.get_path(kind, vars=values) for kind in ("purelib", "platlib") for values in (None, base)]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found += ["/usr/lib/python3/dist-packages", f"/usr/local/lib/{version}/dist-packages"]
    return [folder for folder in dict.fromkeys(found) if Path(folder).is_dir()]


def _own_folders() -> list[str]:
    """Gumshoe's own code, wherever links lead to it."""
    package = Path(__file__).resolve().parent.parent.parent
    import gumshoe

    roots = [Path(path) for path in gumshoe.__path__]
    linked = [path.resolve() for root in roots for path in root.iterdir() if path.is_dir()]
    return sorted({str(path) for path in (package / "env", *(root.resolve() for root in roots), *linked)})


@functools.cache
def distribution_paths(packages: tuple[str, ...]) -> tuple[str, ...]:
    """The files and folders of distributions and of what they require, where that is installed here.

    Raises ConfigError where one of `packages` itself is not: what others require may be for other machines.
    """
    for package in packages:
        if _installed(package) is None:
            raise ConfigError(
                f"sandbox.packages: {package!r} is not installed in this Python ({sys.prefix}): install it, or remove "
                "it (give only the name of the distribution, without a version)"
            )
    waiting, seen, paths = list(packages), set[str](), set[str]()
    while waiting:
        name = _normalized(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        found = _installed(name)
        if found is None:
            continue
        paths.update(_top_paths(found))
        waiting += [
            match[0] for each in found.requires or () if "extra ==" not in each and (match := REQUIREMENT.match(each))
        ]
    return tuple(sorted(paths))


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> Distribution | None:
    """The distribution of that name. An empty name would be that of all."""
    wanted = _normalized(name)
    return next(iter(distributions(name=wanted, path=_folders_of_distributions())), None) if wanted else None


def _folders_of_distributions() -> list[str]:
    """Where distributions are installed. Other folders on the path hold copies that a library brings, as Ray does."""
    return [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]


def _top_paths(found: Distribution) -> Iterator[str]:
    """What a distribution has put directly into its folder."""
    root = str(found.locate_file(""))
    tops = {
        file.parts[0]
        for file in found.files or ()
        if not file.is_absolute() and file.parts[0] not in ("..", "__pycache__")
    }
    for name in tops:
        path = Path(root, name)
        if path.exists():
            yield str(path)
