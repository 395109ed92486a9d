"""The debugger that goes into sandboxes, on its own: every interpreter it is for, real programs, no sandbox."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from driver import Driver

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
Start = Callable[..., Driver]


@pytest.fixture
def start(python: str, project: Path) -> Generator[Start]:
    """Starts the debugger in the project; what was started is killed at the end."""
    drivers: list[Driver] = []

    def begin(*program: str, **env: str) -> Driver:
        drivers.append(Driver(python, project, *program, env=env))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.close()


def script(project: Path, text: str, name: str = "script.py") -> str:
    """Writes a program into the project."""
    (project / name).write_text(dedent(text))
    return name


def place(reply: dict[str, Any]) -> tuple[str, str, int, str]:
    """Reason, path, line and function of the stop in an answer."""
    stop = reply["stop"]
    return stop["reason"], stop["path"], stop["line"], stop["function"]


# --- breakpoints ------------------------------------------------------------------------------------------------


def test_conditional_breakpoint_stops_where_its_condition_holds(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("b cart.py:17, item is None", "c", "p item, total")
    assert place(reply) == ("breakpoint", "cart.py", 17, "total")
    assert [each["output"] for each in reply["results"]] == [
        "breakpoint 1 at cart.py:17 (if item is None)",
        "",
        "item, total = (None, 6)",
    ]
    assert [frame["function"] for frame in reply["frames"]] == ["test_total", "total"]


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
    assert output == "collect is in several places: b FILE:LINE with one of cart.py:27, other.py:2"


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
    table = driver.request("set_breakpoints", breakpoints=wanted)["breakpoints"]
    assert [(each["number"], each["problem"]) for each in table] == [(4, None), (7, "no file gone.py")]
    reply = driver.do("c")
    assert reply["stop"]["breakpoint"] == 4


def test_structured_requests(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.request("break", path="cart.py", line=17, condition="total > 0", temporary=True, ignore=0)
    assert reply["breakpoints"][0]["condition"] == "total > 0"
    driver.request("break", function="collect", ignore=2)
    assert driver.request("continue")["stop"]["line"] == 17
    assert driver.request("evaluate", argument="total * 2")["value"] == "12"
    assert driver.request("evaluate", argument="total")["type"] == "int"
    assert driver.request("locals")["frames"][-1]["local_values"]["item"] == "None"
    assert driver.request("nonsense")["results"][0]["failed"] is True


# --- going on ---------------------------------------------------------------------------------------------------


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
    assert driver.process.wait(10) == 0


def test_quit_ends_the_program(start: Start) -> None:
    driver = start(*PYTEST)
    assert driver.do("b collect", "c", "q", "p 1")["state"] == "exited"
    assert driver.process.wait(10) == 0


def test_restart_is_left_to_the_host(start: Start) -> None:
    reply = start(*PYTEST).do("b collect", "restart", "c")
    assert (reply["state"], reply["rest"]) == ("restart", ["c"])


# --- looking ----------------------------------------------------------------------------------------------------


def test_frames_up_and_down(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("b cart.py:11", "c", "w")
    assert reply["results"][-1]["output"].splitlines() == [
        "  test_cart.py:8 in test_total: assert cart.total() == 6",
        "  cart.py:17 in total: total += self.price(item)",
        "> cart.py:11 in price: value = item * 2",
    ]
    reply = driver.do("u", "p total", "u", "p cart", "u", "d 2", "d", "u 9")
    assert [each["output"] for each in reply["results"]] == [
        "",
        "total = 0",
        "",
        "cart = <Cart items=[3, None]>",
        "oldest frame",
        "",
        "newest frame",
        "",
    ]
    assert reply["index"] == 0


def test_locals_arguments_and_types(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("b cart.py:16", "c", "locals", "a", "whatis total", "whatis self", "pp self", "p nothing", "p")
    assert [each["output"] for each in reply["results"][2:]] == [
        "self = <Cart items=[3, None]>\ntotal = 0",
        "self = <Cart items=[3, None]>",
        "total: int",
        "self: cart.Cart",
        "self = <cart.Cart object>",
        "NameError: name 'nothing' is not defined",
        "give an expression",
    ]
    assert reply["frames"][-1]["local_values"] == {"self": "<Cart items=[3, None]>", "total": "0"}


def test_source_commands(start: Start) -> None:
    driver = start(*PYTEST)
    outputs = driver.outputs("b cart.py:11", "c", "ll", "l 1, 2", "source Cart.total", "source 3", "l")
    assert outputs[2].splitlines()[-2:] == ["->11         value = item * 2", "  12         return value"]
    assert outputs[3] == '  1 """A cart."""\n  2 '
    assert outputs[4].startswith("    def total(self):")
    assert "module, class, method" in outputs[5]
    assert len(outputs[6].splitlines()) == 11


def test_comprehensions_see_local_variables(start: Start) -> None:
    (output,) = start(*PYTEST).outputs("b cart.py:17", "c", "p [total + item for item in self.items if item]")[2:]
    assert output == "[total + item for item in self.items if item] = [3]"


def test_statements_run_in_the_frame(start: Start) -> None:
    driver = start(*PYTEST)
    outputs = driver.outputs(
        "b cart.py:17",
        "c",
        "total = 40",
        "!item = 1",
        "total + item",
        'print("said")',
        "for each in range(2):\n    print(each)",
        "del item",
        "1 +",
        "n",
        "p total",
    )
    assert outputs[4:7] == ["41", "said", "0\n1"]
    assert "SyntaxError" in outputs[8]
    driver = start(*PYTEST)
    assert driver.outputs("b cart.py:17", "c", "item = 20", "n", "p total")[-1] == "total = 40"


def test_names_of_commands_can_be_assigned(start: Start) -> None:
    assert start(*PYTEST).outputs("b cart.py:17", "c", "c = 5", "p c", "n == 3")[2:] == [
        "",
        "c = 5",
        "NameError: name 'n' is not defined",
    ]


def test_exception_and_help(start: Start) -> None:
    driver = start(*PYTEST)
    outputs = driver.outputs("b cart.py:17", "c", "exception", "help", "display x", "retval")
    assert outputs[2] == "no exception was seen yet"
    assert outputs[3].startswith("commands: b FILE:LINE")
    assert outputs[4].startswith("no command display. commands: ")
    assert outputs[5] == "not at a return"


def test_values_have_no_addresses_but_texts_keep_theirs(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        class Plain:
            pass
        plain, text = Plain(), "<lamp at 0x12ab>"
        plain.other, plain.text, pair = Plain(), text, [Plain(), len, __import__("threading").Event()]
        x = 1
        """,
    )
    plain, pair, text = start(name).outputs("b script.py:5", "c", "p plain", "p pair", "p text")[2:]
    assert plain == "plain = <Plain other=<Plain> text='<lamp at 0x12ab>'>"
    assert pair.startswith("pair = [<__main__.Plain object>, <built-in function len>, <threading.Event")
    assert " at 0x" not in pair
    assert text == "text = '<lamp at 0x12ab>'"


