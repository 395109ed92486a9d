"""How the debugger lets a program go on. No sandbox: the injected debugger alone."""

from __future__ import annotations

from pathlib import Path

from support.tools.driver import PYTEST, Start, place, script


def test_stepping_over_into_and_out(start: Start) -> None:
    driver = start(*PYTEST)
    assert place(driver.do("b cart.py:16", "c", "n"))[2] == 17
    assert place(driver.do("s")) == ("step", "cart.py", 11, "price")
    reply = driver.do("r")
    assert place(reply) == ("return", "cart.py", 12, "price")
    assert reply["stop"]["value"] == "6"
    assert driver.outputs("retval", "p __return__") == ["returns 6", "__return__ = '6'"]
    assert place(driver.do("n")) == ("breakpoint", "cart.py", 16, "total")


def test_stepping_over_a_generator_stays_in_the_function(start: Start) -> None:
    driver = start(*PYTEST, "-k", "collect")
    lines = [each["stop"]["line"] for each in driver.do("b collect", "c", "n", "n", "n", "n", "n", "n")["results"][1:]]
    assert lines == [27, 28, 29, 28, 29, 28, 30]


def test_stepping_into_a_generator_and_over_its_yield(start: Start) -> None:
    driver = start(*PYTEST, "-k", "collect")
    reply = driver.do("b cart.py:28", "c", "cl", "s", "s", "s")
    assert [place({"stop": each["stop"]})[2:] for each in reply["results"][3:]] == [
        (22, "numbers"),
        (23, "numbers"),
        (29, "collect"),
    ]


def test_exception_met_while_stepping(start: Start) -> None:
    reply = start(*PYTEST).do("b cart.py:17, item is None", "c", "n")
    assert place(reply) == ("exception", "cart.py", 17, "total")
    assert reply["stop"]["exception"].startswith("TypeError: unsupported operand")


def test_until_and_jump(start: Start) -> None:
    driver = start(*PYTEST, "-k", "collect")
    reply = driver.do("b collect", "c", "until 30", "p found", "j 27", "n", "p found", "j 400", "j x")
    outputs = [each["output"] for each in reply["results"]]
    assert outputs[3] == "found = [0, 1]"
    assert outputs[6] == "found = []"
    assert outputs[7].startswith("cannot jump: ")
    assert outputs[8] == "'x' is no number. Usage: jump LINE"


def test_commands_before_the_start(start: Start) -> None:
    driver = start(*PYTEST)
    not_started = "the program is not started: set breakpoints, then c"
    assert driver.outputs("w", "p 1", "j 3", "until 4", "x = 1", "u") == [not_started] * 6
    reply = driver.do("n")
    assert place(reply) == ("step", "test_cart.py", 1, "<module>")


def test_breakpoint_in_a_conftest(start: Start, project: Path) -> None:
    script(project, "value = 1\ndef pytest_configure(config):\n    config.value = value\n", "conftest.py")
    driver = start(*PYTEST)
    assert place(driver.do("b conftest.py:1", "b conftest.py:3", "c")) == ("breakpoint", "conftest.py", 1, "<module>")
    assert place(driver.do("c")) == ("breakpoint", "conftest.py", 3, "pytest_configure")


def test_commands_after_the_end_are_not_run(start: Start) -> None:
    driver = start(*PYTEST, "-k", "collect")
    reply = driver.do("c", "p 1")
    assert reply["state"] == "exited"
    assert reply["exit_code"] == 0
    assert reply["results"][-1]["output"] == "not run: the program has ended"
    assert driver.process.wait(60) == 0


def test_quit_ends_the_program(start: Start) -> None:
    driver = start(*PYTEST)
    assert driver.do("b collect", "c", "q", "p 1")["state"] == "exited"
    assert driver.process.wait(60) == 0


def test_restart_is_left_to_the_host(start: Start) -> None:
    reply = start(*PYTEST).do("b collect", "restart", "c")
    assert (reply["state"], reply["rest"]) == ("restart", ["c"])
