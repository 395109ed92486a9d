"""Breakpoints are hit alike, whether tracing begins with the program or late, and no program notices."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.tools.driver import PYTEST, Start, place, script

SHAPES = '''\
"""Functions that are entered, left and entered again in many ways."""
import threading

KEPT = []

def plain(n):
    """A docstring, which is no statement."""
    m = n + 1
    return m

def declared():
    global TOTAL
    TOTAL = 1
    return TOTAL

def documented():
    """Nothing but this."""

def one_line(n): return n + 1

def looping(n):
    while n:
        n -= 1
    return n

def outer(n):
    def inner(m):
        return m * 2

    return inner(n) + sum([
        each
        for each in range(n)
    ])

def keep():
    KEPT.append(lambda n:
        n + 3)
    return (
        each + 1
        for each in range(3)
    )

def generator(n):
    for each in range(n):
        yield each

def recursive(n):
    if n:
        recursive(n - 1)
    return n

def started(n):
    thread = threading.Thread(target=plain, args=(n,))
    thread.start()
    thread.join()

def spread(n):
    x = {
        "a": n,
        "b": [
            n
        ],
    }
    if (
        n
        and x
    ):
        return (
            n
            + 1
        )

def spread_at_once(n):
    return [
        n,
        (
            n + 1
        ),
    ]

def decorated():
    @staticmethod
    def inner():
        return 1

    return inner.__func__()

def caught():
    try:
        raise ValueError
    except ValueError:
        return 1

class Kind:
    size = len([
        each
        for each in range(2)
    ])
    def method(self):
        class Local:
            size = 1
        return Local.size
    @property
    def doubled(self): return 2 * self.method()

async def awaited(n):
    return n

def waits():
    try:
        awaited(1).send(None)
    except StopIteration as end:
        return end.value
'''
SHAPE_TESTS = """\
import pytest
import shapes

GENERATOR = shapes.generator(6)
ESCAPED = []

@pytest.mark.parametrize("n", range(3))
def test_all(n):
    for shape in ("plain", "one_line", "looping", "outer", "recursive", "spread", "spread_at_once"):
        getattr(shapes, shape)(n)
    for shape in ("declared", "documented", "decorated", "caught", "waits"):
        getattr(shapes, shape)()
    assert shapes.Kind().doubled == 2

@pytest.mark.parametrize("n", range(3))
def test_across_tests(n):
    if not ESCAPED:
        ESCAPED.append(shapes.keep())
    next(ESCAPED[0])
    next(GENERATOR)
    shapes.KEPT[0](n)

def test_thread():
    shapes.started(3)

def test_after_the_thread():
    shapes.plain(3)
    shapes.recursive(1)
