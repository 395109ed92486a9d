"""The kinds of programs that can be debugged. No sandbox: the injected debugger alone."""

from __future__ import annotations

from pathlib import Path

from support.tools.driver import PYTEST, Start, place, script


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
        assert driver.process.wait(60) == 2
        assert driver.printed == f"cannot debug {name}: it is not a Python program\n"


def test_pytest_called_by_a_script(start: Start, project: Path) -> None:
    name = script(project, "import pytest, sys\nsys.exit(pytest.main(['-q', '-p', 'no:cacheprovider']))\n")
    assert place(start(name).do("c"))[:2] == ("post-mortem", "cart.py")


def test_program_that_changes_its_folder(start: Start, project: Path) -> None:
    name = script(project, "import os\nos.chdir('/')\nimport cart\ncart.collect()\nx = 1\n")
    reply = start(name).do("b cart.py:collect", "b script.py:5", "c", "c", "b cart.py:22", "l")
    assert place(reply)[1:3] == ("script.py", 5)
    assert "->5 x = 1" in reply["results"][-1]["output"]


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


def test_a_pwd_of_another_folder_does_not_make_its_files_the_workspaces(start: Start, project: Path) -> None:
    """A step into the standard library goes on in the next line of the project."""
    name = script(project, "import textwrap\ntextwrap.indent('a', ' ')\nprint('done')\n")
    driver = start(name, PWD="/")
    driver.do(f"b {name}:2", "c")
    assert place(driver.do("s"))[1:3] == (name, 3)


def test_a_breakpoint_in_a_module_that_another_thread_imports(start: Start, project: Path) -> None:
    script(project, "def add(n):\n    return n + 1\n", "late.py")
    script(
        project,
        """\
        import threading
        def test_it():
            thread = threading.Thread(target=__import__, args=("late",))
            thread.start()
            thread.join()
            import late
            assert late.add(1) == 2
        """,
        "test_late.py",
    )
    driver = start("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_late.py")
    assert place(driver.do("b late.py:2", "c")) == ("breakpoint", "late.py", 2, "add")
    assert driver.do("c")["exit_code"] == 0


def test_a_breakpoint_in_a_conftest_and_an_exception_elsewhere_later(start: Start, project: Path) -> None:
    script(project, "import pytest\n\n@pytest.fixture\ndef one():\n    return 1\n", "conftest.py")
    script(project, "def fail():\n    raise KeyError('x')\n", "late.py")
    script(
        project,
        """\
        import late
        def test_first(one):
            try:
                late.fail()
            except KeyError:
                pass
        def test_second(one):
            test_first(one)
        """,
        "test_late.py",
    )
    driver = start("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_late.py")
    assert place(driver.do("b conftest.py:1", "c"))[:3] == ("breakpoint", "conftest.py", 1)
    assert place(driver.do("b conftest.py:5", "c"))[:3] == ("breakpoint", "conftest.py", 5)
    assert place(driver.do("c"))[:3] == ("breakpoint", "conftest.py", 5)
    assert place(driver.do("catch KeyError", "c"))[1:3] == ("late.py", 2)
    assert driver.do("c")["exit_code"] == 0