def test_values_that_cannot_be_printed(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        class Bad:
            def __repr__(self):
                raise RuntimeError("no")
        bad = Bad()
        big = "x" * 50000000
        print()
        """,
    )
    outputs = start(name).outputs("b script.py:6", "c", "p bad", "locals", "p big")
    assert outputs[2] == "bad cannot be printed: RuntimeError: no"
    assert "bad = <Bad instance>" in outputs[3]
    assert len(outputs[3]) < 500
    assert len(outputs[4]) < 7000
    assert "characters cut" in outputs[4]


# --- failing tests ----------------------------------------------------------------------------------------------


def test_post_mortem_of_a_pytest_test_in_one_request(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("c", "p item", "n", "u", "p total", "exception")
    assert place(reply) == ("post-mortem", "cart.py", 17, "total")
    assert reply["stop"]["test"].endswith("test_cart.py::test_total")
    outputs = [each["output"] for each in reply["results"]]
    assert outputs[1] == "item = None"
    assert outputs[2].startswith("this is a post-mortem")
    assert outputs[4] == "total = 6"
    assert outputs[5].startswith("TypeError")
    assert driver.do("c")["exit_code"] == 1


def test_post_mortem_of_a_file_that_cannot_be_collected(start: Start, project: Path) -> None:
    script(project, "import no_such_module\n", "test_bad.py")
    reply = start(*PYTEST).do("c")
    assert place(reply) == ("post-mortem", "test_bad.py", 1, "<module>")
    assert "no_such_module" in reply["stop"]["exception"]


def test_post_mortem_of_a_test_that_exits(start: Start, project: Path) -> None:
    script(project, "import sys\ndef test_it():\n    sys.exit(3)\n", "test_cart.py")
    reply = start(*PYTEST).do("c")
    assert reply["stop"]["exception"] == "SystemExit: 3"


def test_expected_failures_do_not_stop(start: Start, project: Path) -> None:
    text = "import pytest\n@pytest.mark.xfail\ndef test_x():\n    assert 0\ndef test_y():\n    pytest.skip()\n"
    script(project, text, "test_cart.py")
    assert start(*PYTEST).do("c")["exit_code"] == 0


@pytest.mark.parametrize("arguments", [("-m", "unittest", "-q", "tests_u"), ("tests_u.py",)])
def test_post_mortem_of_unittest(start: Start, project: Path, arguments: tuple[str, ...]) -> None:
    script(
        project,
        """\
        import unittest
        from cart import Cart

        class Tests(unittest.TestCase):
            def test_a(self):
                cart = Cart()
                cart.items.append(None)
                cart.total()

            def test_b(self):
                self.assertEqual(1, 2)

            def test_c(self):
                for number in range(3):
                    with self.subTest(number=number):
                        self.assertEqual(number, 1)

        if __name__ == "__main__":
            unittest.main()
        """,
        "tests_u.py",
    )
    driver = start(*arguments)
    assert place(driver.do("c"))[:3] == ("post-mortem", "cart.py", 11)
    reply = driver.do("c")
    assert reply["stop"]["test"].endswith("Tests.test_b")
    assert reply["stop"]["exception"] == "AssertionError: 1 != 2"
    assert driver.do("c")["stop"]["exception"] == "AssertionError: 0 != 1"
    assert driver.do("c")["stop"]["exception"] == "AssertionError: 2 != 1"
    assert driver.do("c")["exit_code"] == 1


def test_post_mortem_of_a_script(start: Start, project: Path) -> None:
    name = script(project, "import sys\ndef fail(x):\n    return 1 / x\nprint(sys.argv)\nfail(0)\n")
    driver = start(name, "one", "two")
    reply = driver.do("c", "p x")
    assert place(reply) == ("post-mortem", "script.py", 3, "fail")
    assert driver.do("c")["exit_code"] == 1
    assert driver.process.wait(10) == 1
    assert "['script.py', 'one', 'two']" in driver.printed
    assert "ZeroDivisionError" in driver.printed
    assert "gumshoe" not in driver.printed


def test_recursion_without_end(start: Start, project: Path) -> None:
    name = script(project, "def again(n):\n    return again(n + 1)\nagain(0)\n")
    reply = start(name).do("b script.py:3", "c", "c", "w")
    assert place(reply)[0] == "post-mortem"
    assert len(reply["frames"]) == 30


# --- kinds of programs ------------------------------------------------------------------------------------------


def test_module_with_a_package(start: Start, project: Path) -> None:
    (project / "package").mkdir()
    script(project, "", "package/__init__.py")
    script(project, "import sys\nfrom . import other\nsys.exit(other.code())\n", "package/__main__.py")
    script(project, "def code():\n    return 3\n", "package/other.py")
    driver = start("-m", "package")
    assert place(driver.do("b package/other.py:code", "c")) == ("breakpoint", "package/other.py", 2, "code")
    assert driver.do("c")["exit_code"] == 3
    assert driver.process.wait(10) == 3


def test_exit_codes(start: Start, project: Path) -> None:
    assert start("-c", "import sys; sys.exit('bad')").do("c")["exit_code"] == 1
    assert start("-c", "raise SystemExit").do("c")["exit_code"] == 0
    assert start("-c", "raise KeyboardInterrupt").do("c")["exit_code"] == 130
    assert start("no_such_script.py").do("c")["exit_code"] == 2
    assert start(".").do("c")["exit_code"] == 1
    assert start("-m", "no_such_module").do("c")["exit_code"] == 1


def test_program_sees_itself_as_python_would_run_it(start: Start, project: Path, python: str) -> None:
    import subprocess

    name = script(
        project,
        """\
        import os, sys, pickle
        class Thing:
            pass
        pickle.loads(pickle.dumps(Thing()))
        entries = [os.path.realpath(each or ".") for each in sys.path]
        print(__name__, os.path.basename(__file__), entries, sys.argv, "GUMSHOE_CONTROL" in os.environ)
        """,
    )
    driver = start(name, "x")
    driver.do("c")
    plain = subprocess.run([python, name, "x"], cwd=project, capture_output=True, text=True, check=True).stdout
    assert driver.printed == plain


def test_command_on_path_is_run_by_its_own_interpreter(start: Start, project: Path, python: str) -> None:
    tools = project / "bin"
    tools.mkdir()
    command = tools / "runtests"
    command.write_text(f"#!{python}\nimport sys\nfrom cart import collect\nsys.exit(len(collect()))\n")
    command.chmod(0o755)
    driver = start("runtests", PATH=str(tools), PYTHONPATH=str(project))
    assert place(driver.do("b collect", "c"))[3] == "collect"
    assert driver.do("c")["exit_code"] == 2


def test_programs_that_are_not_python(start: Start, project: Path) -> None:
    script(project, "#!/bin/sh\necho hello\n", "run.sh")
    (project / "binary").write_bytes(b"\x7fELF\0")
    for name in ("run.sh", "binary"):
        driver = start(name)
        assert driver.do("c")["exit_code"] == 2
        assert driver.printed == f"cannot debug {name}: it is not a Python program\n"


def test_pytest_called_by_a_script(start: Start, project: Path) -> None:
    name = script(project, "import pytest, sys\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider']))\n")
    assert place(start(name).do("c"))[:2] == ("post-mortem", "cart.py")


def test_program_that_changes_its_folder(start: Start, project: Path) -> None:
    name = script(project, "import os\nos.chdir('/')\nimport cart\ncart.collect()\nx = 1\n")
    reply = start(name).do("b cart.py:collect", "b script.py:5", "c", "c", "b cart.py:22", "l")
    assert place(reply)[1:3] == ("script.py", 5)
    assert "->5 x = 1" in reply["results"][-1]["output"]


def test_async_code(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        import asyncio
        async def inner(n):
            await asyncio.sleep(0)
            return n
        async def outer():
            one = await inner(1)
            two = await inner(2)
            return one + two
        loop = asyncio.new_event_loop()
        print(loop.run_until_complete(outer()))
        loop.close()
        """,
    )
    driver = start(name)
    lines = [each["stop"]["line"] for each in driver.do("b script.py:6", "c", "n", "n", "n")["results"][1:]]
    assert lines == [6, 7, 8, 8]
    assert driver.do("c")["exit_code"] == 0