"""
FUNCTIONS = [
    node
    for node in ast.walk(ast.parse(SHAPES))
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
]
FROM_THE_START = "catch NoSuchException"
"""With something else to stop at than breakpoints, tracing begins with pytest."""


def _lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[int]:
    first = min(each.lineno for each in (function, *function.decorator_list))
    last = function.end_lineno or first
    return [line for line in range(first, last + 1) if SHAPES.split("\n")[line - 1].strip()]


def _seen(start: Start, *commands: str) -> list[tuple[int, int]]:
    """What a run to its end logged, in order: each line, and for the how manieth time."""
    reply = start(*PYTEST, "-s", "test_shapes.py").do(*commands, "c")
    result = reply["results"][-1]
    assert (reply["state"], result.get("log_dropped", 0)) == ("exited", 0)
    return [(each["line"], each["hit"]) for each in result.get("log", ())]


@pytest.mark.parametrize("first", range(7))
def test_every_line_of_functions_is_hit_as_if_traced_from_the_start(start: Start, project: Path, first: int) -> None:
    script(project, SHAPES, "shapes.py")
    script(project, SHAPE_TESTS, "test_shapes.py")
    functions = FUNCTIONS[first::7]
    logs = [f"log shapes.py:{line}, 1" for function in functions for line in _lines_of(function)]
    late = _seen(start, *logs)
    assert late == _seen(start, FROM_THE_START, *logs)
    lines = {line for line, _ in late}
    assert all(lines & {*_lines_of(function)} for function in functions)


def test_a_stop_knows_how_often_its_test_was_there(start_test: Start) -> None:
    text = "from late import add\n\ndef test_a():\n    add(0)\n\ndef test_b():\n    add(1)\n    add(2)\n"
    reply = start_test(text, "def add(n):\n    m = n + 1\n    return m\n").do("b late.py:2, n == 2", "c", "p n")
    assert place(reply) == ("breakpoint", "late.py", 2, "add")
    assert (reply["stop"]["test"], reply["stop"]["time"]) == ("test_late.py::test_b", 2)
    assert [frame["function"] for frame in reply["frames"]] == ["test_b", "add"]
    assert reply["results"][-1]["output"] == "n = 2"


def test_stepping_in_does_not_stop_twice(start_test: Start) -> None:
    module = 'def add(n):\n    """Adds."""\n    m = n + 1\n    return m\n'
    driver = start_test("import late\n\ndef test_add():\n    late.add(1)\n    late.add(2)\n", module)
    driver.do("b late.py:4", "b test_late.py:5", "c", "c")
    driver.check(("s", "step late.py:3 add"), ("s", "breakpoint late.py:4 add"), ("s", "return late.py:4 add"))


def test_a_generator_that_is_entered_while_something_else_is_traced(start_test: Start) -> None:
    module = "def add(n):\n    return n + 1\n\n\ndef each():\n    yield 1\n    yield 2\n    yield 3\n"
    text = (
        "import late\n\nEACH = late.each()\n\ndef test_a():\n    late.add(1)\n    next(EACH)\n\n"
        "def test_b():\n    next(EACH)\n\ndef test_c():\n    next(EACH)\n"
    )
    reply = start_test(text, module).do(*(f"log late.py:{line}, 1" for line in (2, 6, 7, 8)), "c")
    assert [each["line"] for each in reply["results"][-1]["log"]] == [2, 6, 7, 8]


def test_expressions_of_breakpoints_set_off_no_others(start_test: Start) -> None:
    module = "def double(n):\n    return 2 * n\n\n\ndef add(n):\n    return n + 1\n"
    driver = start_test("import late\n\ndef test_add():\n    late.add(1)\n", module)
    driver.do("b late.py:2", "log late.py:6, double(n)", "b late.py:6, double(n) == 2")
    driver.check(("c", "late.py:6 double(n) = 2\nbreakpoint late.py:6 add"))


UNDISTURBED = {
    "nothing is traced before a function with a breakpoint or between tests": """\
        import sys
        import late

        COLLECTED = sys.gettrace()

        def test_before():
            assert COLLECTED is None
            assert sys.gettrace() is None

        def test_add():
            late.add(1)
            assert sys.gettrace() is not None

        def test_after():
            assert sys.gettrace() is None
    """,
    "a program that traces its threads, profiles, and traces itself keeps its functions": """\
        import sys, threading
        import late

        CALLED, EVENTS = [], []

        def trace(frame, event, arg):
            EVENTS.append(frame.f_code)

        def run_in_thread(function, *arguments):
            thread = threading.Thread(target=function, args=arguments)
            thread.start()
            thread.join()

        def test_before():
            late.add(1)
            threading.settrace(trace)

        def test_after():
            run_in_thread(late.add, 1)
            assert late.add.__code__ in EVENTS
            threading.settrace(None)

        def test_profile():
            sys.setprofile(lambda frame, event, arg: CALLED.append(frame.f_code.co_name) if event == "call" else None)
            late.add(2)
            sys.setprofile(None)
            assert CALLED == ["add"]

        def test_before_it_traces_itself():
            late.add(3)
            EVENTS.clear()
            sys.settrace(trace)
            late.add(4)

        def test_after_it_traces_itself():
            late.add(5)
            run_in_thread(int)
            assert sys.gettrace() is trace
            assert EVENTS.count(late.add.__code__) == 2
            sys.settrace(None)
    """,
}


@pytest.mark.parametrize("name", UNDISTURBED)
def test_programs_do_not_notice(start_test: Start, name: str) -> None:
    reply = start_test(UNDISTURBED[name]).do("b late.py:2, n == 7", "log late.py:2, n", "c")
    assert (reply["state"], reply["exit_code"]) == ("exited", 0)
    logged = [each["value"] for each in reply["results"][-1]["log"]]
    assert logged == (["1", "2", "3"] if "itself" in name else ["1"])


def test_what_warns_when_it_is_compiled_warns_once(start_test: Start) -> None:
    driver = start_test("import late\n\ndef test_add():\n    late.add(2)\n", "def add(n):\n    return n is 1\n")
    driver.check(("b late.py:2", "breakpoint 1 at late.py:2"), ("c", "breakpoint late.py:2 add"), ("c", ""))
    assert driver.printed.count("SyntaxWarning") == 1


LOADER = """
import importlib.machinery, os, sys

class Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, **options):
        return super().source_to_code(data.replace(b"+ 1", b"+ 100"), path, **options)

def find(folder):
    if folder != os.getcwd():
        raise ImportError
    return importlib.machinery.FileFinder(folder, (Loader, [".py"]))

sys.path_hooks.insert(0, find)
sys.path_importer_cache.clear()
"""
IMPORTS = {
    "by another thread": """\
        import threading
        def test_it():
            thread = threading.Thread(target=__import__, args=("late",))
            thread.start()
            thread.join()
            import late
            assert late.add(1) == 2
    """,
    "while it is traced": "import sys\nsys.settrace(lambda *_: None)\nimport late\n\ndef test_it():\n    late.add(1)\n",
    "with another loader": "import late\n\ndef test_it():\n    assert late.add(1) == 101\n",
}


@pytest.mark.parametrize("how", IMPORTS)
def test_a_module_is_imported(start_test: Start, project: Path, how: str) -> None:
    if "loader" in how:
        script(project, LOADER, "conftest.py")
    driver = start_test(IMPORTS[how])
    assert place(driver.do("b late.py:2", "c")) == ("breakpoint", "late.py", 2, "add")
    assert driver.do("c")["exit_code"] == 0


def test_a_breakpoint_in_a_conftest_and_an_exception_elsewhere_later(start_test: Start, project: Path) -> None:
    configure = "def pytest_configure(config):\n    config.value = 1\n"
    script(project, f"import pytest\n{configure}\n@pytest.fixture\ndef one():\n    return 1\n", "conftest.py")
    tests = """\
        import late
        def test_first(one):
            try:
                late.fail()
            except KeyError:
                pass
        def test_second(one):
            test_first(one)
    """
    driver = start_test(tests, "def fail():\n    raise KeyError('x')\n")
    driver.do("b conftest.py:1", "b conftest.py:3", "b conftest.py:7")
    driver.check(
        ("c", "breakpoint conftest.py:1 <module>"),
        ("c", "breakpoint conftest.py:3 pytest_configure"),
        ("c", "breakpoint conftest.py:7 one"),
        ("c", "breakpoint conftest.py:7 one"),
        ("catch KeyError", "breakpoint 4 on KeyError"),
        ("c", "raised late.py:2 fail: KeyError: 'x'"),
    )
    assert driver.do("c")["exit_code"] == 0
