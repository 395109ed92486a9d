"""The modules that a test server has loaded from outside the workspace. Standard library only, Python 3.6 to 3.14.

A module is loaded ahead only if importing it has no side effects: one that warns, starts threads, changes the
environment or the import path, belongs to a pytest plugin, or loads something from the workspace is left out.
"""

import builtins
import contextlib
import gc
import glob
import importlib
import linecache
import os
import re
import signal
import site
import sys
import threading
import warnings

import gumshoe_ahead
from gumshoe_project import real_paths

EXECUTED = ("import ", "import\t")
"""How the lines of `.pth` files begin that are executed; each other line names a folder."""
PLUGINS = ("gumshoe_outcomes", "gumshoe_suspects", "gumshoe_trace")
"""Our own plugins that pytest is told to load."""


class Imports:
    """What is loaded, and what must not be.

    Attributes:
        excluded: names of packages that are not loaded ahead.
        problem: why forks of this process would differ from a fresh interpreter, or None.
        runner: the name of the loaded test runner, empty for none; None before `load_runner`.
        is_beyond_runner: whether more is loaded than the test runner.
    """

    def __init__(self, root, own, excluded):
        self.root = os.path.realpath(root) + os.sep
        self.own = own + os.sep
        self.excluded = excluded
        self.problem = None
        self.runner = None
        self.is_beyond_runner = False
        self.top_level = set()
        self._stamps = {}
        self._before = frozenset()
        self._added = []
        self._library = os.path.dirname(os.path.realpath(os.__file__)) + os.sep

    def load_runner(self, name, program=()):
        """Loads pytest, unittest or, for an empty name, nothing. `program` is the first one to be run with it."""
        self.runner = name
        try:
            for each in [name] if name else []:
                importlib.import_module(each)
        except ImportError as error:
            self.problem = "the test runner cannot be imported: {}".format(error)
            return
        if name == "pytest":
            for each in getattr(sys.modules.get("_pytest.config"), "default_plugins", ()):
                with contextlib.suppress(ImportError):  # Pytest reports this itself if it needs the module.
                    importlib.import_module("_pytest.{}".format(each))
            for each in PLUGINS:
                if os.path.exists(os.path.join(self.own, each + ".py")):
                    importlib.import_module(each)
            module = list(program[:1]) == ["-m"]
            gumshoe_ahead.prepare(program[1 + module :], "python -m pytest" if module else name)
            gumshoe_ahead.pass_over_ours()
        if any(map(self._insider(), _files().values())):
            self.problem = "the test runner comes from the workspace"
        self._note()

    def add(self, names):
        """Loads modules in this order. Returns the package whose import had effects, or None."""
        plugins = None
        for name in names:
            top = name.partition(".")[0]
            if name in sys.modules or top in self.excluded:
                continue
            plugins = _plugins() if plugins is None else plugins
            if top in plugins:
                continue
            self.is_beyond_runner = True
            if not self._import(name, plugins):
                return top
            self._added.append(name)
        self._note()
        return None

    def _import(self, name, plugins):
        """Whether a module was imported without effects."""
        before, modules = _state(), set(sys.modules)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            filters = list(warnings.filters)
            try:
                importlib.import_module(name)
            except BaseException:  # a library may raise anything
                return False
            quiet = not caught and warnings.filters == filters
        fresh = {each: path for each, path in _files().items() if each not in modules}
        is_inside = self._insider()
        foreign = any(is_inside(path) or each.partition(".")[0] in plugins for each, path in fresh.items())
        return quiet and not foreign and _state() == before

    def seen(self):
        """The modules from outside the workspace that this fork has loaded, in load order."""
        is_inside = self._insider()
        fresh = _files(set(sys.modules) - self._before).items()
        return [name for name, path in fresh if not is_inside(path) and not path.startswith(self.own)]

    def fresh(self):
        """The attributes of each module that this fork has loaded."""
        names = set(sys.modules) - self._before
        return [getattr(module, "__dict__", {}) for name, module in sys.modules.copy().items() if name in names]

    def loaded(self):
        """The modules that were loaded ahead in addition to the test runner, in load order."""
        return list(self._added)

    def are_stale(self):
        """Whether a file of a loaded library was changed."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())

    def become(self):
        """Makes a fork forget what may have changed since this process started."""
        self._before = frozenset(sys.modules)
        importlib.invalidate_caches()
        linecache.clearcache()
        if sys.version_info < (3, 7) and "random" in sys.modules:
            sys.modules["random"].seed()

    def _insider(self):
        """A function that says whether a path leads into the workspace, for use at once."""
        real_path = real_paths()
        return lambda path: real_path(path).startswith(self.root) and not path.startswith(self.own)

    def _note(self):
        files = {name: path for name, path in _files().items() if not path.startswith(self.own)}
        self.top_level = {name for name in files if "." not in name}
        libraries = [path for path in files.values() if not path.startswith(self._library) or "-packages" in path]
        self._stamps = {path: _stamp(path) for path in libraries if os.access(path, os.W_OK)}


def _files(among=None):
    """Maps the loaded modules that have a file to that file; `among` holds the names to look at, None for all."""
    found = {}
    for name, module in sys.modules.copy().items():
        if among is None or name in among:
            path = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(path, str) and name != "__main__":
                found[name] = path
    return found


def _state():
    """What an import can change in the process besides the modules."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    hooks = [sys.excepthook, sys.displayhook, sys.gettrace(), sys.getprofile(), builtins.__import__, os.fork, open]
    mask = os.umask(0)
    os.umask(mask)
    numbers = [threading.active_count(), sys.getrecursionlimit(), os.getcwd(), mask]
    return handlers, hooks, numbers, dict(os.environ), list(sys.path), set(vars(builtins))


