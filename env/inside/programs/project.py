"""The project under test: which files belong to it, what it has imported, and hooks into what it imports.

A file's path in the project is found in several ways, which differ in links, and in whether what is installed below the
root (`FOREIGN`) belongs to the project:

| way | used by | links | installed |
|---|---|---|---|
| `project_path` | outcomes, `suspects`, names of tests | kept | left out |
| `CallRecorder._path` | `trace` | kept; followed where the path leads out | left out |
| `WorkspaceFiles.name` | the debugger, `probes` | kept; the root has several names | left out, as is this package |
| `real_project_path` | `patches`, the maker of bugs | followed | belongs to it |

What the agent reads, and the host looks up in the workspace, keeps the name by which both know the file. `trace` and
the debugger must find the place that they were given even where the program has imported it by another name: through a
link, or below the root as the shell names it. `patches` and the maker of bugs match code with files, so each file must
have one name, and all that lies below the root may be changed.
"""

import importlib.machinery
import linecache
import os
import sys
from traceback import walk_tb

_TEST_FOLDERS = ("test", "tests", "unittests", "testcases")
_TEST_FILES = ("test.py", "tests.py", "conftest.py", "runtests.py")
INNER_FRAMES = 3
FOREIGN = ("site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", ".git", "node_modules", "__pypackages__")


def project_path(filename, root):
    """The path relative to the project's root, with `/` separators; None for a file outside the project."""
    full = os.path.normpath(os.path.join(root, filename))
    if filename.startswith("<") or not full.startswith(root + os.sep):
        return None
    parts = full[len(root) + 1 :].split(os.sep)
    return None if any(part in FOREIGN for part in parts[:-1]) else "/".join(parts)


def real_project_path(filename, root):
    """The path relative to the project's root, links followed; None for a file outside. `root` is a real path."""
    if filename.startswith("<"):
        return None
    path = os.path.realpath(filename)
    return os.path.relpath(path, root).replace(os.sep, "/") if path.startswith(root + os.sep) else None


def module_files():
    """The files of the loaded modules, by the modules' names; those that have none are left out."""
    files = {name: getattr(module, "__dict__", {}).get("__file__") for name, module in sys.modules.copy().items()}
    return {name: path for name, path in files.items() if isinstance(path, str)}


def project_frames(trace, root):
    """Frames of the project in a traceback, outermost first: the first one and the innermost ones."""
    shown = []
    for frame, line in walk_tb(trace):
        filename = frame.f_code.co_filename
        name = project_path(filename, root)
        if name is not None:
            code = linecache.getline(filename, line).strip()[:120]
            shown.append({"path": name, "line": line, "function": frame.f_code.co_name, "code": code})
    return shown if len(shown) <= INNER_FRAMES + 1 else shown[:1] + shown[-INNER_FRAMES:]


def trace_below(trace, filename):
    """A traceback without its first frames, as far as they are in this file; None if all of them are."""
    while trace is not None and trace.tb_frame.f_code.co_filename == filename:
        trace = trace.tb_next
    return trace


def holds_tests(path: str) -> bool:
    """Whether a path relative to the project is test code: pytest's defaults and the common layouts."""
    folders, name = path.split("/")[:-1], path.rpartition("/")[2]
    in_folder = any(folder in _TEST_FOLDERS or folder.endswith(("_tests", "_testcases")) for folder in folders)
    in_folder = in_folder or folders[:1] == ["testing"]  # In a package, such a folder holds what tests use.
    return in_folder or name in _TEST_FILES or name.startswith("test_") or name.endswith(("_test.py", "_tests.py"))


def is_test_file(path: str) -> bool:
    """Whether a file is a test or is in a folder of tests, by the common layouts.

    This is narrower than `holds_tests`: what a patch changes in a test is undone, a report that names one is sent back,
    and a folder such as `test` may hold code of the project, as django/test does.
    """
    folders, name = path.split("/")[:-1], path.rpartition("/")[2]
    return (
        "tests" in folders or name.startswith("test_") or name.endswith(("_test.py", "_tests.py")) or name == "test.py"
    )


def real_paths():
    """A function that returns what `os.path.realpath` does, but looks at each folder only once."""
    folders = {}

    def real_path(path):
        folder, name = os.path.split(path)
        if name in ("", os.curdir, os.pardir):
            return os.path.realpath(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        full = os.path.join(folders[folder], name)
        return os.path.realpath(full) if os.path.islink(full) else full

    return real_path


# - imports


_waiting = {}
"""What is to be called with a module once it is imported, by the module's name."""


def after_import(name, function):
    """Calls a function with a module once the program has imported it; at once if it has."""
    if name in sys.modules:
        function(sys.modules[name])
        return
    if not _waiting:
        sys.meta_path.insert(0, _ImportWatch())
    _waiting.setdefault(name, []).append(function)


class _ImportWatch:
    """The finder for modules that something waits for: it finds what the usual one does, and wraps the loader."""

    def find_spec(self, name, path=None, target=None):
        """The module's spec; None if nothing waits for it."""
        if name not in _waiting:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                for function in _waiting[name]:
                    function(module)

            spec.loader.exec_module = exec_module
        return spec


def load_from(code_for):
    """Has source files that are imported from now on loaded from other code.

    Args:
        code_for: takes the loader and the path, returns the code, or None to use what the loader itself compiles.
    """
    loader = importlib.machinery.SourceFileLoader
    get_code = loader.get_code

    def get_other(self, fullname):
        code = code_for(self, self.get_filename(fullname))
        return get_code(self, fullname) if code is None else code

    loader.get_code = get_other
