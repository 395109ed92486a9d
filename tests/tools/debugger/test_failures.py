"""Where the debugger stops when a test or a program fails. No sandbox: the injected debugger alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tools.driver import Start, place, script


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
        ("c", "post-mortem tests_u.py:16 test_c: AssertionError: 0 != 1"),
        ("c", "post-mortem tests_u.py:16 test_c: AssertionError: 2 != 1"),
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
        f"from late import deep, price\n\n\ndef test_1():\n    {'price(1)' if at_first else 'pass'}\n\n\n"
        "def test_2():\n    deep()\n    price(2)\n\n\ndef test_3():\n    price(3)\n"
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
