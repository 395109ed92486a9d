"""Breakpoints are hit alike, whether tracing begins with the program or as late as they allow."""

from __future__ import annotations

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

    return inner


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
NAMES = [
    *("plain", "declared", "documented", "one_line", "looping", "outer", "inner", "keep", "generator"),
    *("recursive", "spread", "spread_at_once", "decorated", "started", "caught", "Kind", "method", "awaited", "waits"),
]
FROM_THE_START = "catch NoSuchException"
"""With something else to stop at than breakpoints, tracing begins with pytest."""


def _lines_of(name: str) -> list[int]:
    """The lines of a function, by its name in SHAPES."""
    lines = SHAPES.split("\n")
    first = next(number for number, line in enumerate(lines) if f" {name}" in line and line.lstrip()[:1] in "dca")
    rest = lines[first + 1 :]
    ends = (number for number, line in enumerate(rest) if line and not line.startswith(" "))
    return [first + 1 + number for number in range(next(ends, len(rest)) + 1) if lines[first + number].strip()]


def _write_shapes(project: Path) -> None:
    (project / "test_cart.py").unlink()
    script(project, SHAPES, "shapes.py")
    script(project, SHAPE_TESTS, "test_shapes.py")


def _seen(start: Start, *commands: str) -> list[tuple[int, int]]:
    """What a run to its end logged, in order: each line, and for the how manieth time."""
    reply = start(*PYTEST, "-s").do(*commands, "c")
    result = reply["results"][-1]
    assert (reply["state"], result.get("log_dropped", 0)) == ("exited", 0)
    return [(each["line"], each["hit"]) for each in result.get("log", ())]


@pytest.mark.parametrize("names", [NAMES[first::7] for first in range(7)], ids=" ".join)
def test_every_line_of_functions_is_hit_as_if_traced_from_the_start(
    start: Start, project: Path, names: list[str]
) -> None:
    _write_shapes(project)
    logs = [f"log shapes.py:{line}, 1" for name in names for line in _lines_of(name)]
    late = _seen(start, *logs)
    assert late == _seen(start, FROM_THE_START, *logs)
    lines = {line for line, _ in late}
    assert all(lines & set(_lines_of(name)) for name in names)


def test_a_stop_knows_how_often_its_test_was_there(start: Start, project: Path) -> None:
    script(project, "def add(n):\n    m = n + 1\n    return m\n", "late.py")
    text = "from late import add\n\ndef test_a():\n    add(0)\n\ndef test_b():\n    add(1)\n    add(2)\n"
    script(project, text, "test_a.py")
    driver = start(*PYTEST, "test_a.py")
    reply = driver.do("b late.py:2, n == 2", "c", "p n")
    assert place(reply) == ("breakpoint", "late.py", 2, "add")
    assert (reply["stop"]["test"], reply["stop"]["time"]) == ("test_a.py::test_b", 2)
    assert [frame["function"] for frame in reply["frames"]] == ["test_b", "add"]
    assert reply["results"][-1]["output"] == "n = 2"


def test_stepping_in_does_not_stop_twice(start: Start, project: Path) -> None:
    script(project, 'def add(n):\n    """Adds."""\n    m = n + 1\n    return m\n', "late.py")
    script(project, "import late\n\ndef test_add():\n    late.add(1)\n    late.add(2)\n", "test_a.py")
    driver = start(*PYTEST, "test_a.py")
    driver.do("b late.py:4", "b test_a.py:5", "c", "c")
    stops = [place(driver.do("s")) for _ in range(3)]
    assert [stop[1:3] for stop in stops] == [("late.py", 3), ("late.py", 4), ("late.py", 4)]


def test_a_generator_that_is_entered_while_something_else_is_traced(start: Start, project: Path) -> None:
    module = "def add(n):\n    return n + 1\n\n\ndef each():\n    yield 1\n    yield 2\n    yield 3\n"
    script(project, module, "late.py")
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
    script(project, text, "test_a.py")
    logs = [f"log late.py:{line}, 1" for line in (2, 6, 7, 8)]
    reply = start(*PYTEST, "test_a.py").do(*logs, "c")
    assert [each["line"] for each in reply["results"][-1]["log"]] == [2, 6, 7, 8]


def test_expressions_of_breakpoints_set_off_no_others(start: Start, project: Path) -> None:
    script(project, "def double(n):\n    return 2 * n\n\n\ndef add(n):\n    return n + 1\n", "late.py")
    script(project, "import late\n\ndef test_add():\n    late.add(1)\n", "test_a.py")
    driver = start(*PYTEST, "test_a.py")
    reply = driver.do("b late.py:2", "log late.py:6, double(n)", "b late.py:6, double(n) == 2", "c")
    assert place(reply) == ("breakpoint", "late.py", 6, "add")
    assert [(each["line"], each["value"]) for each in reply["results"][-1]["log"]] == [(6, "2")]