def _plugins():
    """The top-level names of all distributions with a pytest plugin: pytest wants to import these itself."""
    found = set()
    with contextlib.suppress(Exception):  # metadata may be damaged in any way
        from importlib import metadata

        for each in metadata.distributions():
            if any(point.group == "pytest11" for point in each.entry_points):
                found.update(path.parts[0].partition(".")[0] for path in each.files or ())
        return found - {"", "__pycache__", "pytest", "_pytest"}
    return _Everything()


class _Everything:
    """Contains whatever is looked for: where nothing is known about plugins, no library is loaded ahead."""

    def __contains__(self, name):
        return name not in sys.builtin_module_names


def _stamp(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def freeze():
    """Keeps the garbage collector from writing to, and so copying, memory that forks share."""
    if hasattr(gc, "freeze"):
        gc.collect()
        gc.freeze()


def names_at_start():
    """Names of modules that an interpreter imports at startup if it finds any: `sitecustomize`, `usercustomize`, and
    every word in the lines of `.pth` files that are executed.
    """
    names = {"sitecustomize", "usercustomize"}
    for folder in sys.path:
        for line in _lines_below(folder):
            if line.startswith(EXECUTED):
                names.update(re.findall(r"\w+", line))
    return names


def with_added(path):
    """An import path with all folders that `.pth` files add to it now: some may not have existed at startup."""
    found, site_folders = [], _site_folders()
    for folder in path:
        lines = _lines_below(folder) if folder in site_folders else []
        named = [os.path.abspath(os.path.join(folder, line)) for line in lines if not line.startswith(EXECUTED)]
        found += [each for each in [folder, *filter(os.path.exists, named)] if each not in found]
    return found


def _site_folders():
    """The folders whose `.pth` files count."""
    if sys.flags.no_site:
        return []
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return [*getattr(site, "getsitepackages", list)(), *user]


def _lines_below(folder):
    """The lines of a folder's `.pth` files, in the order in which they count."""
    lines = []
    for name in sorted(filter(os.path.isfile, glob.glob(os.path.join(glob.escape(folder), "*.pth")))):
        with contextlib.suppress(OSError), open(name, encoding="utf-8", errors="replace") as stream:
            lines += [line.strip() for line in stream]
    return [line for line in lines if line and not line.startswith("#")]
