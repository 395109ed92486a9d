"""What could hang the debugger, and does not. No sandbox: the injected debugger alone."""

from __future__ import annotations

import json
import time

import pytest

from support.tools.driver import PYTEST, Start, place, wait_for


@pytest.mark.parametrize("wait", ["time.sleep(600)", "while True: pass"])
def test_interrupt_stops_a_running_program(start_script: Start, wait: str) -> None:
    driver = start_script(f"import time\ndef f(x):\n    print('in f', flush=True)\n    {wait}\nf(3)\n")
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
    driver.interrupt()  # nothing runs
    assert driver.outputs("p item") == ["item = 3"]
    driver.send(lines=["[print('x', flush=True) for x in iter(int, 1)]", "p item"])
    time.sleep(0.5)
    driver.interrupt()
    reply = driver.receive()
    assert [each["output"] for each in reply["results"]] == ["interrupted", "item = 3"]
    assert place(reply)[2] == 17


def test_children_and_forks_run_free(start_script: Start) -> None:
    driver = start_script("""\
        import multiprocessing, os, subprocess, sys
        from cart import Cart, collect
        pid = os.fork()
        if pid == 0:
            collect()
            os._exit(7)
        print(os.waitpid(pid, 0)[1] >> 8, flush=True)
        print(subprocess.call([sys.executable, "-c", "import cart; cart.collect(); print('child')"]), flush=True)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(Cart.price, [1, 2]))
        collect()
    """)
    assert place(driver.do("b collect", "b Cart.price", "c", "w"))[3] == "collect"
    assert driver.do("c")["exit_code"] == 0
    assert driver.printed.split("\n") == ["7", "child", "0", "[2, 4]", ""]


def test_breakpoint_in_a_thread(start_script: Start) -> None:
    driver = start_script("""\
        import threading
        def work(number):
            double = number * 2
            return double
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
    """)
    reply = driver.do("b script.py:4", "c")
    time.sleep(0.1)  # The main thread comes to its end.
    seen = set()
    while reply["state"] == "stopped":
        seen |= {*driver.outputs("p double")}
        reply = driver.do("c")
    assert seen == {"double = 0", "double = 2"}
    assert driver.process.wait(60) == 0


def test_output_that_looks_like_answers_is_only_output(start_script: Start) -> None:
    fake = json.dumps({"id": 1, "state": "exited", "results": [], "stop": None})
    driver = start_script(f"print('(Pdb) ')\nprint({fake!r})\nimport os\nos.write(1, b'\\xff\\xfe')\nx = 1\n")
    assert place(driver.do("b script.py:5", "c"))[2] == 5
    assert fake in driver.printed


@pytest.mark.parametrize(
    "text",
    [
        "import os, sys; sys.stdout.close()\nos.closerange(0, 100)",
        "import builtins, io, json, os\ndef broken(*args, **kwargs): raise RuntimeError('replaced')\n"
        "os.read = os.write = io.open = builtins.open = os.getpid = json.dumps = json.loads = broken",
    ],
    ids=["closes everything", "replaces builtins"],
)
def test_programs_that_take_away_what_the_debugger_uses(start_script: Start, text: str) -> None:
    driver = start_script(f"{text}\nx = 1\ny = 2\n")
    line = text.count("\n") + 3
    assert driver.outputs(f"b script.py:{line}", "c", "p x", "l")[2] == "x = 1"
    assert driver.do("c")["exit_code"] == 0


def test_stdin_is_empty(start_script: Start) -> None:
    driver = start_script("import sys\nprint(repr(sys.stdin.read()))\n")
    driver.do("c")
    assert driver.printed == "''\n"


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
