"""Breakpoints are hit alike, whether tracing begins with the program or as late as they allow."""

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
        pass
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
    shapes.plain(n)
    shapes.declared()
    shapes.documented()
    shapes.one_line(n)
    shapes.looping(n)
    shapes.outer(n)
    shapes.recursive(n)
    shapes.spread(n)
    shapes.spread_at_once(n)
    shapes.decorated()
    shapes.caught()
    shapes.waits()
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
    text = """\
        import late

        EACH = late.each()

        def test_a():
            late.add(1)
            next(EACH)

        def test_b():
            next(EACH)

        def test_c():
            next(EACH)
    """
    reply = start_test(text, module).do(*(f"log late.py:{line}, 1" for line in (2, 6, 7, 8)), "c")
    assert [each["line"] for each in reply["results"][-1]["log"]] == [2, 6, 7, 8]


def test_expressions_of_breakpoints_set_off_no_others(start_test: Start) -> None:
    module = "def double(n):\n    return 2 * n\n\n\ndef add(n):\n    return n + 1\n"
    driver = start_test("import late\n\ndef test_add():\n    late.add(1)\n", module)
    driver.do("b late.py:2", "log late.py:6, double(n)", "b late.py:6, double(n) == 2")
    driver.check(("c", "late.py:6 double(n) = 2\nbreakpoint late.py:6 add"))
