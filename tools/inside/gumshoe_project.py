"""Which files belong to the project under test. Standard library only, Python 3.6 to 3.14."""

import os

_TEST_FOLDERS = ("test", "tests", "unittests", "testcases")
_TEST_FILES = ("test.py", "tests.py", "conftest.py", "runtests.py")
FOREIGN = ("site-packages", "dist-packages", ".venv", "venv", ".tox", ".nox", ".git", "node_modules", "__pypackages__")


def project_path(filename, root):
    """The path relative to the project's root, with `/` separators; None for a file outside the project."""
    full = os.path.normpath(os.path.join(root, filename))
    if filename.startswith("<") or not full.startswith(root + os.sep):
        return None
    parts = full[len(root) + 1 :].split(os.sep)
    return None if any(part in FOREIGN for part in parts[:-1]) else "/".join(parts)


def holds_tests(path: str) -> bool:
    """Whether a path relative to the project is test code: pytest's defaults and the common layouts."""
    folders, name = path.split("/")[:-1], path.rpartition("/")[2]
    in_folder = any(folder in _TEST_FOLDERS or folder.endswith(("_tests", "_testcases")) for folder in folders)
    return in_folder or name in _TEST_FILES or name.startswith("test_") or name.endswith(("_test.py", "_tests.py"))


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


def test_file_stamps(root):
    """The test files below a folder, each with a stamp that shows whether it was written: its ctime cannot be set."""
    found = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in FOREIGN]
        prefix = folder[len(root) :].strip("/") + "/"
        for name in names:
            path = (prefix + name).lstrip("/")
            if name.endswith(".py") and holds_tests(path):
                facts = os.lstat(os.path.join(folder, name))
                found[path] = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    return found
