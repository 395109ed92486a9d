"""Logpoints, watchpoints, stops on exceptions, steps through coroutines. No sandbox: the injected debugger alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.tools.driver import PYTEST, Driver, Start, place, script


def test_logpoints_note_values_and_do_not_stop(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do(
        "log cart.py:17, item", "log cart.py:17, total + nothing", "b cart.py:18", "condition 1 item", "c"
    )
    assert [each["output"] for each in reply["results"][:2]] == [
        "logpoint 1 at cart.py:17, item",
        "logpoint 2 at cart.py:17, total + nothing",
    ]
    going = reply["results"][-1]
    assert going["output"].splitlines() == [
        "cart.py:17 item = 3",
        "cart.py:17 total + nothing = NameError: name 'nothing' is not defined",
        "cart.py:17 total + nothing = NameError: name 'nothing' is not defined",
    ]
    assert place(reply)[0] == "post-mortem"
    assert going["log"][0] == {"path": "cart.py", "line": 17, "number": 1, "hit": 1, "expression": "item", "value": "3"}
    assert driver.outputs("log cart.py:17", "log cart.py:17, 1 +")[0].startswith("give a place and an expression")


def test_many_values_of_a_logpoint_are_bounded(start: Start, project: Path) -> None:
    script(project, "for number in range(1000):\n    double = number * 2\n")
    reply = start("script.py").do("log script.py:2, number", "c")
    going = reply["results"][-1]
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


def stops(reply: dict[str, Any]) -> list[tuple[str, int, str]]:
    found = [each["stop"] for each in reply["results"] if each.get("stop")]
    return [(stop["function"], stop["line"], stop.get("note", "")) for stop in found]


def test_a_watch_stops_where_the_value_changes_also_in_calls(start: Start, project: Path) -> None:
    script(project, WATCHED)
    driver = start("script.py")
    assert driver.do("tbreak fill", "c", "watch box.size")["results"][-1]["output"] == "watch 1 box.size in fill: 0"
    reply = driver.do("c", "c", "c", "c")
    assert stops(reply) == [
        ("grow", 14, "box.size: 0 -> 1, by script.py:14"),
        ("grow", 14, "box.size: 1 -> 4, by script.py:14"),
        ("fill", 9, "box.size: 4 -> 8, by script.py:8"),
        ("fill", 9, "fill ends, and so does the watch: box.size is 8"),
    ]
    assert reply["results"][0]["stop"]["watch"]["before"] == "0"
    assert driver.outputs("watch") == ["no watches"]
    assert driver.do("c")["state"] == "exited"


def test_watches_of_names_that_come_later_and_wrong_ones(start: Start, project: Path) -> None:
    script(project, WATCHED)
    driver = start("script.py")
    assert driver.outputs("watch x") == ["the program is not started: set breakpoints, then c"]
    reply = driver.do(
        "tbreak fill", "c", "watch number", "watch 1 +", "c", "c", "watch", "unwatch 7", "unwatch 1", "watch", "c"
    )
    assert stops(reply)[1:3] == [
        ("fill", 7, "number: undefined -> 0, by script.py:6"),
        ("fill", 7, "number: 0 -> 1, by script.py:6"),
    ]
    outputs = [each["output"] for each in reply["results"]]
    assert outputs[3].startswith("expression '1 +': ")
    assert outputs[6:9] == ["watch 1 number in fill", "no watch 7", "deleted 1"]
    assert outputs[9] == "no watches"
    assert reply["state"] == "exited"


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


def test_exceptions_are_stopped_at_where_they_are_raised(start: Start, project: Path) -> None:
    script(project, CATCHING)
    reply = start("script.py").do("catch KeyError", "c", "p text", "c")
    assert reply["results"][0]["output"] == "breakpoint 1 on KeyError"
    stop = reply["results"][1]["stop"]
    assert (stop["reason"], stop["line"], stop["exception"]) == ("raised", 9, "KeyError: 'two'")
    assert reply["results"][2]["output"] == "text = 'two'"
    assert reply["state"] == "exited"


def test_every_exception_with_a_condition_and_base_classes(start: Start, project: Path) -> None:
    script(project, CATCHING)
    reply = start("script.py").do("catch", "c", "c", "c", "c")
    assert [each["stop"]["exception"].partition(":")[0] for each in reply["results"] if each.get("stop")] == [
        "ValueError",
        "ValueError",
        "KeyError",
    ]
    driver = start("script.py")
    reply = driver.do("catch LookupError", "catch builtins.ValueError, text == 'two'", "b", "c", "c", "cl 1", "c")
    assert reply["results"][2]["output"].splitlines() == [
        "breakpoint 1 on LookupError",
        "breakpoint 2 on builtins.ValueError (if text == 'two')",
    ]
    assert [stop[:2] for stop in stops(reply)] == [("parse", 3), ("lookup", 9)]
    assert driver_says(start("script.py"), "catch 3") == "give the name of an exception: catch KeyError"


def test_an_exception_that_is_not_loaded_and_a_condition_that_fails(start: Start, project: Path) -> None:
    script(project, "class Odd(Exception): pass\n" + CATCHING + "try: raise Odd\nexcept Odd: pass\n")
    reply = start("script.py").do("catch Odd", "catch LookupError, nothing > 3", "c", "c")
    outputs = [each["output"] for each in reply["results"][:2]]
    assert outputs == [
        "breakpoint 1 on Odd: no exception of this name is loaded so far",
        "breakpoint 2 on LookupError (if nothing > 3)",
    ]
    first, second = (each["stop"] for each in reply["results"][2:])
    assert first["note"] == "condition failed: NameError: name 'nothing' is not defined"
    assert (second["exception"].partition(":")[0], second.get("note")) == ("Odd", None)


def driver_says(driver: Driver, line: str) -> str:
    return str(driver.outputs(line)[0])


def test_log_and_catch_points_come_back_from_the_host(start: Start) -> None:
    table = start(*PYTEST).do("log cart.py:11, item", "catch TypeError", "ignore 2 1")["breakpoints"]
    driver = start(*PYTEST)
    assert driver.request(breakpoints=table)["breakpoints"] == table
    reply = driver.do("c")
    assert reply["results"][-1]["output"].splitlines() == ["cart.py:11 item = 3", "cart.py:11 item = None"]
    assert place(reply)[0] == "post-mortem"


def test_after_finally_a_raising_function_is_left(start: Start, project: Path) -> None:
    script(project, CATCHING)
    driver = start("script.py")
    reply = driver.do("b script.py:16", "c", "n", "n")
    assert [stop[:2] for stop in stops(reply)] == [("total", 16), ("<module>", 20), ("<module>", 21)]


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


def test_next_steps_over_await_and_stays_in_the_coroutine(start: Start, project: Path) -> None:
    script(project, ASYNC)
    reply = start("script.py").do("b outer", "c", *["n"] * 6)
    assert [stop[:2] for stop in stops(reply)] == [("outer", line) for line in (16, 17, 18, 19, 18, 20, 20)]
    assert place(reply)[0] == "return"


def test_step_goes_into_coroutines_and_waits_with_them(start: Start, project: Path) -> None:
    script(project, ASYNC)
    reply = start("script.py").do("b outer", "c", "cl", "s", "s", "s", "s", "n", "s", "s", "s", "s", "s")
    assert [stop[:2] for stop in stops(reply)] == [
        ("outer", 16),
        ("inner", 5),
        ("inner", 6),
        ("inner", 6),
        ("outer", 17),
        ("outer", 18),
        ("produce", 10),
        ("produce", 11),
        ("produce", 12),
        ("outer", 19),
        ("outer", 18),
    ]


def test_a_watch_lives_on_while_its_coroutine_waits(start: Start, project: Path) -> None:
    script(project, ASYNC)
    reply = start("script.py").do("b outer", "c", "watch two", "c", "c")
    assert [stop[::2] for stop in stops(reply)][1:] == [
        ("outer", "two: undefined -> 3, by script.py:17"),
        ("outer", "outer ends, and so does the watch: two is 3"),
    ]


def test_a_breakpoint_within_a_statement_stops_at_the_statement(start: Start, project: Path) -> None:
    script(project, "w = 1\nx = dict(\n    a=w,\n    # a comment\n    b=2,\n)\ny = 3\n")
    reply = start("script.py").do("b script.py:4", "c", "p x")
    assert reply["results"][0]["output"] == "breakpoint 1 at script.py:2"
    assert reply["results"][2]["output"] == "NameError: name 'x' is not defined"
