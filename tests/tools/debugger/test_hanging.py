"""What could hang the debugger, and does not. No sandbox: the injected debugger alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from support.tools.driver import PYTEST, Start, place, script, wait_for


@pytest.mark.parametrize("wait", ["time.sleep(600)", "while True: pass"])
def test_interrupt_stops_a_running_program(start: Start, project: Path, wait: str) -> None:
    name = script(project, f"import time\ndef f(x):\n    print('in f', flush=True)\n    {wait}\nf(3)\n")
    driver = start(name)
    driver.send(lines=["b cart.py:11", "c", "p x"])
    wait_for(driver, "in f")
    time.sleep(0.3)  # Python notices a signal that comes just before a sleep only after it.
    driver.interrupt()
    reply = driver.receive()
    assert place(reply) == ("interrupt", "script.py", 4, "f")
    assert reply["results"][-1]["output"] == "x = 3"
    assert [each["number"] for each in reply["breakpoints"]] == [1]
    assert driver.outputs("p 1 + 1") == ["1 + 1 = 2"]


def test_interrupt_ends_a_long_evaluation_only(start: Start) -> None:
    driver = start(*PYTEST)
    driver.do("b cart.py:17", "c")
    driver.send(lines=["[print('x', flush=True) for x in iter(int, 1)]", "p item"])
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
        print(os.waitpid(pid, 0)[1] >> 8, flush=True)
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
    assert driver.process.wait(60) == 0


def test_a_stop_in_a_thread_outlives_the_main_thread(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        import threading
        def work():
            value = 3
            return value
        threading.Thread(target=work).start()
        """,
    )
    driver = start(name)
    assert driver.do("b script.py:4", "c")["state"] == "stopped"
    time.sleep(0.1)  # The main thread comes to its end.
    reply = driver.do("p value")
    assert (reply["state"], reply["results"][-1]["output"]) == ("stopped", "value = 3")
    assert driver.do("c")["exit_code"] == 0


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
    assert driver.process.wait(60) == 1


def test_usage(start: Start) -> None:
    driver = start()
    assert driver.process.wait(60) == 2
    assert driver.printed.startswith("usage: ")
