"""Test modules as they are before anything of the repository runs. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later. Code under test that one test module imports could make
the next one another: by byte code that it writes beside it, or by what it puts in place of functions that read and
compile files. So the sources of the tests that decide are read first, with the byte code that is there by then; pytest
is given these, and no byte code that is written later.
"""

import ast
import importlib.util
import os
import types
from pathlib import Path
from typing import Any

from _pytest.assertion import rewrite

CONFTEST = "conftest.py"
# Held from here on, whatever stands in their places later.
_compile, _realpath = compile, os.path.realpath
_read_pyc: Any = getattr(rewrite, "_read_pyc", None)
_rewrite_asserts: Any = getattr(rewrite, "rewrite_asserts", None)


class Originals:
    """The test files that decide, and the conftests above them.

    Args:
        root: the repository.
        paths: of the files, relative to it. Those that cannot be read are left to pytest.
    """

    def __init__(self, root, paths):
        self._held = {}
        for path in sorted({*paths, *_conftests(paths)}):
            full = _realpath(os.path.join(root, path))
            source = _read(full)
            if source is not None:
                self._held[full] = source, _byte_code(full)

    def hold(self):
        """Gives them to pytest in this process."""
        rewrite._read_pyc = _read_no_pyc
        rewrite._write_pyc = _write_no_pyc
        original = getattr(rewrite, "_rewrite_test", None)
        known = _arguments(original) == ("fn", "config") and _arguments(_rewrite_asserts)[:2] == ("mod", "source")
        if known:
            rewrite._rewrite_test = self._rewriter(original)

    def _rewriter(self, original):
        def _rewrite_test(fn, config):
            name = str(fn)
            full = _realpath(name)
            if full not in self._held:
                return original(fn, config)
            source, code = self._held[full]
            if code is None:
                tree: Any = _compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
                _rewrite_asserts(tree, source, name, config)
                code = _compile(tree, name, "exec", dont_inherit=True)
            return None, code

        return _rewrite_test


def _read_no_pyc(*_, **__):
    return None


def _write_no_pyc(*_, **__):
    return False


def _conftests(paths):
    """The conftests that pytest loads for these files."""
    for path in paths:
        while path:
            path = os.path.dirname(path)
            yield os.path.join(path, CONFTEST)


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError):
        return None


def _byte_code(path):
    """The code that pytest has made of this source before and kept; None where there is none that fits it."""
    folder, name = os.path.dirname(importlib.util.cache_from_source(path)), os.path.basename(path)[: -len(".py")]
    try:
        code = _read_pyc(Path(path), Path(folder, name + getattr(rewrite, "PYC_TAIL", ".pyc")))
    except Exception:  # of a pytest that reads it in another way, or for what its reader does not expect
        return None
    return code if isinstance(code, types.CodeType) and code.co_filename == path else None


def _arguments(function):
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount]