def test_breakpoint_calls_in_the_code(start: Start, project: Path) -> None:
    name = script(project, "import pdb\ndef f(x):\n    pdb.set_trace()\n    return x\nf(3)\n")
    reply = start(name).do("c", "p x", "n", "p f(4)")
    assert place(reply)[1:3] == ("script.py", 4)
    assert [each["output"] for each in reply["results"]][1::2] == ["x = 3", "f(4) = 4"]


def test_breakpoint_calls_in_a_test(start: Start, project: Path) -> None:
    script(project, "import pdb\ndef test_it():\n    x = 3\n    pdb.set_trace()\n    assert x\n", "test_cart.py")
    reply = start(*PYTEST).do("c", "p x", "c")
    assert reply["results"][1]["output"] == "x = 3"
    assert reply["exit_code"] == 0


# --- what could hang it -----------------------------------------------------------------------------------------


def wait_for(driver: Driver, text: str) -> None:
    """Waits until the program has printed `text`."""
    for _ in range(1000):
        if text in driver.printed:
            return
        time.sleep(0.01)
    raise AssertionError(driver.printed)


@pytest.mark.parametrize("wait", ["time.sleep(600)", "while True: pass"])
def test_interrupt_stops_a_running_program(start: Start, project: Path, wait: str) -> None:
    name = script(project, f"import time\ndef f(x):\n    print('in f', flush=True)\n    {wait}\nf(3)\n")
    driver = start(name)
    driver.send("commands", lines=["b cart.py:11", "c", "p x"])
    wait_for(driver, "in f")
    driver.interrupt()
    reply = driver.receive()
    assert place(reply) == ("interrupt", "script.py", 4, "f")
    assert reply["results"][-1]["output"] == "x = 3"
    assert [each["number"] for each in reply["breakpoints"]] == [1]
    assert driver.outputs("p 1 + 1") == ["1 + 1 = 2"]


