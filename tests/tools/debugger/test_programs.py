"""The kinds of programs that can be debugged, how they fail, and what could hang the debugger. No sandbox."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from support.tools.driver import PYTEST, Start, place, script, wait_for


def test_module_with_a_package(start: Start, project: Path) -> None:
    (project / "package").mkdir()
    script(project, "", "package/__init__.py")
    script(project, "import sys\nfrom . import other\nsys.exit(other.code())\n", "package/__main__.py")
    script(project, "def code():\n    return 3\n", "package/other.py")
    driver = start("-m", "package")
    assert place(driver.do("b package/other.py:code", "c")) == ("breakpoint", "package/other.py", 2, "code")
    assert driver.do("c")["exit_code"] == driver.process.wait(60) == 3


def test_exit_codes(start: Start) -> None:
    assert start("-c", "import sys; sys.exit('bad')").do("c")["exit_code"] == 1
    assert start("-c", "raise SystemExit").do("c")["exit_code"] == 0
    assert start("-c", "raise KeyboardInterrupt").do("c")["exit_code"] == 130
    assert start("no_such_script.py").do("c")["exit_code"] == 2
    assert start(".").do("c")["exit_code"] == 1
    assert start().process.wait(60) == 2
    assert start("-m", "no_such_module").do("c")["exit_code"] == 1


def test_program_sees_itself_as_python_would_run_it(start_script: Start, project: Path, python: str) -> None:
    driver = start_script(
        """\
        import os, sys, pickle
        class Thing:
            pass
        pickle.loads(pickle.dumps(Thing()))
        entries = [os.path.realpath(each or ".") for each in sys.path]
        print(__name__, os.path.basename(__file__), entries, sys.argv, "GUMSHOE_CONTROL" in os.environ)
        """,
        "x",
    )
    driver.do("c")
    plain = subprocess.run([python, "script.py", "x"], cwd=project, capture_output=True, text=True, check=True).stdout
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
        assert driver.process.wait(60) == 2
        assert driver.printed == f"cannot debug {name}: it is not a Python program\n"


def test_pytest_called_by_a_script(start_script: Start) -> None:
    driver = start_script("import pytest, sys\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider']))\n")
    driver.check(("c", "post-mortem cart.py:11 price: TypeError..."))


def test_program_that_changes_its_folder(start_script: Start) -> None:
    driver = start_script("import os\nos.chdir('/')\nimport cart\ncart.collect()\nx = 1\n")
    reply = driver.do("b cart.py:collect", "b script.py:5", "c", "c", "b cart.py:22", "l")
    assert place(reply)[1:3] == ("script.py", 5)
    assert "->5 x = 1" in reply["results"][-1]["output"]


def test_breakpoint_calls(start_script: Start, start_test: Start) -> None:
    start_script("import pdb\ndef f(x):\n    pdb.set_trace()\n    return x\nf(3)\n").check(
        ("c", "breakpoint() call script.py:3 f"), ("p x", "x = 3"), ("n", "step script.py:4 f"), ("p f(4)", "f(4) = 4")
    )
    driver = start_test("import pdb\ndef test_it():\n    x = 3\n    pdb.set_trace()\n    assert x\n")
    driver.check(("c", "breakpoint() call test_late.py:4 test_it"), ("p x", "x = 3"))
    assert driver.do("c")["exit_code"] == 0


def test_a_pwd_of_another_folder_does_not_make_its_files_the_workspaces(start: Start, project: Path) -> None:
    """A step into the standard library goes on in the next line of the project."""
    name = script(project, "import textwrap\ntextwrap.indent('a', ' ')\nprint('done')\n")
    driver = start(name, PWD="/")
    driver.do(f"b {name}:2", "c")
    assert place(driver.do("s"))[1:3] == (name, 3)


def test_values_have_no_addresses_but_texts_keep_theirs_and_some_cannot_be_printed(start_script: Start) -> None:
    driver = start_script("""\
        class Plain:
            pass
        class Bad:
            def __repr__(self):
                raise RuntimeError("no")
        plain, text, bad, big = Plain(), "<lamp at 0x12ab>", Bad(), "x" * 1000000
        plain.other, plain.text, pair = Plain(), text, [Plain(), len, __import__("threading").Event()]
        x = 1
    """)
    driver.check(
        ("b script.py:8", "breakpoint 1 at script.py:8"),
        ("c", "breakpoint script.py:8 <module>"),
        ("p plain", "plain = <Plain other=<Plain> text='<lamp at 0x12ab>'>"),
        ("p text", "text = '<lamp at 0x12ab>'"),
        ("p bad", "bad cannot be printed: RuntimeError: no"),
        ("locals", "...\nbad = <Bad instance>..."),
    )
    pair, known, big = driver.outputs("p pair", "locals", "p big")
    assert pair.startswith("pair = [<__main__.Plain object>, <built-in function len>, <threading.Event")
    assert " at 0x" not in pair
    assert (len(known) < 1500, len(big) < 7000, "characters cut" in big) == (True, True, True)


def test_a_value_that_is_slow_to_print_does_not_cost_the_others(start_script: Start) -> None:
    driver = start_script("""\
        import time

        class Slow:
            def __repr__(self):
                time.sleep(30)

        class Bad(Exception):
            __str__ = Slow.__repr__

        def work(first, slow, last):
            both = [slow, last]
            return slow

        slow = Slow()
        work(1, slow, 2)
        raise Bad
    """)
    began, unknown = time.monotonic(), "<Slow, not shown: too slow>"
    driver.check(
        ("b script.py:12", "breakpoint 1 at script.py:12"),
        ("c", "breakpoint script.py:12 work"),
        ("locals", f"first = 1\nslow = {unknown}\nlast = 2\nboth = [{unknown}, 2]"),
        ("args", f"first = 1\nslow = {unknown}\nlast = 2"),
        ("p slow", f"slow = {unknown}"),
        ("pp slow", f"slow = {unknown}"),
        ("slow", unknown),
        ("r", "return script.py:12 work"),
        ("retval", f"returns {unknown}"),
        ("cl", "deleted breakpoint 1"),
        ("c", "post-mortem script.py:16 <module>: Bad"),
        ("exception", "Bad"),
        ("p 1 + 1", "1 + 1 = 2"),
    )
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("import no_such_module\n", "post-mortem test_late.py:1 <module>: ...no_such_module..."),
        ("import sys\ndef test_it():\n    sys.exit(3)\n", "post-mortem test_late.py:3 test_it: SystemExit: 3"),
        ("import pytest\n@pytest.mark.xfail\ndef test_x():\n    assert 0\ndef test_y():\n    pytest.skip()\n", ""),
    ],
    ids=["cannot be collected", "exits", "expected"],
)
def test_post_mortem_of_pytest(start_test: Start, text: str, answer: str) -> None:
    start_test(text).check(("c", answer))


@pytest.mark.parametrize("arguments", [("-m", "unittest", "-q", "tests_u"), ("tests_u.py",)])
def test_post_mortem_of_unittest(start: Start, project: Path, arguments: tuple[str, ...]) -> None:
    text = """\
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
    """
    script(project, text, "tests_u.py")
    driver = start(*arguments)
    driver.check(("c", "post-mortem cart.py:11 price: TypeError..."))
    assert driver.do("c")["stop"]["test"].endswith("Tests.test_b")
    driver.check(
        ("w", "...test_b: self.assertEqual(1, 2)"),
        ("exception", "AssertionError: 1 != 2"),
        ("c", "post-mortem tests_u.py:14 test_c: AssertionError: 0 != 1"),
        ("c", "post-mortem tests_u.py:14 test_c: AssertionError: 2 != 1"),
    )
    assert driver.do("c")["exit_code"] == 1


def test_post_mortem_of_a_script(start_script: Start) -> None:
    driver = start_script("import sys\ndef fail(x):\n    return 1 / x\nprint(sys.argv)\nfail(0)\n", "one", "two")
    driver.check(("c", "post-mortem script.py:3 fail: ZeroDivisionError: division by zero"), ("p x", "x = 0"))
    assert driver.do("c")["exit_code"] == driver.process.wait(60) == 1
    assert "['script.py', 'one', 'two']" in driver.printed
    assert "ZeroDivisionError" in driver.printed
    assert "gumshoe" not in driver.printed


def test_recursion_without_end(start_script: Start) -> None:
    reply = start_script("def again(n):\n    return again(n + 1)\nagain(0)\n").do("b script.py:3", "c", "c", "w")
    assert (place(reply)[0], len(reply["frames"])) == ("post-mortem", 30)


DEEP = """\
def again(n):
    return again(n + 1)

