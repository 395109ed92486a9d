"""The pdb tool in real sandboxes."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from gumshoe.records import DebugFrame
from gumshoe.tools.runs.debug_session import BreakpointState, moved_line
from support.tools.tool_bench import Bench, Open

ENTRYPOINT = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_pdb_on_every_backend(open_bench: Open, backend: str) -> None:
    bench = open_bench(backend)
    observation = bench.call("pdb", command="b cart.py:17, item is None\nc\np item, total\nlocals")
    assert observation.text.splitlines() == [
        "breakpoint 1 at cart.py:17 (if item is None)",
        "> cart.py:17 in total (breakpoint 1)",
        "  15         total = 0",
        "  16         for item in self.items:",
        "->17             total += self.price(item)",
        "  18         return total",
        "item, total = (None, 6)",
        "self = <Cart items=[3, None]>",
        "total = 6",
        "item = None",
    ]
    data: Any = observation.data
    frames = [DebugFrame.model_validate(frame) for frame in data["frames"]]
    assert [frame.function for frame in frames] == ["test_total", "total"]
    assert (frames[-1].local_values["total"], data["state"]) == ("6", "stopped")
    assert bench.lines("view", path="cart.py", start=16, end=17)[-1].startswith("*17 ")


def test_post_mortem_in_one_call_and_the_end(bench: Bench) -> None:
    assert bench.lines("pdb", command="c")[:2] == [
        "> cart.py:11 in price (post-mortem of test_cart.py::test_total)",
        "TypeError: unsupported operand type(s) for *: 'NoneType' and 'int'",
    ]
    end = bench.text("pdb", command="c")
    assert end.startswith("program ended with exit code 1\noutput:\n")
    assert "1 failed, 1 passed" in end
    assert bench.text("pdb", command="p 1") == "the program is not started: set breakpoints, then c"
    assert bench.text("pdb", command=" ") == "error: command is empty. Usage: pdb(command: string)"
    assert bench.text("pdb", command="b nowhere.py:1") == "no file nowhere.py"


def test_steps_are_short_and_the_last_is_shown_with_its_source(bench: Bench) -> None:
    steps = bench.lines("pdb", command="b cart.py:15;;c;;n;;n")
    assert steps[1:4] == ["> cart.py:15 in total (breakpoint 1)", "> cart.py:16 in total", "> cart.py:17 in total"]
    steps = bench.lines("pdb", command="s\nr")
    assert steps[:3] == ["> cart.py:11 in price", "> cart.py:12 in price", "returns 6"]


def test_breakpoints_outlive_quit_eval_and_restart(bench: Bench) -> None:
    bench.call("pdb", command="b cart.py:17, item is None\ntbreak collect")
    bench.call("eval")
    assert bench.text("pdb", command="q") == "quit\nprogram ended with exit code 0"
    lines = bench.lines("pdb", command="b\nc\nrestart\nb")
    assert lines[0] == "breakpoint 1 at cart.py:17 (if item is None)"
    assert lines[1] == lines[-1] == "breakpoint 2 at cart.py:27 (temporary)"


def test_a_test_that_was_quit_leaves_nothing_that_fails_the_next_run(open_bench: Open, project: Path) -> None:
    (project / "test_cart.py").write_text(
        "import os, tempfile\nfrom cart import collect\n\ndef test_link():\n"
        "    link = os.path.join(tempfile.gettempdir(), 'link')\n    os.symlink('/', link)\n"
        "    try:\n        assert collect() == [0, 1]\n    finally:\n        os.remove(link)\n"
    )
    bench = open_bench()
    assert "in collect" in bench.text("pdb", command="b collect\nc")
    bench.call("pdb", command="q")
    assert "in collect" in bench.text("pdb", command="c")
    bench.call("rewrite", path="cart.py", code="# A cart.\n", start=1, end=1)
    assert bench.data("eval")["passed"]
    assert "in collect" in bench.text("pdb", command="c")


def test_breakpoints_move_with_the_code_and_are_dropped_with_it(bench: Bench) -> None:
    bench.call("pdb", command="b cart.py:17, item is None\nb cart.py:11\nc")
    bench.call("rewrite", path="cart.py", code="# new\n# lines\n", start=1, end=0)
    assert bench.data("view", path="cart.py", start=19, end=19)["breakpoints"] == [19]
    changed = "restarted: cart.py was changed"
    first = "breakpoint 1 at cart.py:19 (if item is None)"
    assert bench.lines("pdb", command="b") == [changed, first, "breakpoint 2 at cart.py:13"]
    bench.call("rewrite", path="cart.py", code="", start=13)
    dropped = "breakpoint 2 dropped: line cart.py:13 is gone"
    assert bench.lines("pdb", command="b") == [dropped, changed, first.replace("19", "18")]
    bench.call("pdb", command="c")
    bench.call("bash", command="sed -i '1i # behind its back' cart.py")
    assert bench.lines("pdb", command="b") == [changed, first]
    bench.call("pdb", command="q")
    bench.call("bash", command="rm cart.py")
    assert bench.lines("pdb", command="b") == ["breakpoint 1 dropped: line cart.py:19 is gone", "no breakpoints"]


def test_long_commands_are_interrupted_and_the_session_lives(open_bench: Open, backend: str, project: Path) -> None:
    (project / "wait.py").write_text("import time\nx = 3\ntime.sleep(600)\n")
    bench = open_bench(backend, timeout=6.0, entrypoint=("python", "wait.py"))
    observation = bench.call("pdb", command="b cart.py:11\nc")
    assert "> wait.py:3 in <module> (interrupt)" in observation.text
    assert "timed out: interrupted" in observation.text
    assert observation.data["timed_out"] is True
    assert bench.text("pdb", command="p x\nb") == "x = 3\nbreakpoint 1 at cart.py:11"
    assert bench.text("pdb", command="time.sleep(600)") == "interrupted\ntimed out: interrupted"


def test_programs_that_cannot_be_interrupted_are_killed(open_bench: Open, project: Path) -> None:
    (project / "stubborn.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True:\n    time.sleep(1)\n"
    )
    bench = open_bench(timeout=2.0, entrypoint=("python", "stubborn.py"))
    killed = "timed out, and could not be interrupted: the program was killed; breakpoints are kept"
    assert bench.lines("pdb", command="b cart.py:11\nc") == ["breakpoint 1 at cart.py:11", killed]
    assert bench.text("pdb", command="b") == "breakpoint 1 at cart.py:11"


def test_program_output_is_kept_apart_and_capped(open_bench: Open, project: Path) -> None:
    (project / "loud.py").write_text(
        'import sys\nprint(\'(Pdb) {"id": 1, "state": "exited"}\')\nsys.stdout.buffer.write(b"\\xff\\n" * 10)\n'
        "sys.stdout.write('x' * 50_000_000)\nsys.stdout.flush()\nvalue = 1\n"
    )
    observation = open_bench(entrypoint=("python", "loud.py")).call("pdb", command="b loud.py:6\nc\np 1 + 1")
    said, _, printed = observation.text.partition("\noutput:\n")
    assert said.endswith("1 + 1 = 2")
    assert printed.startswith('(Pdb) {"id": 1')
    assert (len(printed) < 1000, observation.data["state"]) == (True, "stopped")


def test_checkpoints_through_the_tool(bench: Bench) -> None:
    bench.call("pdb", command="b cart.py:16\nc\nn\ncheckpoint start\nn\nn")
    observation = bench.call("pdb", command="restore start\np total")
    assert observation.text.startswith("restored start\n")
    assert observation.text.endswith("total = 0")
    assert observation.data["checkpoints"] == ["start"]
    assert bench.lines("pdb", command="cl\nc")[1].startswith("> cart.py:11 in price (post-mortem")
    assert "program ended with exit code 1" in bench.text("pdb", command="c")


def test_log_and_catch_points_survive_an_edit(bench: Bench) -> None:
    seen = bench.call("pdb", command="log cart.py:17, item\ncatch TypeError\nc")
    assert seen.text.splitlines()[:5] == [
        "logpoint 1 at cart.py:17, item",
        "breakpoint 2 on TypeError",
        "cart.py:17 item = 3",
        "cart.py:17 item = None",
        "> cart.py:11 in price (raised, breakpoint 2)",
    ]
    data: Any = seen.data
    assert [each["value"] for each in data["results"][2]["log"]] == ["3", "None"]
    points = [BreakpointState.model_validate(point) for point in data["breakpoints"]]
    kinds = [(point.log, point.catch, point.hits, point.problem) for point in points]
    assert kinds == [("item", None, 2, None), (None, "TypeError", 1, None)]
    bench.call("rewrite", path="cart.py", start=1, end=1, code='"""A cart,\nand prices."""')
    again = bench.text("pdb", command="c")
    assert "cart.py:18 item = 3" in again
    assert "> cart.py:12 in price (raised, breakpoint 2)" in again


def test_breakpoints_stay_with_a_statement_that_is_rewritten() -> None:
    before = ["total = 0\n", "for price in prices:\n", "    total += price\n", "return total\n"]
    after = ["check(prices)\n", "total = 0\n", "if prices:\n", "    log(prices)\n"]
    after += ["    for price in sorted(prices):\n", "        total += price * rate\n", "return total\n"]
    assert [moved_line(before, after, line) for line in (1, 2, 3, 4, 9)] == [2, 5, 6, 7, None]
    assert moved_line(["x = 1\n", "y = 2\n"], ["while True:\n", "    pass\n"], 2) == 2
    assert moved_line(["a\n", "b\n", "c\n", "d\n"], ["a\n", "d\n"], 3) is None


def test_what_was_answered_before_the_program_dies_is_shown(bench: Bench) -> None:
    code = "import os\n\ndef collect():\n    number = 7\n    os._exit(3)\n\nCart = None\n"
    bench.workspace.write_text("cart.py", code)
    bench.workspace.write_text("test_cart.py", "from cart import collect\n\ndef test_a():\n    collect()\n")
    observation = bench.call("pdb", command="b cart.py:5\nc\np number\nn\nw")
    lines = observation.text.splitlines()
    assert lines[:2] == ["breakpoint 1 at cart.py:5", "> cart.py:5 in collect (breakpoint 1)"]
    assert lines[-2:] == ["number = 7", "program ended with exit code 3"]
    assert observation.data["exit_code"] == 3


@pytest.mark.parametrize(
    ("entrypoint", "refusal"),
    [
        (("pytest", "-q"), None),
        (("python3", "-X", "dev", "-B", "-m", "pytest", "-q"), None),
        (("timeout", "60", *ENTRYPOINT), None),
        (("nice", "-n", "5", *ENTRYPOINT), None),
        (("bash", "-lc", shlex.join(ENTRYPOINT)), None),
        (("bash", "-c", f"true && {shlex.join(ENTRYPOINT)}"), "cannot debug bash: it is not a Python program"),
        (("make", "test"), "cannot debug make: it is not a Python program"),
        (("python", "--no-such-option", "x.py"), "no-such-option"),
    ],
)
def test_launchers_are_looked_through(open_bench: Open, entrypoint: tuple[str, ...], refusal: str | None) -> None:
    observation = open_bench(entrypoint=entrypoint).call("pdb", command="b cart.py:11\nc")
    assert (observation.failure and observation.failure.kind) == (refusal and "no_debugger")
    assert (refusal or "> cart.py:11 in price (breakpoint 1)") in observation.text


def test_lines_are_numbered_as_python_numbers_them(bench: Bench) -> None:
    odd = "# form feed \x0c\n# \u2028 \x85 \x1c\n\ndef collect():\n    return 1\n\nCart = None\n"
    bench.workspace.write_text("cart.py", odd)
    assert "->5     return 1" in bench.text("pdb", command="b cart.py:5\nc\nc")
    assert bench.lines("view", path="cart.py", start=5, end=5)[1] == "*5     return 1"
