"""Small projects whose tests are run as those of Django and sympy are.

Django's go by the first line of their docstrings, sympy's by the names of their functions.
"""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

BUGGY = b"def total(prices):\n    return sum(prices) - 1\n\n\ndef same(n):\n    return n\n"
CLEAN = BUGGY.replace(b" - 1", b"")
BROKEN = CLEAN.replace(b"return n", b"return -n")
RUNTESTS = """\
#!/usr/bin/env python
import os
import sys
import unittest

folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(folder), folder]
modules = [word for word in sys.argv[1:] if "." in word]
suite = unittest.defaultTestLoader.loadTestsFromNames(modules)
unittest.installHandler()
print("Testing against a copy")
result = unittest.TextTestRunner(verbosity=2).run(suite)
sys.exit(bool(result.failures or result.errors))
"""
DJANGO_TESTS = '''\
from unittest import TestCase, skip

from shop import same, total


class Prices(TestCase):
    def test_total(self):
        """The total of a list is its sum (#123)."""
        self.assertEqual(total([2, 3]), 5)

    def test_none(self):
        self.assertEqual(total([]), 0)

    def test_same(self):
        """
        What comes back is what was given.
        """
        self.assertEqual(same(2), 2)

    @skip("later")
    def test_later(self):
        """Is done later."""
'''
BIN_TEST = """\
#!/usr/bin/env python
import sys

sys.path.insert(0, ".")
from sympy.testing.runtests import run

sys.exit(not run([word for word in sys.argv[1:] if not word.startswith("-")]))
"""
SYMPY_RUNNER = """\
import sys
import traceback

class PyTestReporter:
    def __init__(self):
        self.failures = []

    def entering_filename(self, filename, n):
        print("{}[{}] ".format(filename, n))
        self.filename = filename

    def import_error(self, filename, exc_info):
        print("{}[?]   Failed to import".format(filename))
        self.filename = filename
        self.failures.append((filename, exc_info))

    def entering_test(self, f):
        self.name = "{}:{}".format(self.filename, f.__name__)
        print(f.__name__, end=" ")

    def test_pass(self, char="."):
        print("ok")

    def test_fail(self, exc_info):
        self.failures.append((self.name, exc_info))
        print("F")

    def test_exception(self, exc_info):
        self.failures.append((self.name, exc_info))
        print("E")

    def test_skip(self, v):
        print("s")

def run(paths):
    reporter = PyTestReporter()
    for path in paths:
        names = {"__name__": "test"}
        try:
            with open(path) as file:
                exec(compile(file.read(), path, "exec"), names)
        except ImportError:
            reporter.import_error(path, sys.exc_info())
            continue
        tests = [names[name] for name in names if name.startswith("test_")]
        reporter.entering_filename(path, len(tests))
        for test in tests:
            reporter.entering_test(test)
            try:
                test()
            except AssertionError:
                reporter.test_fail(sys.exc_info())
            except Exception:
                reporter.test_exception(sys.exc_info())
            else:
                reporter.test_pass()
    for name, (kind, error, trace) in reporter.failures:
        print("_" * 80, " {} ".format(name).center(80, "_"), sep="\\n")
        traceback.print_exception(kind, error, trace.tb_next, file=sys.stdout)
    return not reporter.failures
"""
SYMPY_TESTS = """\
from shop import same, total

def test_total():
    assert total([2, 3]) == 5

def test_none():
    assert total([]) == 0

def test_same():
    assert same(2) == 2
"""
DJANGO = {"tests/runtests.py": RUNTESTS, "tests/prices/__init__.py": "", "tests/prices/tests.py": DJANGO_TESTS}
SYMPY = {
    "bin/test": BIN_TEST,
    "sympy/__init__.py": "",
    "sympy/testing/__init__.py": "",
    "sympy/testing/runtests.py": SYMPY_RUNNER,
    "sympy/core/tests/test_shop.py": SYMPY_TESTS,
}
RUNNERS: dict[str, Any] = {
    "django": (
        DJANGO,
        ("./tests/runtests.py", "--verbosity", "2", "--settings=test_sqlite", "--parallel", "1", "prices.tests"),
        ("The total of a list is its sum (#123).", "test_none (prices.tests.Prices.test_none)"),
        ("What comes back is what was given.",),
    ),
    "sympy": (
        SYMPY,
        ("bin/test", "-C", "--verbose", "sympy/core/tests/test_shop.py"),
        ("test_total", "test_none"),
        ("test_same",),
    ),
}


def write_buggy(folder: Path, files: Mapping[str, str]) -> None:
    """Writes the files of a project, and the shop with its bug; all of them can be executed."""
    for name, text in {**files, "shop.py": BUGGY.decode()}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
