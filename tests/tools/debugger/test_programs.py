"""The kinds of programs that can be debugged. No sandbox: the injected debugger alone."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from support.tools.driver import Start, place, script


def test_module_with_a_package(start: Start, project: Path) -> None:
    (project / "package").mkdir()
    script(project, "", "package/__init__.py")
    script(project, "import sys\nfrom . import other\nsys.exit(other.code())\n", "package/__main__.py")
    script(project, "def code():\n    return 3\n", "package/other.py")
    driver = start("-m", "package")
    assert place(driver.do("b package/other.py:code", "c")) == ("breakpoint", "package/other.py", 2, "code")
    assert driver.do("c")["exit_code"] == 3
    assert driver.process.wait(60) == 3


def test_exit_codes(start: Start, project: Path) -> None:
    assert start("-c", "import sys; sys.exit('bad')").do("c")["exit_code"] == 1
    assert start("-c", "raise SystemExit").do("c")["exit_code"] == 0
    assert start("-c", "raise KeyboardInterrupt").do("c")["exit_code"] == 130
    assert start("no_such_script.py").do("c")["exit_code"] == 2
    assert start(".").do("c")["exit_code"] == 1
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


def test_values_have_no_addresses_but_texts_keep_theirs(start_script: Start) -> None:
    driver = start_script("""\
        class Plain:
            pass
        plain, text = Plain(), "<lamp at 0x12ab>"
        plain.other, plain.text, pair = Plain(), text, [Plain(), len, __import__("threading").Event()]
        x = 1
    """)
    plain, pair, text = driver.outputs("b script.py:5", "c", "p plain", "p pair", "p text")[2:]
    assert plain == "plain = <Plain other=<Plain> text='<lamp at 0x12ab>'>"
    assert pair.startswith("pair = [<__main__.Plain object>, <built-in function len>, <threading.Event")
    assert " at 0x" not in pair
    assert text == "text = '<lamp at 0x12ab>'"


def test_values_that_cannot_be_printed(start_script: Start) -> None:
    driver = start_script("""\
        class Bad:
            def __repr__(self):
                raise RuntimeError("no")
        bad = Bad()
        big = "x" * 1000000
        print()
    """)
    outputs = driver.outputs("b script.py:6", "c", "p bad", "locals", "p big")
    assert outputs[2] == "bad cannot be printed: RuntimeError: no"
    assert "bad = <Bad instance>" in outputs[3]
    assert len(outputs[3]) < 500
    assert len(outputs[4]) < 7000
    assert "characters cut" in outputs[4]


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
        ("p last", "last = 2"),
        ("p both", f"both = [{unknown}, 2]"),
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
