"""Modules compiled with one changed line: a function alone gives the same code as the whole module."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gumshoe.env.inside.runs.change import ChangeError, Variant, source_of
from gumshoe.env.inside.runs.patches import Functions
from support.tools.inside import SUPPORT

COMPARE = """\
import dis, importlib, sys, types
sys.path[:0] = [{inside!r}, "."]
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
MODULES = {{"textwrap": 37, "asyncio.queues": 37, "contextlib": 97}}
paths = {{importlib.import_module(name).__file__: step for name, step in MODULES.items()}}
paths.update({{"odd.py": 1, "crlf.py": 7}})
if sys.version_info >= (3, 10):
    paths["newer.py"] = 1
for path, step in paths.items():
    source, whole, alone = ModuleSource(path), Whole(path), 0
    for line in range(1, source.text.count("\\n") + 1, step):
        alone += source.function_at(line) is not None
        for do in DOS:
            variant = Variant(path, line, do)
            assert result(variant, source) == result(variant, whole), (path, line, do)
    assert (alone > 1) == (sys.version_info >= (3, 8)), path
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


def test_a_function_alone_gives_the_same_code(python: str, tmp_path: Path) -> None:
    for name, text in (("odd.py", ODD), ("crlf.py", ODD.replace("\n", "\r\n")), ("newer.py", ODD + NEWER)):
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    (tmp_path / "script.py").write_text(COMPARE.format(inside=str(SUPPORT)))
    argv = [python, "script.py"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_only_the_changed_function_gets_other_code_in_a_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "changed_shop.py"
    path.write_text(
        "ADD, SUB = (lambda a, b: a + b), (lambda a, b: a - b)\n"
        "def f():\n    return 1\nclass A:\n    def f(self):\n        return 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    __import__("changed_shop")
    source, functions = source_of(str(path)), Functions(str(tmp_path))
    codes = {line: source.change(Variant(str(path), line, "x = 1")).code for line in (1, 3, 6)}
    patches = {line: functions.replacement(str(path), source.code, code) for line, code in codes.items()}
    names = {line: [function.__qualname__ for function, _ in patch or ()] for line, patch in patches.items()}
    assert names == {1: [], 3: ["f"], 6: ["A.f"]}


def test_lines_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.py"
    arms = "        case 1:\n            return 2\n        # note\n\n        case _:\n            return 3\n"
    for text, lines, do, why in (
        ("def f():\n    return 1\nreturn 2\n", (2, 3), "replace pass", "outside function"),
        (f"def f(x):\n    match x:\n{arms}", (3, 5, 6), "skip", "is no statement"),
    ):
        path.write_text(text)
        for line in lines:
            with pytest.raises(ChangeError, match=why):
                source_of(str(path)).change(Variant(str(path), line, do))
