"""What a fork of the test server shares with all others, and when it could differ from a fresh interpreter."""

import contextlib
import gc
import glob
import importlib
import linecache
import os
import re
import site
import sys

from .project import FOREIGN, module_files, real_paths

EXECUTED = ("import ", "import\t")
"""How the lines of `.pth` files begin that are executed; each other line names a folder."""
PLUGINS = ("..runs.outcomes", "..runs.suspects", "..runs.trace")
"""Our own plugins that pytest is told to load, without `debugger.hooks`: that comes with the debugger."""


class LoadedRunner:
    """The test runner that this process has loaded, for all of its forks.

    Attributes:
        name: `pytest`, `unittest`, or empty for none.
        problem: why forks of this process would differ from a fresh interpreter, or None.
        top_level: the names of the loaded modules that are in no package.

    Args:
        root: the workspace.
        own: the folder of this package.
    """

    def __init__(self, name, root, own):
        self.name = name
        self.problem = None
        try:
            _load(name)
        except ImportError as error:
            self.problem = "the test runner cannot be imported: {}".format(error)
        files = {name: path for name, path in module_files().items() if not path.startswith(own + os.sep)}
        self.top_level = {name for name in files if "." not in name and name != "__main__"}
        inside, real_path = os.path.realpath(root) + os.sep, real_paths()
        if any(real_path(path).startswith(inside) for path in files.values()):
            self.problem = "the test runner comes from the workspace"
        library = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
        installed = [path for path in files.values() if not path.startswith(library) or "-packages" in path]
        self._stamps = {path: _stamp(path) for path in installed if os.access(path, os.W_OK)}

    def is_stale(self):
        """Whether a file of the test runner was changed."""
        return any(_stamp(path) != stamp for path, stamp in self._stamps.items())


def _load(runner):
    """Imports a test runner, and with pytest the plugins that it always loads."""
    if runner:
        importlib.import_module(runner)
    if runner == "pytest":
        for each in getattr(sys.modules.get("_pytest.config"), "default_plugins", ()):
            with contextlib.suppress(ImportError):  # Pytest reports this itself if it needs the module.
                importlib.import_module("_pytest.{}".format(each))
        for each in PLUGINS:
            importlib.import_module(each, __package__)


def _stamp(path):
    """What changes with a file; None if there is none."""
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


def forget_caches():
    """Makes a fork forget what may have changed since the server started."""
    importlib.invalidate_caches()
    linecache.clearcache()
    if sys.version_info < (3, 7) and "random" in sys.modules:
        sys.modules["random"].seed()


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


MOST_FILES = 20000
FILE_BYTES = 1 << 20

_PATTERNS = {
    "starts processes that share its memory": re.compile(
        rb"\bos\.fork|\bforkpty\b|\bmultiprocessing\b|\bProcessPoolExecutor\b"
    ),
    "looks at its own process": re.compile(
        rb"/proc/self|\bpsutil\b|\btracemalloc\b|\bgetrusage\b|\bgc\.get_|\borig_argv\b"
    ),
}


class WorkspaceScan:
    """What was found in the workspace's files; those that have changed are read again by `look`."""

    def __init__(self, root):
        self.root = root
        self._files = {}
        self._importable = set()
        self._too_many = False
        self.look()

    def look(self):
        """Reads the files that are new or changed since the last time."""
        known, self._files, self._importable = self._files, {}, set()
        packages = set()
        for folder, folders, names in os.walk(self.root):
            folders[:] = [each for each in folders if each not in FOREIGN and not each.startswith(".")]
            modules = {name.partition(".")[0] for name in names if name.endswith((".py", ".so"))}
            if "__init__" in modules:
                packages.add(folder)
                modules = set() if os.path.dirname(folder) in packages else {os.path.basename(folder)}
            self._importable |= modules
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(folder, name)
                    self._files[path] = _look_at(path, known.get(path))
            self._too_many = len(self._files) > MOST_FILES
            if self._too_many:
                return

    def reason(self):
        """Why a fork may differ; None if nothing suggests that it does."""
        if self._too_many:
            return "the workspace has over {} modules".format(MOST_FILES)
        for path, (_, why) in self._files.items():
            if why is not None:
                return "{} {}".format(os.path.relpath(path, self.root), why)
        return None

    def shadowed(self, names):
        """Why modules of these names could be different ones in a fresh interpreter, or None."""
        own = sorted(self._importable & names)
        return "the workspace has a module {} of its own".format(own[0]) if own else None


def _look_at(path, known):
    """(a stamp that changes with the file, why it matters)."""
    stamp = _stamp(path)
    if known is not None and known[0] == stamp:
        return known
    if not os.path.isfile(path):
        return stamp, None
    try:
        with open(path, "rb") as stream:
            source = stream.read(FILE_BYTES)
    except OSError:
        return None, None
    return stamp, next((why for why, pattern in _PATTERNS.items() if pattern.search(source)), None)
