"""Test modules as they are before anything of the repository runs. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later. Code under test that one test module imports could
change the next one: by writing bytecode next to it, or by replacing the functions that read and compile files. So the
sources of the tests that decide are read first, with the bytecode that exists by then; pytest is given these, and no
bytecode that is written later.
"""

import ast
import importlib.util
import marshal
import os
import time
import types
import warnings
from typing import Any

from _pytest.assertion import rewrite

CONFTEST = "conftest.py"
HEADER = 16
AHEAD_S = 2.0
# Kept from now on, whatever replaces them later.
_compile, _loads, _realpath = compile, marshal.loads, os.path.realpath
_rewrite_asserts: Any = getattr(rewrite, "rewrite_asserts", None)
# Python 3.6 has none, and its bytecode has no room for one.
_source_hash: Any = getattr(importlib.util, "source_hash", None)


class Originals:
    """The test files that decide, and the conftests above them.

    Args:
        root: the repository.
        paths: paths of the files, relative to `root`. Files that cannot be read are left to pytest.
        ahead: what `compile_ahead` made of these files, which may have changed since.
    """

    def __init__(self, root, paths, ahead=None):
        self._ahead = ahead or {}
        self._sources = {}
        self._code = {}
        for full, source in _sources(root, paths):
            if source is not None:
                self._sources[full] = source
                self._code[full] = _byte_code(full, source)

    def hold(self):
        """Makes pytest use them in this process."""
        rewrite._read_pyc = _read_no_pyc
        rewrite._write_pyc = _write_no_pyc
        if _is_known():
            rewrite._rewrite_test = self._rewriter(vars(rewrite)["_rewrite_test"])

    def _rewriter(self, original):
        def _rewrite_test(fn, config):
            name = str(fn)
            full = _realpath(name)
            source = self._sources.get(full)
            if source is None:
                return original(fn, config)
            code = self._code[full]
            if code is None and name == full and not config.getini("enable_assertion_pass_hook"):
                before, made = self._ahead.get(full, (None, None))
                code = made if before == source else None
            return None, code or _rewritten(source, name, config)

        return _rewrite_test


def compile_ahead(root, paths):
    """(source, code) of the same files as they are now, by path, rewritten as pytest does it: as many files as can be
    done in two seconds.
    """
    found: Any = {}
    end = time.monotonic() + AHEAD_S
    for full, source in _sources(root, paths) if _is_known() else ():
        if source is not None and time.monotonic() < end and _byte_code(full, source) is None:
            code = _quietly_rewritten(source, full)
            if code is not None:
                found[full] = source, code
    return found


def _quietly_rewritten(source, name):
    """The code of a file; None if something is wrong with it, which the run itself will report."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            code = _rewritten(source, name, None)
        except Exception:  # a parser may raise anything
            return None
    return None if caught else code


def _is_known():
    """Whether pytest rewrites test modules in the way that we know."""
    original = getattr(rewrite, "_rewrite_test", None)
    return _arguments(original) == ("fn", "config") and _arguments(_rewrite_asserts)[:2] == ("mod", "source")


def _rewritten(source, name, config):
    tree: Any = _compile(source, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    _rewrite_asserts(tree, source, name, config)
    return _compile(tree, name, "exec", dont_inherit=True)


def _sources(root, paths):
    """(path, bytes or None) of the files, and of the conftests above them."""
    for path in sorted({*paths, *_conftests(paths)}):
        full = _realpath(os.path.join(root, path))
        yield full, _read(full)


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


def _byte_code(path, source):
    """The code that pytest made from this source earlier and kept; None if there is none."""
    folder, name = os.path.dirname(importlib.util.cache_from_source(path)), os.path.basename(path)[: -len(".py")]
    data = _read(os.path.join(folder, name + getattr(rewrite, "PYC_TAIL", ".pyc")))
    if data is None or _source_hash is None or data[:4] != importlib.util.MAGIC_NUMBER:
        return None
    if data[4:HEADER] != _stamp(path, source, data[4:8]):
        return None
    try:
        code = _loads(data[HEADER:])
    except (EOFError, ValueError, TypeError):
        return None
    return code if isinstance(code, types.CodeType) and code.co_filename == path else None


def _stamp(path, source, flags):
    """The rest of the header that fits the source: by content, as in pytest 9.2 and later, or by time and size."""
    if flags != b"\0\0\0\0":
        return flags + _source_hash(source)
    moment = int(os.stat(path).st_mtime) & 0xFFFFFFFF
    return flags + moment.to_bytes(4, "little") + (len(source) & 0xFFFFFFFF).to_bytes(4, "little")


def _arguments(function):
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount]
