"""What a program sees of a debugger that traces as late as its breakpoints allow: nothing that it would miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tools.driver import Start, place, script

UNDISTURBED = {
    "nothing is traced before a function with a breakpoint or between tests": """\
        import sys
        import late

        COLLECTED = sys.gettrace()

        def test_before():
            assert COLLECTED is None
            assert sys.gettrace() is None

        def test_add():
            late.add(1)
            assert sys.gettrace() is not None

        def test_after():
            assert sys.gettrace() is None
    """,
    "a program that traces itself keeps its trace function": """\
        import sys, threading
        import late

        EVENTS = []

        def trace(frame, event, arg):
            EVENTS.append(frame.f_code)

        def test_before():
            late.add(1)
            sys.settrace(trace)
            late.add(2)

        def test_after():
            late.add(3)
            thread = threading.Thread(target=int)
            thread.start()
            thread.join()
            assert sys.gettrace() is trace
            assert EVENTS.count(late.add.__code__) == 2
            sys.settrace(None)
    """,
    "a program that traces its threads, or profiles": """\
        import sys, threading
        import late

        CALLED, STARTED = [], []

        def trace(frame, event, arg):
            STARTED.append(frame.f_code)

        def test_before():
            late.add(1)
            threading.settrace(trace)

        def test_after():
            thread = threading.Thread(target=late.add, args=(1,))
            thread.start()
            thread.join()
            assert late.add.__code__ in STARTED
            threading.settrace(None)

        def test_profile():
            sys.setprofile(lambda frame, event, arg: CALLED.append(frame.f_code.co_name) if event == "call" else None)
            late.add(1)
            sys.setprofile(None)
            assert CALLED == ["add"]
    """,
}


@pytest.mark.parametrize("name", UNDISTURBED)
def test_programs_do_not_notice(start_test: Start, name: str) -> None:
    reply = start_test(UNDISTURBED[name]).do("b late.py:2, n == 7", "log late.py:2, n", "c")
    assert (reply["state"], reply["exit_code"]) == ("exited", 0)
    if "itself" in name:
        assert [each["value"] for each in reply["results"][-1]["log"]] == ["1"]


def test_what_warns_when_it_is_compiled_warns_once(start_test: Start) -> None:
    driver = start_test("import late\n\ndef test_add():\n    late.add(2)\n", "def add(n):\n    return n is 1\n")
    driver.check(("b late.py:2", "breakpoint 1 at late.py:2"), ("c", "breakpoint late.py:2 add"), ("c", ""))
    assert driver.printed.count("SyntaxWarning") == 1


IN_A_THREAD = """\
    import threading
    def test_it():
        thread = threading.Thread(target=__import__, args=("late",))
        thread.start()
        thread.join()
        import late
        assert late.add(1) == 2
"""
UNDER_ANOTHER_TRACE_FUNCTION = """\
    import sys
    sys.settrace(lambda frame, event, arg: None)
    import late

    def test_add():
        late.add(1)
"""


@pytest.mark.parametrize("text", [IN_A_THREAD, UNDER_ANOTHER_TRACE_FUNCTION], ids=["thread", "traced"])
def test_a_module_that_is_imported_elsewhere(start_test: Start, text: str) -> None:
    driver = start_test(text)
    assert place(driver.do("b late.py:2", "c")) == ("breakpoint", "late.py", 2, "add")
    assert driver.do("c")["exit_code"] == 0


LOADER = """
import importlib.machinery
import os
import sys


class Loader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, **options):
        return super().source_to_code(data.replace(b"+ 1", b"+ 100"), path, **options)


def find(folder):
    if folder != os.getcwd():
        raise ImportError
    return importlib.machinery.FileFinder(folder, (Loader, [".py"]))


sys.path_hooks.insert(0, find)
sys.path_importer_cache.clear()
"""


def test_a_loader_that_changes_the_source(start_test: Start, project: Path) -> None:
    script(project, LOADER, "conftest.py")
    driver = start_test("import late\n\ndef test_add():\n    assert late.add(1) == 101\n")
    assert place(driver.do("b late.py:2", "c")) == ("breakpoint", "late.py", 2, "add")
    assert driver.do("c")["exit_code"] == 0


def test_a_breakpoint_in_a_conftest_and_an_exception_elsewhere_later(start_test: Start, project: Path) -> None:
    conftest = """\
        import pytest
        def pytest_configure(config):
            config.value = 1

        @pytest.fixture
        def one():
            return 1
    """
    script(project, conftest, "conftest.py")
    tests = """\
        import late
        def test_first(one):
            try:
                late.fail()
            except KeyError:
                pass
        def test_second(one):
            test_first(one)
    """
    driver = start_test(tests, "def fail():\n    raise KeyError('x')\n")
    driver.do("b conftest.py:1", "b conftest.py:3", "b conftest.py:7")
    driver.check(
        ("c", "breakpoint conftest.py:1 <module>"),
        ("c", "breakpoint conftest.py:3 pytest_configure"),
        ("c", "breakpoint conftest.py:7 one"),
        ("c", "breakpoint conftest.py:7 one"),
        ("catch KeyError", "breakpoint 4 on KeyError"),
        ("c", "raised late.py:2 fail: KeyError: 'x'"),
    )
    assert driver.do("c")["exit_code"] == 0
