"""Where the debugger stops when a test or a program fails. No sandbox: the injected debugger alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tools.driver import PYTEST, Start, place, script


def test_post_mortem_of_a_pytest_test_in_one_request(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("c", "p item", "n", "u", "p total", "exception")
    assert place(reply) == ("post-mortem", "cart.py", 17, "total")
    assert reply["stop"]["test"].endswith("test_cart.py::test_total")
    outputs = [each["output"] for each in reply["results"]]
    assert outputs[1] == "item = None"
    assert outputs[2].startswith("this is a post-mortem")
    assert outputs[4] == "total = 6"
    assert outputs[5].startswith("TypeError")
    assert driver.do("c")["exit_code"] == 1


def test_post_mortem_of_a_file_that_cannot_be_collected(start: Start, project: Path) -> None:
    script(project, "import no_such_module\n", "test_bad.py")
    reply = start(*PYTEST).do("c")
    assert place(reply) == ("post-mortem", "test_bad.py", 1, "<module>")
    assert "no_such_module" in reply["stop"]["exception"]


def test_post_mortem_of_a_test_that_exits(start: Start, project: Path) -> None:
    script(project, "import sys\ndef test_it():\n    sys.exit(3)\n", "test_cart.py")
    reply = start(*PYTEST).do("c")
    assert reply["stop"]["exception"] == "SystemExit: 3"


def test_expected_failures_do_not_stop(start: Start, project: Path) -> None:
    text = "import pytest\n@pytest.mark.xfail\ndef test_x():\n    assert 0\ndef test_y():\n    pytest.skip()\n"
    script(project, text, "test_cart.py")
    assert start(*PYTEST).do("c")["exit_code"] == 0


@pytest.mark.parametrize("arguments", [("-m", "unittest", "-q", "tests_u"), ("tests_u.py",)])
def test_post_mortem_of_unittest(start: Start, project: Path, arguments: tuple[str, ...]) -> None:
    script(
        project,
        """\
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
        """,
        "tests_u.py",
    )
    driver = start(*arguments)
    assert place(driver.do("c"))[:3] == ("post-mortem", "cart.py", 11)
    reply = driver.do("c")
    assert reply["stop"]["test"].endswith("Tests.test_b")
    assert reply["stop"]["exception"] == "AssertionError: 1 != 2"
    assert driver.do("c")["stop"]["exception"] == "AssertionError: 0 != 1"
    assert driver.do("c")["stop"]["exception"] == "AssertionError: 2 != 1"
    assert driver.do("c")["exit_code"] == 1


def test_post_mortem_of_a_script(start: Start, project: Path) -> None:
    name = script(project, "import sys\ndef fail(x):\n    return 1 / x\nprint(sys.argv)\nfail(0)\n")
    driver = start(name, "one", "two")
    reply = driver.do("c", "p x")
    assert place(reply) == ("post-mortem", "script.py", 3, "fail")
    assert driver.do("c")["exit_code"] == 1
    assert driver.process.wait(60) == 1
    assert "['script.py', 'one', 'two']" in driver.printed
    assert "ZeroDivisionError" in driver.printed
    assert "gumshoe" not in driver.printed


def test_recursion_without_end(start: Start, project: Path) -> None:
    name = script(project, "def again(n):\n    return again(n + 1)\nagain(0)\n")
    reply = start(name).do("b script.py:3", "c", "c", "w")
    assert place(reply)[0] == "post-mortem"
    assert len(reply["frames"]) == 30


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
def test_breakpoints_outlast_a_recursion_that_is_too_deep(start: Start, project: Path, at_first: bool) -> None:
    """The interpreter ends tracing where it is too deep to call a trace function."""
    (project / "deep.py").write_text(DEEP)
    (project / "test_cart.py").write_text(
        f"from deep import deep, price\n\n\ndef test_1():\n    {'price(1)' if at_first else 'pass'}\n\n\n"
        "def test_2():\n    deep()\n    price(2)\n\n\ndef test_3():\n    price(3)\n"
    )
    driver = start(*PYTEST)
    answers = driver.do("b deep.py:7", *["c", "p n"] * (3 if at_first else 2))["results"]
    seen = [each["output"] for each in answers if each["command"] == "p n"]
    before, over = ["n = 1"] * at_first, "not run: the program has ended"
    # Before Python 3.8, tracing begins again with the next test.
    assert seen in ([*before, "n = 2", "n = 3"], [*before, "n = 3", over])


def test_it_is_said_where_a_recursion_that_is_too_deep_ends_tracing(start: Start, project: Path) -> None:
    name = script(project, f"{DEEP}price(1)\ndeep()\nx = 2\ny = 3\n")
    reply = start(name).do("b script.py:7", "c", "b script.py:17", "c")
    assert reply["state"] == "exited"
    assert "the program: too deep a recursion" in reply["results"][-1]["output"]
