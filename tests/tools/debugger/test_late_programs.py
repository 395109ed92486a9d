"""What a program sees of a debugger that traces as late as its breakpoints allow: nothing that it would miss."""

from __future__ import annotations

from pathlib import Path

from support.tools.driver import PYTEST, Start, place, script

ADD = "def add(n):\n    return n + 1\n"


def test_nothing_is_traced_before_a_function_with_a_breakpoint_or_between_tests(start: Start, project: Path) -> None:
    script(project, ADD, "late.py")
    text = """\
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
    """
    script(project, text, "test_trace.py")
    reply = start(*PYTEST, "test_trace.py").do("b late.py:2, n == 7", "c")
    assert (reply["state"], reply["exit_code"]) == ("exited", 0)


def test_what_warns_when_it_is_compiled_warns_once(start: Start, project: Path) -> None:
    script(project, "def add(n):\n    return n is 1\n", "late.py")
    script(project, "import late\n\ndef test_add():\n    late.add(2)\n", "test_a.py")
    driver = start(*PYTEST, "test_a.py")
    assert place(driver.do("b late.py:2", "c")) == ("breakpoint", "late.py", 2, "add")
    assert driver.do("c")["state"] == "exited"
    assert driver.printed.count("SyntaxWarning") == 1


TRACED = """\
import sys
import threading
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
"""


def test_a_program_that_traces_itself_keeps_its_trace_function(start: Start, project: Path) -> None:
    script(project, ADD, "late.py")
    script(project, TRACED, "test_traced.py")
    reply = start(*PYTEST, "test_traced.py").do("b late.py:2, n == 7", "log late.py:2, n", "c")
    assert (reply["state"], reply["exit_code"]) == ("exited", 0)
    assert [each["value"] for each in reply["results"][-1]["log"]] == ["1"]


def test_a_module_that_is_imported_under_another_trace_function(start: Start, project: Path) -> None:
    script(project, ADD, "late.py")
    text = """\
        import sys
        sys.settrace(lambda frame, event, arg: None)
        import late

        def test_add():
            late.add(1)
    """
    script(project, text, "test_traced.py")
    reply = start(*PYTEST, "test_traced.py").do("b late.py:2", "c")
    assert place(reply) == ("breakpoint", "late.py", 2, "add")


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


def test_a_loader_that_changes_the_source(start: Start, project: Path) -> None:
    script(project, LOADER, "conftest.py")
    script(project, ADD, "late.py")
    script(project, "import late\n\ndef test_add():\n    assert late.add(1) == 101\n", "test_a.py")
    driver = start(*PYTEST, "test_a.py")
    assert place(driver.do("b late.py:2", "c")) == ("breakpoint", "late.py", 2, "add")
    assert driver.do("c")["exit_code"] == 0


PROFILED = """
import sys
import threading
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
"""


def test_programs_that_trace_their_threads_or_profile(start: Start, project: Path) -> None:
    script(project, ADD, "late.py")
    script(project, PROFILED, "test_profiled.py")
    reply = start(*PYTEST, "test_profiled.py").do("b late.py:2, n == 7", "c")
    assert (reply["state"], reply["exit_code"]) == ("exited", 0)
