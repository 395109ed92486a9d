"""Conversations about a small project, each command with its answer; and going back to an earlier state."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from pathlib import Path

import pytest

from support.tools.driver import PYTEST, Start, place, script, wait_for

Conversation = list[tuple[str, str]]
NOT_STARTED = "the program is not started: set breakpoints, then c"
TYPE_ERROR = "TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'"


def stopped(line: int, function: str) -> Conversation:
    """The way to a line."""
    return [(f"b cart.py:{line}", f"breakpoint 1 at cart.py:{line}"), ("c", f"breakpoint cart.py:{line} {function}")]


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
        *stopped(16, "total"),
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
        *stopped(11, "price"),
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
        *stopped(16, "total"),
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
        *stopped(11, "price"),
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
    "statements run in the frame, and variables that they assign are the function's": [
        *stopped(17, "total"),
        ("p [total + each for each in self.items if each]", "[total + each for each in self.items if each] = [3]"),
        ("total = 40", ""),
        ("!item = 1", ""),
        ("total + item", "41"),
        ('print("said")', "said"),
        ("for each in range(2):\n    print(each)", "0\n1"),
        ("1 +", "...SyntaxError: ..."),
        ("c = 5", ""),
        ("p c", "c = 5"),
        ("n == 3", "NameError: name 'n' is not defined"),
        ("n", "step cart.py:16 total"),
        ("p total", "total = 42"),
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
        *stopped(27, "collect"),
        *(("n", f"step cart.py:{line} collect") for line in (28, 29, 28, 29, 28, 30)),
    ],
    "stepping into a generator and over its yield": [
        *stopped(28, "collect"),
        ("cl", "deleted breakpoint 1"),
        ("s", "step cart.py:22 numbers"),
        ("s", "step cart.py:23 numbers"),
        ("s", "step cart.py:29 collect"),
    ],
    "until and jump": [
        *stopped(27, "collect"),
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


def test_a_variable_is_deleted_where_python_lets_a_debugger_do_so(start: Start, python: str) -> None:
    is_new = subprocess.check_output([python, "-c", "import sys; print(sys.version_info >= (3, 13))"]) == b"True\n"
    refusal = "since Python 3.13, no debugger can delete a function's variables: item"
    start(*PYTEST).check(
        *stopped(17, "total"),
        ("del item", refusal if is_new else ""),
        ("p item", "item = 3" if is_new else "NameError: ..."),
    )


def test_function_in_several_files_is_not_guessed(start: Start, project: Path) -> None:
    script(project, "def collect():\n    return 1\n", "other.py")
    start(*PYTEST).check(
        ("b collect", "collect exists in several places: b FILE:LINE with one of cart.py:27, other.py:2")
    )


def test_temporary_breakpoint_and_ignore_count(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("tbreak cart.py:11;; b cart.py:17;; ignore 2 1;; c")
    assert (place(reply)[2], [each["number"] for each in reply["breakpoints"]]) == (11, [2])
    reply = driver.do("c", "p item")
    assert (reply["results"][-1]["output"], reply["breakpoints"][0]["hits"]) == ("item = None", 2)


def test_the_host_s_table_of_breakpoints(start: Start) -> None:
    driver = start(*PYTEST)
    wanted = [
        {"number": 4, "path": "cart.py", "line": 17, "condition": "item == 3", "temporary": False},
        {"number": 5, "catch": "TypeError"},
        {"number": 6, "path": "cart.py", "line": 17, "log": "item"},
        {"number": 7, "path": "gone.py", "line": 1},
    ]
    table = driver.request(breakpoints=wanted)["breakpoints"]
    assert [each["problem"] for each in table] == [None, None, None, "no file gone.py"]
    driver.check(
        ("c", "cart.py:17 item = 3\nbreakpoint cart.py:17 total"),
        ("c", f"cart.py:17 item = None\nraised cart.py:11 price: {TYPE_ERROR}"),
    )


def test_checkpoints_can_be_gone_back_to_from_any_other(start: Start) -> None:
    driver = start(*PYTEST)
    driver.check(
        ("b cart.py:16", "breakpoint 1 at cart.py:16"),
        ("c", "breakpoint cart.py:16 total"),
        ("n", "step cart.py:17 total"),
        ("checkpoint first", "checkpoint first"),
        ("cl", "deleted breakpoint 1"),
        ("n", "step cart.py:16 total"),
        ("n", "step cart.py:17 total"),
        ("checkpoint second", "checkpoint second"),
        ("p total", "total = 6"),
    )
    driver.check(
        ("restore first", "restored first\nstep cart.py:17 total"),
        ("p total", "total = 0"),
        ("total = 100", ""),
        ("n", "step cart.py:16 total"),
        ("p total", "total = 106"),
        ("restore second", "restored second\nstep cart.py:17 total"),
        ("p total, item", "total, item = (6, None)"),
        ("restore first", "restored first\nstep cart.py:17 total"),
        ("p total", "total = 0"),
        ("restore nowhere", "no checkpoint 'nowhere'; there are: first, second"),
        ("b collect", "breakpoint 1 at cart.py:27"),
    )
    reply = driver.do("restore second")
    assert ([each["line"] for each in reply["breakpoints"]], reply["checkpoints"]) == ([27], ["first", "second"])
    driver.check(("c", "post-mortem cart.py:11 price: ..."), ("c", "breakpoint cart.py:27 collect"), ("c", ""))
    assert driver.process.wait(60) == 1


def test_interrupt_after_a_restore(start_script: Start) -> None:
    driver = start_script("import time\nx = 1\nprint('go', flush=True)\ntime.sleep(600)\n")
    driver.do("b script.py:2", "c", "checkpoint a", "n", "restore a")
    driver.send(lines=["cl", "c"])
    wait_for(driver, "go")
    time.sleep(0.1)
    driver.interrupt()
    assert place(driver.receive())[:3] == ("interrupt", "script.py", 4)


def test_no_checkpoint_with_threads_or_without_a_name(start_script: Start) -> None:
    driver = start_script(
        "import threading\ndone = threading.Event()\nthreading.Thread(target=done.wait, name='W').start()\ndone.set()\n"
    )
    driver.check(
        ("checkpoint x", "the program is not started: set breakpoints, then c"),
        ("b script.py:4", "breakpoint 1 at script.py:4"),
        ("c", "breakpoint script.py:4 <module>"),
        ("checkpoint x", "no checkpoint while other threads run: W"),
        ("checkpoint", "give a name: checkpoint NAME"),
        *((f"restore {name}", f"no checkpoint {name!r}; there are: none") for name in ("x", "\ud800", "x" * 200, "\0")),
        ("restore ", "no checkpoint ''; there are: none"),
    )


def group_members(group: int) -> list[str]:
    """The processes of a group that are not already dead."""
    found: list[str] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, state, _, leader, *_ = re.sub(r"\(.*\)", "", stat.read_text(errors="replace")).split()
            found += [pid] if leader == str(group) and state != "Z" else []
    return found


@pytest.mark.parametrize(("end", "code"), [("os._exit(5)", 5), ("os.kill(os.getpid(), 9)", 128 + 9)])
def test_checkpoints_die_with_the_program(start_script: Start, end: str, code: int) -> None:
    driver = start_script(f"import os\nx = 1\n{end}\n")
    driver.do("b script.py:2", "c", "checkpoint a", "n", "checkpoint b", "restore a", "checkpoint c")
    driver.send(lines=["cl", "c"])
    assert driver.process.wait(60) == code
    deadline = time.monotonic() + 30
    while group_members(driver.process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert group_members(driver.process.pid) == []