def test_interrupt_ends_a_long_evaluation_only(start: Start) -> None:
    driver = start(*PYTEST)
    driver.do("b cart.py:17", "c")
    driver.send("commands", lines=["[print('x', flush=True) for x in iter(int, 1)]", "p item"])
    time.sleep(0.5)
    driver.interrupt()
    reply = driver.receive()
    assert [each["output"] for each in reply["results"]] == ["interrupted", "item = 3"]
    assert place(reply)[2] == 17


def test_interrupt_while_nothing_runs_is_ignored(start: Start) -> None:
    driver = start(*PYTEST)
    driver.do("b cart.py:17", "c")
    driver.interrupt()
    assert driver.outputs("p item") == ["item = 3"]


def test_children_and_forks_run_free(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        import os, subprocess, sys
        from cart import collect
        pid = os.fork()
        if pid == 0:
            collect()
            os._exit(7)
        print(os.waitpid(pid, 0)[1] >> 8)
        print(subprocess.call([sys.executable, "-c", "from cart import collect; collect(); print('child')"]))
        collect()
        """,
    )
    driver = start(name)
    assert place(driver.do("b collect", "c", "w"))[3] == "collect"
    assert driver.do("c")["exit_code"] == 0
    assert driver.printed.split() == ["7", "child", "0"]


def test_pool_of_processes(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        import multiprocessing
        from cart import Cart
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(Cart.price, [1, 2]))
        """,
    )
    driver = start(name)
    assert driver.do("b Cart.price", "c")["exit_code"] == 0
    assert driver.printed == "[2, 4]\n"


