"""Breakpoints of the debugger. No sandbox: the injected debugger alone."""

from __future__ import annotations

from pathlib import Path

from support.tools.driver import PYTEST, Start, place, script


def test_breakpoint_moves_down_to_code_and_a_def_means_its_body(start: Start) -> None:
    driver = start(*PYTEST)
    assert driver.outputs("b cart.py:13", "b cart.py:9", "b cart.py:8", "b cart.py:1000", "b nothing.py:1") == [
        "breakpoint 1 at cart.py:15",
        "breakpoint 2 at cart.py:11",
        "breakpoint 2 at cart.py:11",
        "cart.py has only 30 lines",
        "no file nothing.py",
    ]


def test_breakpoint_by_function(start: Start) -> None:
    driver = start(*PYTEST)
    assert driver.outputs("b collect", "b cart.py:Cart.price", "b Cart.total", "b cart.numbers", "b nothing") == [
        "breakpoint 1 at cart.py:27",
        "breakpoint 2 at cart.py:11",
        "breakpoint 3 at cart.py:15",
        "breakpoint 4 at cart.py:22",
        "no function nothing in the workspace",
    ]
    assert place(driver.do("c"))[3] == "total"
    assert driver.outputs("b self.price") == ["breakpoint 2 at cart.py:11"]


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


def test_breakpoints_can_be_switched_changed_and_deleted(start: Start) -> None:
    driver = start(*PYTEST)
    assert driver.outputs(
        "b cart.py:15", "disable 1", "enable 1", "condition 1 total == 7", "condition 1", "cl cart.py:15", "b", "cl"
    ) == [
        "breakpoint 1 at cart.py:15",
        "breakpoint 1 at cart.py:15 (disabled)",
        "breakpoint 1 at cart.py:15",
        "breakpoint 1 at cart.py:15 (if total == 7)",
        "breakpoint 1 at cart.py:15",
        "deleted breakpoint 1",
        "no breakpoints",
        "deleted nothing",
    ]


def test_wrong_breakpoint_commands_say_what_is_wrong(start: Start) -> None:
    driver = start(*PYTEST)
    outputs = driver.outputs("b cart.py:15, total =", "b 3", "disable 9", "cl x", "enable", "tbreak", "ignore 1 x")
    assert outputs[0].startswith("condition 'total =': ")
    assert outputs[1:] == [
        "give a file: b FILE:LINE",
        "no breakpoint 9",
        "'x' is no number. Usage: clear NUMBER",
        "give a number: enable NUMBER",
        "give a place: tbreak FILE:LINE",
        "no breakpoint 1",
    ]


def test_failing_condition_stops_and_says_so(start: Start) -> None:
    reply = start(*PYTEST).do("b cart.py:15 if nothing > 3", "c")
    assert reply["stop"]["note"] == "condition failed: NameError: name 'nothing' is not defined"


def test_table_of_breakpoints_from_the_host(start: Start) -> None:
    driver = start(*PYTEST)
    wanted = [
        {"number": 4, "path": "cart.py", "line": 17, "condition": "item == 3", "temporary": False},
        {"number": 7, "path": "gone.py", "line": 1},
    ]
    table = driver.request(breakpoints=wanted)["breakpoints"]
    assert [(each["number"], each["problem"]) for each in table] == [(4, None), (7, "no file gone.py")]
    reply = driver.do("c")
    assert reply["stop"]["breakpoint"] == 4
