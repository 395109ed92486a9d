"""Modules compiled with one changed line: a function alone gives the same code as the whole module."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.pythons import find_pythons
from support.tools.inside import SUPPORT

PYTHONS = [str(path) for path in find_pythons(with_pytest=True)]

COMPARE = """\
import dis, sys, types
sys.path.insert(0, {inside!r})
from gumshoe_inside.runs.change import ChangeError, ModuleSource, Variant

PARTS = (
    *("co_name", "co_qualname", "co_firstlineno", "co_flags", "co_names", "co_varnames", "co_freevars", "co_cellvars"),
    *("co_argcount", "co_kwonlyargcount"),
)

def shape(code):
    # Not the instructions: Python 3.11 and later call a method of what is imported in the module by others.
    consts = [
        shape(each) if isinstance(each, types.CodeType)
        else (type(each), sorted(map(repr, each)) if isinstance(each, frozenset) else repr(each))
        for each in code.co_consts
    ]
    if "__static_attributes__" in code.co_names:
        consts = [each for each in consts if each[0] is not tuple]
    lines = sorted(set(line for _, line in dis.findlinestarts(code) if line))
    return [consts, lines, *(getattr(code, name, None) for name in PARTS)]

class Whole(ModuleSource):
    # A source of which nothing is compiled alone.
    def function_at(self, line):
        return None

def result(variant, source):
    try:
        return shape(source.change(variant).code)
    except ChangeError as error:
        return str(error)

DOS = "skip", "true", "x = 1", "return 3", "replace super().y = len", "T = 3", "iterate []", "yield", "break", "2 +"
path, step = sys.argv[1], int(sys.argv[2])
source, whole = ModuleSource(path), Whole(path)
alone = 0
for line in range(1, source.text.count("\\n") + 1, step):
    alone += source.function_at(line) is not None
    for do in DOS:
        variant = Variant(path, line, do)
        assert result(variant, source) == result(variant, whole), (path, line, do)
print(alone)
"""

ODD = """\
# -*- coding: latin-1 -*-
from __future__ import annotations
import functools

def outer(x=[i for i in (1, 2)], *, y: int = 3) -> (
    int
):
    "caf\xe9"
    def inner():
        nonlocal x
        x = '''a
b'''
        return x
    global total
    total = 1
    return [inner() for _ in x] if y else \\
        None

def one_line(a): return a

@functools.lru_cache(
    maxsize=None
)
def decorated(a):
\treturn [
\t\ta,
\t]

class Base:
    __secret = 1
    value = property(lambda self: self.__secret)

    def twice(self): x = 1; return x

    @property
    def secret(self):
        self.__other = self.__secret; return __class__
    @secret.setter
    def secret(self, value):
        x = super().__init__(); self.y = value

    class Inner:
        def f(self):
            return self

    if value:
        def later(self):
            return 1

async def wait(x):
    async for each in x:
        yield each

def goes_on():
    return 1 \\

class Odd:
    @\\
  property
    def first(self):
        return 1

    global third
    def third(self):
        return "\\d"

def annotated():
    T = int
    def g():
        x: T = 1
        x = 2
        return x
    g()
    return T

def same(): pass
def same():
    pass
"""


NEWER = """\
@(
    functools.lru_cache
)
def in_parentheses():
    return 1

class Deep:
    \\
def first(self):
        return 1
"""
"""What Python 3.10 and later can read."""


def run(python: str, tmp_path: Path, script: str, *arguments: str) -> str:
    file = tmp_path / "script.py"
    file.write_text(script.format(inside=str(SUPPORT)))
    done = subprocess.run([python, str(file), *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def evaluate(python: str, expression: str) -> str:
    argv = [python, "-c", f"import sys, importlib; print({expression})"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("python", PYTHONS)
def test_odd_modules(python: str, tmp_path: Path) -> None:
    text = ODD + (NEWER if evaluate(python, "sys.version_info >= (3, 10)") == "True" else "")
    alone = evaluate(python, "sys.version_info >= (3, 8)") == "True"
    (tmp_path / "odd.py").write_bytes(text.encode("latin-1"))
    assert (int(run(python, tmp_path, COMPARE, str(tmp_path / "odd.py"), "1")) > 25) == alone
    (tmp_path / "crlf.py").write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    run(python, tmp_path, COMPARE, str(tmp_path / "crlf.py"), "7")


@pytest.mark.parametrize(("module", "step"), [("textwrap", 37), ("asyncio.queues", 37), ("contextlib", 97)])
@pytest.mark.parametrize("python", PYTHONS)
def test_the_standard_library(python: str, module: str, step: int, tmp_path: Path) -> None:
    file = evaluate(python, f"importlib.import_module({module!r}).__file__")
    alone = evaluate(python, "sys.version_info >= (3, 8)") == "True"
    assert (int(run(python, tmp_path, COMPARE, file, str(step))) > 1) == alone


FORKS = """\
import sys
sys.path.insert(0, {inside!r})
sys.path.insert(0, sys.argv[1])
import shop
from gumshoe_inside.runs.change import Variant, source_of
from gumshoe_inside.runs.patches import Functions

source = source_of(shop.__file__)
functions = Functions(sys.argv[1])
for line in 1, 3, 6:
    code = source.change(Variant(shop.__file__, line, "x = 1")).code
    patch = functions.replacement(shop.__file__, source.code, code)
    print(line, *(function.__name__ for function, _ in patch or ()))
"""


def test_only_the_changed_function_gets_other_code_in_a_fork(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "ADD, SUB = (lambda a, b: a + b), (lambda a, b: a - b)\n"
        "def f():\n    return 1\nclass A:\n    def f(self):\n        return 2\n"
    )
    assert run(PYTHONS[0], tmp_path, FORKS, str(tmp_path)).splitlines() == ["1", "3 f", "6 f"]


REFUSALS = """\
import sys
sys.path.insert(0, {inside!r})
from gumshoe_inside.runs.change import ChangeError, Variant, source_of

path, do, *lines = sys.argv[1:]
for line in lines:
    try:
        source_of(path).change(Variant(path, int(line), do))
        print("compiled")
    except ChangeError as error:
        print(error)
"""


def test_what_cannot_be_compiled_and_lines_in_a_match_that_begin_no_statement(tmp_path: Path) -> None:
    path = tmp_path / "shop.py"
    path.write_text("def f():\n    return 1\nreturn 2\n")
    answers = run(PYTHONS[0], tmp_path, REFUSALS, str(path), "replace pass", "2", "3").splitlines()
    assert ["outside function" in answer for answer in answers] == [True, True]
    arms = "        case 1:\n            return 2\n        # note\n\n        case _:\n            return 3\n"
    path.write_text(f"def f(x):\n    match x:\n{arms}")
    answers = run(PYTHONS[0], tmp_path, REFUSALS, str(path), "skip", "3", "5", "6").splitlines()
    assert [answer.rpartition("/")[2] for answer in answers] == [f"shop.py:{n} is no statement" for n in (3, 5, 6)]