def test_breakpoint_in_a_thread(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        import threading
        def work(number):
            double = number * 2
            return double
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        """,
    )
    driver = start(name)
    reply = driver.do("b script.py:4", "c", "p double")
    seen = set()
    while reply["state"] == "stopped":
        seen.add(reply["results"][-1]["output"])
        reply = driver.do("c", "p double")
    assert seen == {"double = 0", "double = 2"}
    assert driver.process.wait(10) == 0


def test_output_that_looks_like_answers_is_only_output(start: Start, project: Path) -> None:
    fake = json.dumps({"id": 1, "state": "exited", "results": [], "stop": None})
    name = script(project, f"print('(Pdb) ')\nprint({fake!r})\nimport os\nos.write(1, b'\\xff\\xfe')\nx = 1\n")
    driver = start(name)
    assert place(driver.do("b script.py:5", "c"))[2] == 5
    assert fake in driver.printed


def test_program_that_closes_everything(start: Start, project: Path) -> None:
    name = script(project, "import os, sys\nsys.stdout.close()\nos.closerange(0, 100)\nx = 1\ny = 2\n")
    assert start(name).do("b script.py:5", "c", "p x")["results"][-1]["output"] == "x = 1"


def test_stdin_is_empty(start: Start, project: Path) -> None:
    name = script(project, "import sys\nprint(repr(sys.stdin.read()))\n")
    driver = start(name)
    driver.do("c")
    assert driver.printed == "''\n"


def test_program_that_ends_at_once(start: Start, project: Path) -> None:
    driver = start(script(project, "import os\nos._exit(9)\n"))
    driver.send("commands", lines=["c"])
    with pytest.raises(EOFError):
        driver.receive()
    assert driver.process.wait(10) == 9


def test_replaced_builtins_do_not_reach_the_debugger(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        import builtins, io, json, os
        def broken(*args, **kwargs):
            raise RuntimeError("replaced")
        os.read = os.write = io.open = builtins.open = os.getpid = json.dumps = json.loads = broken
        x = 1
        y = 2
        """,
    )
    driver = start(name)
    reply = driver.do("b script.py:6", "c", "p x", "l")
    assert reply["results"][2]["output"] == "x = 1"
    assert driver.do("c")["exit_code"] == 0


