"""Conversations about a small project: each command, and what it answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tools.driver import PYTEST, Start, place, script

Conversation = list[tuple[str, str]]
NOT_STARTED = "the program is not started: set breakpoints, then c"
TYPE_ERROR = "TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'"
IN_TOTAL = [("b cart.py:17", "breakpoint 1 at cart.py:17"), ("c", "breakpoint cart.py:17 total")]
CONVERSATIONS: dict[str, Conversation] = {
    "a breakpoint moves down to code, and a def means its body": [
        ("b cart.py:13", "breakpoint 1 at cart.py:15"),
        ("b cart.py:9", "breakpoint 2 at cart.py:11"),
        ("b cart.py:8", "breakpoint 2 at cart.py:11"),
        ("b cart.py:1000", "cart.py has only 30 lines"),
        ("b nothing.py:1", "no file nothing.py"),
    ],
    "breakpoints by function": [
        ("b collect", "breakpoint 1 at cart.py:27"),
        ("b cart.py:Cart.price", "breakpoint 2 at cart.py:11"),
        ("b Cart.total", "breakpoint 3 at cart.py:15"),
        ("b cart.numbers", "breakpoint 4 at cart.py:22"),
        ("b nothing", "no function nothing in the workspace"),
        ("c", "breakpoint cart.py:15 total"),
        ("b self.price", "breakpoint 2 at cart.py:11"),
    ],
    "breakpoints are switched, changed and deleted": [
        ("b cart.py:15", "breakpoint 1 at cart.py:15"),
        ("disable 1", "breakpoint 1 at cart.py:15 (disabled)"),
        ("enable 1", "breakpoint 1 at cart.py:15"),
        ("condition 1 total == 7", "breakpoint 1 at cart.py:15 (if total == 7)"),
        ("condition 1", "breakpoint 1 at cart.py:15"),
        ("cl cart.py:15", "deleted breakpoint 1"),
        ("b", "no breakpoints"),
        ("cl", "deleted nothing"),
    ],
    "commands that are wrong": [
        ("b cart.py:15, total =", "condition 'total =': ..."),
        ("b 3", "give a file: b FILE:LINE"),
        ("disable 9", "no breakpoint 9"),
        ("cl x", "'x' is no number. Usage: clear NUMBER"),
        ("enable", "give a number: enable NUMBER"),
        ("tbreak", "give a place: tbreak FILE:LINE"),
        ("ignore 1 x", "no breakpoint 1"),
        ("log cart.py:17", "give a place and an expression..."),
        ("log cart.py:17, 1 +", "expression '1 +': ..."),
        ("catch 3", "give the name of an exception: catch KeyError"),
    ],
    "before the start": [(command, NOT_STARTED) for command in ("w", "p 1", "j 3", "until 4", "x = 1", "u", "watch x")]
    + [("n", "step test_cart.py:1 <module>")],
    "a condition that fails stops": [
        ("b cart.py:15 if nothing > 3", "breakpoint 1 at cart.py:15 (if nothing > 3)"),
        ("c", "breakpoint cart.py:15 total: condition failed: NameError: name 'nothing' is not defined"),
    ],
    "stepping over, into and out": [
        ("b cart.py:16", "breakpoint 1 at cart.py:16"),
        ("c", "breakpoint cart.py:16 total"),
        ("n", "step cart.py:17 total"),
        ("s", "step cart.py:11 price"),
        ("r", "return cart.py:12 price"),
        ("retval", "returns 6"),
        ("p __return__", "__return__ = '6'"),
        ("n", "breakpoint cart.py:16 total"),
    ],
    "an exception met while stepping": [
        ("b cart.py:17, item is None", "breakpoint 1 at cart.py:17 (if item is None)"),
        ("c", "breakpoint cart.py:17 total"),
        ("n", f"exception cart.py:17 total: {TYPE_ERROR}"),
    ],
    "frames": [
        ("b cart.py:11", "breakpoint 1 at cart.py:11"),
        ("c", "breakpoint cart.py:11 price"),
        (
            "w",
            "  test_cart.py:8 in test_total: assert cart.total() == 6\n"
            "  cart.py:17 in total: total += self.price(item)\n"
            "> cart.py:11 in price: value = item * 2",
        ),
        ("u", ""),
        ("p total", "total = 0"),
        ("u", ""),
        ("p cart", "cart = <Cart items=[3, None]>"),
        ("u", "oldest frame"),
        ("d 2", ""),
        ("d", "newest frame"),
        ("u 9", ""),
        ("whatis cart", "cart: cart.Cart"),
    ],
    "values": [
        ("b cart.py:16", "breakpoint 1 at cart.py:16"),
        ("c", "breakpoint cart.py:16 total"),
        ("locals", "self = <Cart items=[3, None]>\ntotal = 0"),
        ("a", "self = <Cart items=[3, None]>"),
        ("whatis total", "total: int"),
        ("whatis self", "self: cart.Cart"),
        ("pp self", "self = <cart.Cart object>"),
        ("p nothing", "NameError: name 'nothing' is not defined"),
        ("p", "give an expression"),
        ("exception", "no exception has been seen yet"),
        ("retval", "not at a return"),
        ("display x", "no command display. commands: ..."),
        ("help", "commands: b FILE:LINE..."),
    ],
    "source": [
        ("b cart.py:11", "breakpoint 1 at cart.py:11"),
        ("c", "breakpoint cart.py:11 price"),
        (
            "ll",
            "  8     @staticmethod\n  9     def price(item):\n"
            '  10         """What one item costs."""\n->11         value = item * 2\n  12         return value',
        ),
        ("l 1, 2", '  1 """A cart."""\n  2 '),
        ("l 12, 12", "  12         return value"),
        ("source Cart.total", "    def total(self):..."),
        ("source 3", "...module, class, method..."),
    ],
    "statements run in the frame": [
        *IN_TOTAL,
        ("p [total + each for each in self.items if each]", "[total + each for each in self.items if each] = [3]"),
        ("total = 40", ""),
        ("!item = 1", ""),
        ("total + item", "41"),
        ('print("said")', "said"),
        ("for each in range(2):\n    print(each)", "0\n1"),
        ("del item", ""),
        ("1 +", "...SyntaxError: ..."),
    ],
    "variables that are assigned are the function's": [
        *IN_TOTAL,
        ("item = 20", ""),
        ("c = 5", ""),
        ("p c", "c = 5"),
        ("n == 3", "NameError: name 'n' is not defined"),
        ("n", "step cart.py:16 total"),
        ("p total", "total = 40"),
    ],
    "logpoints note values and do not stop": [
        ("log cart.py:17, item", "logpoint 1 at cart.py:17, item"),
        ("log cart.py:17, total + nothing", "logpoint 2 at cart.py:17, total + nothing"),
        ("b cart.py:18", "breakpoint 3 at cart.py:18"),
        ("condition 1 item", "logpoint 1 at cart.py:17, item (if item)"),
        (
            "c",
            "cart.py:17 item = 3\n"
            "cart.py:17 total + nothing = NameError: name 'nothing' is not defined\n"
            "cart.py:17 total + nothing = NameError: name 'nothing' is not defined\n"
            f"post-mortem cart.py:11 price: {TYPE_ERROR}",
        ),
    ],
    "a post-mortem": [
        ("c", f"post-mortem cart.py:11 price: {TYPE_ERROR}"),
        ("p item", "item = None"),
        ("n", "this is a post-mortem..."),
        ("u", ""),
        ("p total", "total = 6"),
        ("exception", TYPE_ERROR),
        ("c", ""),
        ("p 1", "not run: the program has ended"),
    ],
}
COLLECTING: dict[str, Conversation] = {
    "stepping over a generator stays in the function": [
        ("b collect", "breakpoint 1 at cart.py:27"),
        ("c", "breakpoint cart.py:27 collect"),
        *(("n", f"step cart.py:{line} collect") for line in (28, 29, 28, 29, 28, 30)),
    ],
    "stepping into a generator and over its yield": [
        ("b cart.py:28", "breakpoint 1 at cart.py:28"),
        ("c", "breakpoint cart.py:28 collect"),
        ("cl", "deleted breakpoint 1"),
        ("s", "step cart.py:22 numbers"),
        ("s", "step cart.py:23 numbers"),
        ("s", "step cart.py:29 collect"),
    ],
    "until and jump": [
        ("b collect", "breakpoint 1 at cart.py:27"),
        ("c", "breakpoint cart.py:27 collect"),
        ("until 30", "step cart.py:30 collect"),
        ("p found", "found = [0, 1]"),
        ("j 27", "jump cart.py:27 collect"),
        ("n", "step cart.py:28 collect"),
        ("p found", "found = []"),
        ("j 400", "cannot jump: ..."),
        ("j x", "'x' is no number. Usage: jump LINE"),
    ],
}


@pytest.mark.parametrize("name", [*CONVERSATIONS, *COLLECTING])
def test_conversation(start: Start, name: str) -> None:
    if name in COLLECTING:
        start(*PYTEST, "-k", "collect").check(*COLLECTING[name])
    else:
        start(*PYTEST).check(*CONVERSATIONS[name])


def test_function_in_several_files_is_not_guessed(start: Start, project: Path) -> None:
    script(project, "def collect():\n    return 1\n", "other.py")
    (output,) = start(*PYTEST).outputs("b collect")
    assert output == "collect exists in several places: b FILE:LINE with one of cart.py:27, other.py:2"


def test_temporary_breakpoint_and_ignore_count(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("tbreak cart.py:11;; b cart.py:17;; ignore 2 1;; c")
    assert place(reply)[2] == 11
    assert [each["number"] for each in reply["breakpoints"]] == [2]
    reply = driver.do("c", "p item")
    assert reply["results"][-1]["output"] == "item = None"
    assert reply["breakpoints"][0]["hits"] == 2


def test_the_host_s_table_of_breakpoints(start: Start) -> None:
    driver = start(*PYTEST)
    wanted = [
        {"number": 4, "path": "cart.py", "line": 17, "condition": "item == 3", "temporary": False},
        {"number": 7, "path": "gone.py", "line": 1},
    ]
    table = driver.request(breakpoints=wanted)["breakpoints"]
    assert [(each["number"], each["problem"]) for each in table] == [(4, None), (7, "no file gone.py")]
    assert driver.do("c")["stop"]["breakpoint"] == 4
    table = start(*PYTEST).do("log cart.py:11, item", "catch TypeError", "ignore 2 1")["breakpoints"]
    driver = start(*PYTEST)
    assert driver.request(breakpoints=table)["breakpoints"] == table
    driver.check(("c", f"cart.py:11 item = 3\ncart.py:11 item = None\npost-mortem cart.py:11 price: {TYPE_ERROR}"))


def test_how_a_program_ends(start: Start) -> None:
    driver = start(*PYTEST, "-k", "collect")
    reply = driver.do("c", "p 1")
    assert (reply["state"], reply["exit_code"], driver.process.wait(60)) == ("exited", 0, 0)
    assert reply["results"][-1]["output"] == "not run: the program has ended"
    driver = start(*PYTEST)
    assert driver.do("c")["stop"]["test"].endswith("test_cart.py::test_total")
    assert driver.do("c")["exit_code"] == driver.process.wait(60) == 1
    driver = start(*PYTEST)
    assert driver.do("b collect", "c", "q", "p 1")["state"] == "exited"
    assert driver.process.wait(60) == 0
    reply = start(*PYTEST).do("b collect", "restart", "c")  # which is left to the host
    assert (reply["state"], reply["rest"]) == ("restart", ["c"])