def price(n):
    m = n
    return m

def deep():
    try:
        again(0)
    except RecursionError:
        pass
"""


@pytest.mark.parametrize("at_first", [True, False])
def test_breakpoints_outlast_a_recursion_that_is_too_deep(start_test: Start, at_first: bool) -> None:
    """The interpreter ends tracing where it is too deep to call a trace function."""
    tests = (
        f"from late import deep, price\n\ndef test_1():\n    {'price(1)' if at_first else 'pass'}\n\n"
        "def test_2():\n    deep()\n    price(2)\n\ndef test_3():\n    price(3)\n"
    )
    answers = start_test(tests, DEEP).do("b late.py:6", *["c", "p n"] * (3 if at_first else 2))["results"]
    seen = [each["output"] for each in answers if each["command"] == "p n"]
    before, over = ["n = 1"] * at_first, "not run: the program has ended"
    # Before Python 3.8, tracing begins again with the next test.
    assert seen in ([*before, "n = 2", "n = 3"], [*before, "n = 3", over])


def test_it_is_said_where_a_recursion_that_is_too_deep_ends_tracing(start_script: Start) -> None:
    reply = start_script(f"{DEEP}price(1)\ndeep()\nx = 2\ny = 3\n").do("b script.py:6", "c", "b script.py:15", "c")
    assert reply["state"] == "exited"
    assert "the program: too deep a recursion" in reply["results"][-1]["output"]


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


def test_stdin_is_empty_and_output_that_looks_like_answers_is_only_output(start_script: Start) -> None:
    fake = json.dumps({"id": 1, "state": "exited", "results": [], "stop": None})
    driver = start_script(
        f"import os, sys\nprint('(Pdb)', repr(sys.stdin.read()))\nprint({fake!r})\nos.write(1, b'\\xff\\xfe')\nx = 1\n"
    )
    assert place(driver.do("b script.py:5", "c"))[2] == 5
    assert f"(Pdb) ''\n{fake}\n" in driver.printed


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


def test_debugger_ends_with_its_host(start: Start) -> None:
    driver = start(*PYTEST)
    driver.do("b collect", "c")
    driver.lines.close()
    driver.socket.shutdown(2)
    assert driver.process.wait(60) == 1
