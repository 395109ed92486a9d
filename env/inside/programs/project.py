"""Which files belong to the project under test."""

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
