"""Logpoints, watchpoints, stops on exceptions, steps through coroutines. No sandbox: the injected debugger alone."""

from __future__ import annotations

import pytest

from support.tools.driver import Start


def test_many_values_of_a_logpoint_are_bounded(start_script: Start) -> None:
    driver = start_script("for number in range(1000):\n    double = number * 2\n")
    going = driver.do("log script.py:2, number", "c")["results"][-1]
    lines = going["output"].splitlines()
    assert (lines[0], lines[10], lines[-1]) == (
        "script.py:2 number = 0",
        "[... 980 more values ...]",
        "script.py:2 number = 999",
    )
    assert (len(lines), len(going["log"]), going["log_dropped"]) == (21, 200, 800)


WATCHED = """\
class Box:
    size = 0


def fill(box, count):
    for number in range(count):
        grow(box, number)
    box.size *= 2
    return box


def grow(box, number):
    if number % 2:
        box.size += number


box = fill(Box(), 4)
print(box.size)
"""
CATCHING = """\
def parse(text):
    try:
        return int(text)
    except ValueError:
        return lookup(text)


def lookup(text):
    return {"one": 1}[text]


def total(texts):
    try:
        return sum(parse(text) for text in texts)
    finally:
        done = True


try:
    total(["2", "one", "two"])
except LookupError:
    pass
"""
ASYNC = """\
import asyncio


async def inner(number):
    await asyncio.sleep(0)
    return number + 1


async def produce(count):
    for number in range(count):
        await asyncio.sleep(0)
        yield number


async def outer():
    one = await inner(1)
    two = await inner(2)
    async for number in produce(1):
        one += number
    return one + two


async def other():
    for _ in range(5):
        await asyncio.sleep(0)


async def main():
    return await asyncio.gather(outer(), other(), other())


loop = asyncio.new_event_loop()
print(loop.run_until_complete(main()))
loop.close()
"""
CATCH_ODD = "class Odd(Exception): pass\n" + CATCHING + "try: raise Odd\nexcept Odd: pass\n"
IN_FILL = [("tbreak fill", "breakpoint 1 at script.py:6 (temporary)"), ("c", "breakpoint script.py:6 fill")]
IN_OUTER = [("b outer", "breakpoint 1 at script.py:16"), ("c", "breakpoint script.py:16 outer")]
CONVERSATIONS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "a watch stops where the value changes, also in calls": (
        WATCHED,
        [
            *IN_FILL,
            ("watch box.size", "watch 1 box.size in fill: 0"),
            ("c", "watch script.py:14 grow: box.size: 0 -> 1, by script.py:14"),
            ("c", "watch script.py:14 grow: box.size: 1 -> 4, by script.py:14"),
            ("c", "watch script.py:9 fill: box.size: 4 -> 8, by script.py:8"),
            ("c", "watch script.py:9 fill: fill ends, and so does the watch: box.size is 8"),
            ("watch", "no watches"),
            ("c", ""),
        ],
    ),
    "a watch of a name that comes later": (
        WATCHED,
        [
            *IN_FILL,
            ("watch number", "watch 1 number in fill: undefined"),
            ("watch 1 +", "expression '1 +': ..."),
            ("c", "watch script.py:7 fill: number: undefined -> 0, by script.py:6"),
            ("c", "watch script.py:7 fill: number: 0 -> 1, by script.py:6"),
            ("watch", "watch 1 number in fill"),
            ("unwatch 7", "no watch 7"),
            ("unwatch 1", "deleted 1"),
            ("watch", "no watches"),
            ("c", ""),
        ],
    ),
    "every exception": (
        CATCHING,
        [
            ("catch", "breakpoint 1 on any exception"),
            ("c", "raised script.py:3 parse: ValueError: ..."),
            ("c", "raised script.py:3 parse: ValueError: ..."),
            ("c", "raised script.py:9 lookup: KeyError: 'two'"),
            ("p text", "text = 'two'"),
            ("c", ""),
        ],
    ),
    "exceptions by their base classes, with a condition": (
        CATCHING,
        [
            ("catch LookupError", "breakpoint 1 on LookupError"),
            ("catch builtins.ValueError, text == 'two'", "breakpoint 2 on builtins.ValueError (if text == 'two')"),
            ("b", "breakpoint 1 on LookupError\nbreakpoint 2 on builtins.ValueError (if text == 'two')"),
            ("c", "raised script.py:3 parse: ValueError: ..."),
            ("c", "raised script.py:9 lookup: KeyError: 'two'"),
            ("cl 1", "deleted breakpoint 1"),
            ("c", ""),
        ],
    ),
    "an exception that is not loaded, and a condition that fails": (
        CATCH_ODD,
        [
            ("catch Odd", "breakpoint 1 on Odd: no exception of this name is loaded so far"),
            ("catch LookupError, nothing > 3", "breakpoint 2 on LookupError (if nothing > 3)"),
            ("c", "raised script.py:10 lookup: condition failed: NameError: name 'nothing' is not defined"),
            ("c", "raised script.py:24 <module>: Odd"),
        ],
    ),
    "after finally, a raising function is left": (
        CATCHING,
        [
            ("b script.py:16", "breakpoint 1 at script.py:16"),
            ("c", "breakpoint script.py:16 total"),
            ("n", "exception script.py:20 <module>: KeyError: 'two'"),
            ("n", "step script.py:21 <module>"),
        ],
    ),
    "next steps over await and stays in the coroutine": (
        ASYNC,
        [
            *IN_OUTER,
            *(("n", f"step script.py:{line} outer") for line in (17, 18, 19, 18, 20)),
            ("n", "return script.py:20 outer"),
        ],
    ),
    "step goes into coroutines and waits with them": (
        ASYNC,
        [
            *IN_OUTER,
            ("cl", "deleted breakpoint 1"),
            ("s", "step script.py:5 inner"),
            ("s", "step script.py:6 inner"),
            ("s", "return script.py:6 inner"),
            ("s", "step script.py:17 outer"),
            ("n", "step script.py:18 outer"),
            ("s", "step script.py:10 produce"),
            ("s", "step script.py:11 produce"),
            ("s", "step script.py:12 produce"),
            ("s", "step script.py:19 outer"),
            ("s", "step script.py:18 outer"),
        ],
    ),
    "a watch lives on while its coroutine waits": (
        ASYNC,
        [
            *IN_OUTER,
            ("watch two", "watch 1 two in outer: undefined"),
            ("c", "watch script.py:18 outer: two: undefined -> 3, by script.py:17"),
            ("c", "watch script.py:20 outer: outer ends, and so does the watch: two is 3"),
        ],
    ),
    "a breakpoint within a statement stops at the statement": (
        "w = 1\nx = dict(\n    a=w,\n    # a comment\n    b=2,\n)\ny = 3\n",
        [
            ("b script.py:4", "breakpoint 1 at script.py:2"),
            ("c", "breakpoint script.py:2 <module>"),
            ("p x", "NameError: name 'x' is not defined"),
        ],
    ),
}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversation(start_script: Start, name: str) -> None:
    program, conversation = CONVERSATIONS[name]
    start_script(program).check(*conversation)
