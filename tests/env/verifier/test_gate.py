"""The gate on a patch: what is found, what is not, and what evasions come to nothing."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gumshoe.env.verifier.gate import unverifiable_lines

OLD = "import os\nimport sys\n\n\ndef total(prices):\n    return sum(prices) - 1\n"
FIXED = OLD.replace(" - 1", "")
PACKAGE = {
    "shop/__init__.py": "",
    "shop/cart.py": OLD,
    "shop/other.py": "x = 1\n",
    "tests/test_cart.py": "import pytest\n",
}


def causes(added: str, *, before: str = OLD, package: dict[str, str] | None = None, path: str = "shop/cart.py"):
    """The lines found where `added` is appended to a file of a small package."""
    files = PACKAGE | (package or {})
    sides = before.encode() if path in files else None, (before + added).encode("utf-8", "surrogateescape")
    return unverifiable_lines({path: sides}, list(files), lambda name: files[name].encode())


KINDS = {
    "frames": [
        "f = sys._getframe(1)",
        "import inspect\ninspect.currentframe()",
        "import inspect\nx = inspect.stack()[1]",
        "def up(e):\n    return e.__traceback__.tb_frame.f_back.f_locals",
        "y = (n for n in ()).gi_frame",
        "import traceback\ntraceback.extract_stack()",
        "import linecache",
        "import inspect\ninspect.getsource(total)",
    ],
    "tracing": [
        "sys.settrace(print)",
        "import threading\nthreading.setprofile(print)",
        "sys.monitoring.use_tool_id(1, 'x')",
        "import bdb",
        "sys.addaudithook(print)",
    ],
    "memory": [
        "import ctypes",
        "from cffi import FFI",
        "import gc\nx = gc.get_objects()",
        "open('/proc/self/mem', 'r+b')",
        "x.__array_interface__ = {}",
    ],
    "code objects": [
        "total.__code__ = (lambda p: 5).__code__",
        "import types\ntypes.CodeType",
        "import types\ng = types.FunctionType(a, b)",
        "import marshal",
        "x = total.__closure__[0].cell_contents",
        "total.__defaults__ = (1,)",
        "total.__globals__['x'] = 1",
    ],
    "import hooks": [
        "sys.meta_path.insert(0, None)",
        "sys.path_hooks.append(None)",
        "sys.modules['test_cart'] = None",
        "m = sys.modules.get('cart')",
        "sys.path.insert(0, '/tmp')",
        "import importlib.machinery",
        "import importlib\nimportlib.reload(sys)",
        "import importlib\n\ndef load(name):\n    return importlib.import_module(name)",
        "__spec__ = None\nm.__path__ = []",
    ],
    "text run as code": [
        "exec('x = 1')",
        "eval('1')",
        "compile('1', 'x', 'eval')",
        "import pickle\npickle.loads(b'')",
        "import timeit\ntimeit.timeit('x')",
        "import code",
    ],
    "names on modules": [
        "globals()['total'] = None",
        "def put(name):\n    setattr(sys, name, None)",
        "def take(name):\n    return getattr(sys, name)",
        "os.path.exists = bool",
        "import pathlib\npathlib.Path.read_bytes = None",
        "import numpy.testing as t\nt.assert_equal = print",
        "v = vars(sys)",
    ],
    "test runner": [
        "import pytest",
        "from unittest import mock",
        "import _pytest.python as p",
        "os.environ['PYTEST_CURRENT_TEST']",
        "import doctest",
    ],
    "test files": [
        "import tests.test_cart",
        "from test_cart import test_total",
        "open('tests/test_cart.py').read()",
        "import pathlib\npathlib.Path('.').rglob('*.py')",
        "import pathlib\npathlib.Path('tests')",
        "import conftest",
    ],
    "objects in disguise": [
        "class Any:\n    def __eq__(self, other):\n        return True",
        "class Any:\n    def __eq__(*both):\n        return 1",
        "class Any:\n    __eq__ = lambda self, other: True",
        "Any = type('Any', (), {'__eq__': lambda *both: True})",
        "total.__class__ = int",
        "object.__setattr__(x, '__class__', int)",
        "setattr(x, '__class__', int)",
        "X.__eq__ = total",
    ],
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in KINDS.items() for code in codes])
def test_each_kind_is_found_at_its_line(kind: str, code: str):
    found = causes(code + "\n")
    assert any(f"{kind}: " in line for line in found), found
    texts = dict(enumerate((OLD + code).split("\n"), 1))
    for line in found:
        number = int(line.split(":")[1])
        assert number > OLD.count("\n")
        assert line.startswith(f"shop/cart.py:{number}: {texts[number].strip()} — ")


EVASIONS = {
    "getattr": "getattr(sys, '_get' + 'frame')()",
    "getattr on an unknown object": "getattr(x, '_get' + 'frame')()",
    "builtins' method": "__builtins__.get('ex' + 'ec')",
    "method of exec": "exec.__call__('')",
    "keyword": "import importlib\nimportlib.import_module(name='c' + 'types')",
    "tests by import_module": "import importlib\nimportlib.import_module('test_cart')",
    "module under this name": "def f(__name__):\n    return sys.modules[__name__]",
    "in nothing": "None in sys._getframe",
    "f-string": "getattr(x, f\"_get{'frame'}\")",
    "join": "getattr(x, ''.join(['_get', 'frame']))",
    "join of a split": "getattr(x, ''.join('_get frame'.split()))",
    "backwards": "getattr(x, 'emarfteg_'[::-1])",
    "percent": "getattr(x, '_get%s' % 'frame')",
    "format": "getattr(x, '_get{}'.format('frame'))",
    "replace": "getattr(x, '_getXframe'.replace('X', ''))",
    "bytes": "getattr(x, bytes([95, 103, 101, 116]).decode())",
    "base64": "import base64\ngetattr(x, base64.b64decode('X2dldGZyYW1l').decode())",
    "rot13": "import codecs\ngetattr(x, codecs.decode('_trgsenzr', 'rot13'))",
    "chr": "getattr(x, chr(95) + 'getframe')",
    "str.join": "getattr(x, str.join('', ['_get', 'frame']))",
    "import alias": "import sys as s\ns._getframe()",
    "from import": "from sys import _getframe as f",
    "star import": "from inspect import *",
    "module of a module": "os.sys.modules",
    "module of a module, by name": "def f(name):\n    return getattr(getattr(os, 's' + 'ys'), name)",
    "__import__": "__import__('s' + 'ys')",
    "computed import": "def f(name):\n    return __import__(name)",
    "spelled import": "from importlib import import_module as load\nload('c' + 'types')",
    "assigned module": "s = sys\n\ndef f(name):\n    return getattr(s, name)",
    "module handed on": "list(map(getattr, [sys], ['x']))",
    "module in a list": "[sys][0]",
    "module as a default": "def f(s=sys):\n    return s",
    "module's dict": "def f(name):\n    return sys.__dict__[name]",
    "module's dict, spelled": "vars(sys)['_get' + 'frame'](0)",
    "modules": "sys.modules['buil' + 'tins'].exec('')",
    "builtins": "__builtins__['exec']('')",
    "builtins by import": "import builtins\nbuiltins.exec('')",
    "builtins by getattr": "import builtins\ngetattr(builtins, 'ex' + 'ec')('')",
    "subclasses": "().__class__.__mro__[1].__subclasses__()",
    "alias of exec": "run = exec\nrun('')",
    "exec as a decorator": "@exec\ndef f():\n    pass",
    "exec as a default": "def f(run=exec):\n    pass",
    "exec by map": "list(map(exec, ['']))",
    "attrgetter": "import operator\noperator.attrgetter('f_back.f_locals')",
    "match": "match x:\n    case object(f_back=f):\n        pass",
    "format field": "'{0.f_back.f_locals}'.format(x)",
    "walrus": "(s := sys).modules",
    "getattribute": "sys.__getattribute__('_get' + 'frame')",
    "unicode": "\uff45\uff58\uff45\uff43('')",
    "unicode attribute": "x.__\uff43\uff4f\uff44\uff45__",
    "code in a string": "run('import sys; sys.settrace(None)')",
    "path by parts": "import pathlib\npathlib.Path('/') / 'proc' / 'self' / 'mem'",
    "path in halves": "open('/pr' + 'oc/self/mem')",
    "shadowed in a branch": "if False:\n    def exec(x):\n        pass\nexec('')",
    "shadowed import": "def f():\n    import os as sys\n\ndef g(n):\n    return getattr(sys, n)",
    "pickle": "import pickle as p\np.loads(b\"cbuiltins\\nexec\\n(S''\\ntR.\")",
    "annotation": "class A:\n    x: \"__import__('os')\"",
}


@pytest.mark.parametrize("code", EVASIONS.values(), ids=EVASIONS)
def test_an_evasion_is_found(code: str):
    assert causes(code + "\n")


def test_another_encoding_is_read_as_python_reads_it():
    code = b"# coding: utf-7\n+AGUAeABlAGM-('')\n"
    found = unverifiable_lines({"shop/new.py": (None, code)}, [], lambda _: b"")
    assert [line.split(" — ")[1] for line in found] == ["text run as code: builtins.exec"]


HARMLESS = {
    "the repair": "",
    "typing": "from typing import Any, get_type_hints\n\ndef f(x: 'list[int]') -> Any:\n    return get_type_hints(f)\n",
    "dataclass": "from dataclasses import dataclass, field\n\n@dataclass\nclass A:\n    x: list = field()\n",
    "own attribute by name": "def visit(self, node):\n    return getattr(self, f'visit_{node.kind}', None)\n",
    "own attribute set by name": "def put(self, **more):\n    for name in more:\n        setattr(self, name, name)\n",
    "regular expression": "import re\nP = re.compile(r'\\bexec\\(')\nre.purge()\n",
    "from re": "from re import compile\nP = compile('x')\n",
    "method called eval": "class M:\n    def eval(self):\n        return self.model.eval()\n",
    "own compile": "def compile(x):\n    return x\n\n\ny = compile(1)\n",
    "lazy import": "import importlib\nyaml = importlib.import_module('yaml')\n",
    "is it imported": "HAS = 'numpy' in sys.modules\n",
    "this module": "def me():\n    return sys.modules[__name__]\n",
    "logging": "import logging\nlogging.getLogger(__name__).warning('x', stacklevel=2, exc_info=True)\n",
    "warning": "import warnings\nwarnings.warn('x', DeprecationWarning, stacklevel=2)\n",
    "inspect": "import inspect\n\ndef f(g):\n    return inspect.signature(g), inspect.isclass(g)\n",
    "sqlalchemy": "from sqlalchemy import inspect\n\ndef f(x):\n    return inspect(x).mapper\n",
    "exit": "def main():\n    sys.exit(1)\n",
    "traceback": "import traceback\n\ndef f():\n    traceback.print_exc()\n",
    "equality": "class A:\n    def __eq__(self, other):\n        return isinstance(other, A)\n",
    "inequality": "class A:\n    __ne__ = object.__ne__\n",
    "equality by position": "class A:\n    def __eq__(self, other, /):\n        return self.x == other.x\n",
    "never equal": "class A:\n    def __eq__(self, other):\n        return False\n",
    "type of function": "import types\n\ndef f(x):\n    return isinstance(x, types.FunctionType)\n",
    "docstring": 'def f():\n    """Like sys._getframe, reads /proc/self and tests/test_x.py."""\n',
    "comment": "# sys._getframe(), exec('x'), import pytest\n",
    "words": "MESSAGE = 'cannot evaluate or compile the trace of the test (see code)'\n",
    "state of the package": "from shop import other\nfrom . import other as o\nother.x = 2\no.x = 3\n",
    "literal": "from typing import Literal\nM = Literal['sys', 'fd']\n\ndef f(m: M):\n    return {'sys': 1}['sys']\n",
    "made class": "made = type('A', (), {})\n\ndef f(name):\n    setattr(made, name, getattr(made, 'x'))\n",
    "feature": "FROZEN = getattr(sys, 'frozen', False) or hasattr(sys, 'pypy_version_info')\n",
    "one of two names": "def f(x, y):\n    name = 'start'\n    if y:\n        name = 'stop'\n    getattr(x, name)()\n",
    "threads": "import threading\nlock = threading.Lock()\nthreading.Thread(target=total, daemon=True).start()\n",
    "class": "def f(x):\n    return x.__class__.__name__, type(x).__mro__\n",
    "environment": "def f():\n    return os.environ.get('HOME'), os.getpid()\n",
    "ending": "import atexit\nimport signal\n\natexit.register(total)\n\ndef f():\n    os._exit(0)\n",
    "timer": "from timeit import default_timer\n",
    "streams": "def f(text):\n    sys.stdout.write(text)\n    return sys.version_info >= (3, 8), sys.platform\n",
}


@pytest.mark.parametrize("added", HARMLESS.values(), ids=HARMLESS)
def test_ordinary_code_passes(added: str):
    after = (FIXED + added).encode()
    changed = {"shop/cart.py": (OLD.encode(), after)}
    assert unverifiable_lines(changed, list(PACKAGE), lambda name: PACKAGE[name].encode()) == ()


@pytest.mark.parametrize("code", ["f = sys._getframe(1)\n", "exec('x')\n", "import gc\n", "x.__class__ = int\n"])
def test_what_the_file_or_its_package_used_before_passes(code: str):
    assert causes(code, before=OLD + code) == ()
    assert causes(code, package={"shop/deep/inner.py": f"import sys\n{code}", "shop/deep/__init__.py": ""}) == ()
    assert causes(code, package={"shop/native.py": f"import sys\nmatch = 3 3\n{code}"}) == () or code.startswith("x.")


@pytest.mark.parametrize("path", ["shop/tests/test_more.py", "elsewhere/module.py", "setup.py"])
def test_what_tests_and_other_packages_use_does_not_count(path: str):
    assert causes("import pytest\n", package={path: "import pytest\n"})


def test_what_a_removed_file_used_passes_where_it_goes_and_what_is_not_changed_is_not_looked_at():
    files = {"gone.py": (b"import gc\n", None), "same.py": (b"import gc\n", b"import gc\n")}
    assert unverifiable_lines(files, [], lambda _: b"") == ()
    changed = {"shop/moved.py": (None, b"import gc\n"), "old/gone.py": (b"import gc\n", None)}
    assert unverifiable_lines(changed, ["old/gone.py", "shop/__init__.py"], lambda _: b"") == ()


def test_another_use_than_the_package_had_is_found():
    found = causes("sys.settrace(sys._getframe)\n", package={"shop/other.py": "import sys\nsys._getframe()\n"})
    assert [line.split(" — ")[1] for line in found] == ["tracing: settrace"]


def test_the_package_is_read_when_a_file_begins_to_use_something_and_what_cannot_be_read_counts_as_empty():
    asked: list[str] = []

    def read(name: str) -> bytes:
        asked.append(name)
        raise FileNotFoundError(name)

    assert unverifiable_lines({"shop/cart.py": (OLD.encode(), FIXED.encode())}, list(PACKAGE), read) == ()
    assert asked == []
    assert unverifiable_lines({"shop/cart.py": (b"", b"import gc\n")}, list(PACKAGE), read)
    assert asked


UNPARSED = "type Price = int\nx = f'{'a'}'\n"
"""Python that is newer than the one that reads it."""


@pytest.mark.parametrize(
    "code",
    [
        "sys._getframe()",
        "exec('x')",
        "import gc",
        "from unittest import mock",
        "getattr(sys, '_get' + 'frame')",
        "getattr(sys, name)",
        "importlib.import_module(name)",
        "sys.modules['x'] = 1",
        "\uff45\uff58\uff45\uff43('')",
        "open('/pr' 'oc/self/mem')",
        "import tests.test_cart",
    ],
)
def test_python_of_another_version_is_read_as_words(code: str):
    assert causes(UNPARSED + code + "\n")
    assert causes(f"print 'two'\n{code}\n")
    assert causes(code + "\n", before=UNPARSED + code + "\n") == ()
    assert causes("y = re.compile('x')\n", before=UNPARSED) == ()


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("shop/fast.pyx", "from libc.stdlib cimport abort\nimport gc\n"),
        ("shop/fast.pyx", "cdef f():\n    sys._getframe()\n"),
        ("shop/fast.c", "PyFrameObject *f = PyEval_GetFrame();\n"),
        ("src/lib.rs", 'std::fs::write("/proc/self/mem", x)\n'),
        ("bin/run", "#!/usr/bin/env python3\nimport gc\n"),
        ("setup.py", "setup(entry_points={'pytest11': ['x = y']})\n"),
        ("setup.cfg", "[options.entry_points]\npytest11 =\n    x = y\n"),
        ("pyproject.toml", '[project.entry-points."pytest11"]\nx = "y"\n'),
        ("x.dist-info/entry_points.txt", "[pytest11]\nx = y\n"),
        ("shop/data.bin", "PK\x03\x04"),
        ("shop/data.png", "\x7fELF"),
        ("shop/fast.so", ""),
        ("zipped.zip", ""),
        ("start.pth", "import shop\n"),
    ],
)
def test_other_files_that_are_loaded_are_found(path: str, code: str):
    assert unverifiable_lines({path: (None, code.encode())}, [], lambda _: b"")


def test_other_files_pass():
    for path, code in {
        "README.md": "    import pytest\n    sys._getframe()\n",
        "shop/py.typed": "",
        "shop/cart.pyi": "import unittest\n",
        "shop/data.json": '{"x": "/proc/self"}',
        "shop/logo.png": "\x89PNG\r\n\0",
        "shop/fast.c": "Py_BEGIN_ALLOW_THREADS PyEval_SaveThread(); return Py_None;\n",
        "pyproject.toml": "[tool.mypy]\nexclude = ['tests/']\n",
    }.items():
        assert unverifiable_lines({path: (None, code.encode("latin-1"))}, [], lambda _: b"") == ()


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "source",
    [
        "x = " + "-" * 100_000 + "1",
        "x = " + "(" * 5_000 + ")" * 5_000,
        "x = " + " + ".join(["'a'"] * 20_000),
        "x = " + "a." * 20_000 + "b",
        "x = " + "y + " * 900 + "1\n" + "z = x\n" * 900,
        "x = " + "'a' * " * 900 + "1",
        "x = " + "f(" * 90 + ")" * 90,
        "x = '" + "y" * 1_000_000 + "'",
        "\0\0",
        "# coding: nothing\nimport gc",
        "def f(:\n",
        "\ud800",
    ],
    ids=range(12),
)
def test_source_of_any_shape_is_read(source: str):
    data = source.encode("utf-8", "surrogatepass")
    unverifiable_lines({"a.py": (None, data), "b.pyx": (data, b"import gc\n")}, ["a.py"], lambda _: data)


@given(st.binary(max_size=200), st.binary(max_size=200), st.sampled_from(["a.py", "b.pyx", "c.c", "d", "setup.cfg"]))
def test_bytes_of_any_kind_are_read(before: bytes, after: bytes, path: str):
    unverifiable_lines({path: (before, after)}, [path], lambda _: before)


CODES = st.sampled_from([code for codes in KINDS.values() for code in codes])


@given(CODES, st.sampled_from(list(HARMLESS.values())))
def test_a_cause_is_found_wherever_it_stands(code: str, harmless: str):
    assume("compile" not in code or "compile" not in harmless)  # It may be redefined there.
    inside = "".join(f"        {line}\n" for line in code.split("\n"))
    assert causes(f"{harmless}\n\nclass C:\n    def f(self):\n{inside}")
