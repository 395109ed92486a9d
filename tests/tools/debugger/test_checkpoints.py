"""Going back to an earlier state of a program. No sandbox: the injected debugger alone."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from pathlib import Path

from support.tools.driver import PYTEST, Start, place, wait_for


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


def test_checkpoints_die_with_the_program(start_script: Start) -> None:
    driver = start_script("import os\nx = 1\nos._exit(5)\n")
    driver.do("b script.py:2", "c", "checkpoint a", "n", "checkpoint b", "restore a", "checkpoint c")
    driver.send(lines=["cl", "c"])
    assert driver.process.wait(60) == 5
    deadline = time.monotonic() + 30
    while group_members(driver.process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert group_members(driver.process.pid) == []


def test_sigkill_of_the_program_ends_its_checkpoints(start_script: Start) -> None:
    driver = start_script("import os, signal\nx = 1\nos.kill(os.getpid(), signal.SIGKILL)\n")
    driver.do("b script.py:2", "c", "checkpoint a")
    driver.send(lines=["c"])
    assert driver.process.wait(60) == 128 + signal.SIGKILL
