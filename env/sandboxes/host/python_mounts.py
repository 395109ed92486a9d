"""Which parts of this Python a bubblewrap sandbox sees: the interpreter, its standard library and named distributions.

Everything else that is installed stays outside, Gumshoe itself and its casebook above all.
"""

from __future__ import annotations

import functools
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path

from gumshoe.errors import ConfigError

REQUIREMENT = re.compile(r"[\w.-]+")
CARRIED = (
    *(f"lib/python3*/{path}" for path in ("ensurepip/_bundled", "site-packages/pip/_vendor")),
    *(f"lib/python3*/test/{path}" for path in ("wheeldata", "*.whl")),
    "share/python-wheels",
)


def python_mounts(
    system_folders: Iterable[str], packages: tuple[str, ...], homes: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """(kind, path) in the order of mounting: `bind` a path read-only, or `hide` it.

    Args:
        system_folders: folders that are mounted already.
        packages: names of distributions, which bring what they require.
        homes: of other Pythons that are needed, each with its standard library only.

    Raises:
        ConfigError: one of the packages is not installed here.
    """
    mounted = tuple(f"{folder}/" for folder in system_folders)
    for prefix in dict.fromkeys((*homes, *_prefixes())):
        if f"{prefix}/".startswith(mounted):
            continue
        if prefix == sys.prefix != sys.base_prefix:
            yield from (("bind", path) for path in _environment(prefix))
        else:
            yield "bind", prefix
        mounted = (*mounted, f"{prefix}/")
    others = (str(path) for home in homes for path in Path(home).glob("lib/python3*/site-packages"))
    hidden = list(dict.fromkeys((*_site_folders(), *others)))
    in_site_folders = tuple(f"{folder}/" for folder in hidden)
    carried = {path for home in ("/usr", "/usr/local", *homes, *_prefixes()) for path in carried_packages(Path(home))}
    hidden += [path for path in (*_own_folders(), *sorted(carried)) if not path.startswith(in_site_folders)]
    for path in hidden:
        if f"{path}/".startswith(mounted):
            yield "hide", path
    for path in distribution_paths(packages):
        yield "bind", path


def carried_packages(home: Path) -> list[str]:
    """The folders and wheels below a Python's home with the sources of packages that it brings along for installing
    others. To a task on one of these packages they are nearly the answer.
    """
    return sorted(str(path) for pattern in CARRIED for path in home.glob(pattern))


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
    env = Path(__file__).resolve().parents[2]
    import gumshoe

    roots = [Path(path) for path in gumshoe.__path__]
    linked = [path.resolve() for root in roots for path in root.iterdir() if path.is_dir()]
    return sorted({str(path) for path in (env, *(root.resolve() for root in roots), *linked)})


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
    """Where this Python looks for distributions by itself, as it does in the sandbox, too. Other folders on the path
    are somebody's own, or hold copies that a library brings, as Ray does.
    """
    return [folder for folder in sys.path if folder in site.getsitepackages()]


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