def test_debugger_ends_with_its_host(start: Start) -> None:
    driver = start(*PYTEST)
    driver.do("b collect", "c")
    driver.lines.close()
    driver.socket.shutdown(2)
    assert driver.process.wait(10) == 1


def test_usage(start: Start) -> None:
    driver = start()
    assert driver.process.wait(10) == 2
    assert driver.printed.startswith("usage: ")


# --- time travel ------------------------------------------------------------------------------------------------


def test_checkpoints_can_be_gone_back_to_from_any_other(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("b cart.py:16", "c", "n", "checkpoint first", "cl", "n", "n", "checkpoint second", "p total")
    assert reply["checkpoints"] == ["first", "second"]
    assert reply["results"][-1]["output"] == "total = 6"
    reply = driver.do("restore first", "p total", "total = 100", "n", "p total")
    assert [each["output"] for each in reply["results"]] == ["restored first", "total = 0", "", "", "total = 106"]
    assert reply["results"][0]["stop"]["line"] == 17
    assert driver.outputs("restore second;; p total, item") == ["restored second", "total, item = (6, None)"]
    assert driver.outputs("restore first;; p total;; restore nowhere") == [
        "restored first",
        "total = 0",
        "no checkpoint 'nowhere'; there are: first, second",
    ]
    assert driver.do("c")["stop"]["reason"] == "post-mortem"
    assert driver.do("c")["exit_code"] == 1
    assert driver.process.wait(10) == 1


def test_breakpoints_outlive_a_restore(start: Start) -> None:
    driver = start(*PYTEST)
    driver.do("b cart.py:16", "c", "checkpoint here", "b collect")
    assert [each["line"] for each in driver.do("restore here")["breakpoints"]] == [16, 27]


def test_interrupt_after_a_restore(start: Start, project: Path) -> None:
    name = script(project, "import time\nx = 1\nprint('go', flush=True)\ntime.sleep(600)\n")
    driver = start(name)
    driver.do("b script.py:2", "c", "checkpoint a", "n", "restore a")
    driver.send("commands", lines=["cl", "c"])
    wait_for(driver, "go")
    time.sleep(0.1)
    driver.interrupt()
    assert place(driver.receive())[:3] == ("interrupt", "script.py", 4)


def test_no_checkpoint_with_threads_or_without_a_name(start: Start, project: Path) -> None:
    text = (
        "import threading\ndone = threading.Event()\nthreading.Thread(target=done.wait, name='W').start()\ndone.set()\n"
    )
    driver = start(script(project, text))
    outputs = driver.outputs("checkpoint x", "b script.py:4", "c", "checkpoint x", "checkpoint", "restore x")
    assert outputs[0] == "the program is not started: set breakpoints, then c"
    assert outputs[3] == "no checkpoint while other threads run: W"
    assert outputs[4] == "give a name: checkpoint NAME"
    assert outputs[5] == "no checkpoint 'x'; there are: none"


def group_members(group: int) -> list[str]:
    """The processes of a group that are not already dead."""
    found: list[str] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, state, _, leader, *_ = re.sub(r"\(.*\)", "", stat.read_text(errors="replace")).split()
            found += [pid] if leader == str(group) and state != "Z" else []
    return found


def test_checkpoints_die_with_the_program(start: Start, project: Path) -> None:
    driver = start(script(project, "import os\nx = 1\nos._exit(5)\n"))
    driver.do("b script.py:2", "c", "checkpoint a", "n", "checkpoint b", "restore a", "checkpoint c")
    driver.send("commands", lines=["cl", "c"])
    assert driver.process.wait(10) == 5
    time.sleep(0.2)
    assert group_members(driver.process.pid) == []


def test_sigkill_of_the_program_ends_its_checkpoints(start: Start, project: Path) -> None:
    driver = start(script(project, "import os, signal\nx = 1\nos.kill(os.getpid(), signal.SIGKILL)\n"))
    driver.do("b script.py:2", "c", "checkpoint a")
    driver.send("commands", lines=["c"])
    assert driver.process.wait(10) == 128 + signal.SIGKILL
