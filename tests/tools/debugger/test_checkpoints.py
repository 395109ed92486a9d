"""Going back to an earlier state of a program. No sandbox: the injected debugger alone."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from pathlib import Path

from support.tools.driver import PYTEST, Start, place, script, wait_for


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
    assert driver.process.wait(60) == 1


def test_breakpoints_outlive_a_restore(start: Start) -> None:
    driver = start(*PYTEST)
    driver.do("b cart.py:16", "c", "checkpoint here", "b collect")
    assert [each["line"] for each in driver.do("restore here")["breakpoints"]] == [16, 27]


def test_interrupt_after_a_restore(start: Start, project: Path) -> None:
    name = script(project, "import time\nx = 1\nprint('go', flush=True)\ntime.sleep(600)\n")
    driver = start(name)
    driver.do("b script.py:2", "c", "checkpoint a", "n", "restore a")
    driver.send(lines=["cl", "c"])
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
    for name in ("\ud800", "x" * 200, "\0", ""):
        assert driver.outputs(f"restore {name}") == [f"no checkpoint {name!r}; there are: none"]


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
    driver.send(lines=["cl", "c"])
    assert driver.process.wait(60) == 5
    deadline = time.monotonic() + 30
    while group_members(driver.process.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert group_members(driver.process.pid) == []


def test_sigkill_of_the_program_ends_its_checkpoints(start: Start, project: Path) -> None:
    driver = start(script(project, "import os, signal\nx = 1\nos.kill(os.getpid(), signal.SIGKILL)\n"))
    driver.do("b script.py:2", "c", "checkpoint a")
    driver.send(lines=["c"])
    assert driver.process.wait(60) == 128 + signal.SIGKILL
