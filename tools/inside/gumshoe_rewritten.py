"""Modules of a workspace as a test server keeps them for its forks. Standard library only, Python 3.6 to 3.14.

Programs in a sandbox write no bytecode, so every module is compiled anew in each run, and pytest parses and rewrites
the test modules. A fork reports which modules it has loaded. The server compiles these once more between runs, without
running any of their code, and later forks take the code from its memory, as long as the file is the same.
"""

import importlib.machinery
import os
import stat
import sys
import time
import warnings
from pathlib import Path

FILE_BYTES = 1 << 20
MOST_BYTES = 4 << 20
SETTLED_S = 0.1
"""A file that was changed this recently may change again without getting a new time stamp."""


class Kept:
    """Modules that are kept.

    Args:
        root: the workspace; only files in it are kept.
    """

    def __init__(self, root):
        self._root = os.path.join(os.path.realpath(root), "")
        self._kept = {}
        self._pending = []

    @property
    def is_pending(self):
        """Whether something is left to compile."""
        return bool(self._pending)

    def note(self, paths):
        """Notes files that a run has loaded; a program supplies them, so they may be anything."""
        inside = [path for path in paths if isinstance(path, str) and path.startswith(self._root)]
        self._pending = [path for path in inside if self._kept.get(path, (None,))[0] != _stamp(path)]

    def compile_next(self):
        """Compiles one of the noted files, if that has no effect besides producing the code."""
        path = self._pending.pop(0)
        stamp = _stamp(path)
        if stamp is None or time.time() - stamp[1] / 1e9 < SETTLED_S:
            return
        self._kept.pop(path, None)
        if stamp[2] + sum(kept[2] for kept, _ in self._kept.values()) > MOST_BYTES:
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = self.make(path)
            except Exception:  # whatever is wrong with it, the run that loads it will report it
                return
        if result is not None and not caught:
            self._kept[path] = stamp, result

    def make(self, path):
        """What to keep for a file; None for nothing."""
        raise NotImplementedError


class Rewritten(Kept):
    """Test modules as pytest rewrites them."""

    def make(self, path):
        """A test file as pytest compiles it, with its assertions rewritten; None without pytest."""
        rewrite = _rewriter()
        return None if rewrite is None else rewrite(Path(path), None)

    def become(self):
        """Makes pytest in this fork use what is kept."""
        rewrite = _rewriter()
        if rewrite is None or not self._kept:
            return

        def _rewrite_test(fn, config):
            stamp, result = self._kept.get(str(fn), (None, None))
            if stamp is not None and stamp == _stamp(str(fn)) and not config.getini("enable_assertion_pass_hook"):
                return result
            return rewrite(fn, config)

        sys.modules["_pytest.assertion.rewrite"]._rewrite_test = _rewrite_test

    @staticmethod
    def seen(spaces):
        """The files that pytest has rewritten, among modules given by their attributes."""
        hook = getattr(sys.modules.get("_pytest.assertion.rewrite"), "AssertionRewritingHook", ())
        return [each["__file__"] for each in spaces if isinstance(each.get("__loader__"), hook) and "__file__" in each]


class Compiled(Kept):
    """The other modules. The code used is what `compile` makes of exactly the bytes that were read."""

    def make(self, path):
        """A file's first bytes and its code."""
        with open(path, "rb") as stream:
            data = stream.read(FILE_BYTES + 1)
        return data, compile(data, path, "exec", 0, True)

    def become(self):
        """Makes the importer of this fork use what is kept."""
        loader = importlib.machinery.SourceFileLoader
        original = loader.source_to_code
        if not self._kept:
            return

        def source_to_code(self_, data, path, *more, **options):
            before, code = self._kept.get(path, (None, (None, None)))[1]
            if before is not None and before == data and not more and not options:
                return code
            return original(self_, data, path, *more, **options)

        loader.source_to_code = source_to_code

    @staticmethod
    def seen(spaces):
        """The source files that were imported, among modules given by their attributes."""
        kind = importlib.machinery.SourceFileLoader
        return [each["__file__"] for each in spaces if type(each.get("__loader__")) is kind and "__file__" in each]


def _rewriter():
    """Pytest's function that rewrites one file; None where it is not the one we know."""
    function = getattr(sys.modules.get("_pytest.assertion.rewrite"), "_rewrite_test", None)
    code = getattr(function, "__code__", None)
    known = code is not None and code.co_varnames[: code.co_argcount] == ("fn", "config")
    return function if known else None


def _stamp(path):
    """A stamp that changes with a file; None if it is not a regular file, or is too large."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode) or status.st_size > FILE_BYTES:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
