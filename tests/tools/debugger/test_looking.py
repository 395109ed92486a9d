"""Looking at a program that stands still. No sandbox: the injected debugger alone."""

from __future__ import annotations

import time
from pathlib import Path

from support.tools.driver import PYTEST, Start, script


def test_frames_up_and_down(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("b cart.py:11", "c", "w")
    assert reply["results"][-1]["output"].splitlines() == [
        "  test_cart.py:8 in test_total: assert cart.total() == 6",
        "  cart.py:17 in total: total += self.price(item)",
        "> cart.py:11 in price: value = item * 2",
    ]
    reply = driver.do("u", "p total", "u", "p cart", "u", "d 2", "d", "u 9")
    assert [each["output"] for each in reply["results"]] == [
        "",
        "total = 0",
        "",
        "cart = <Cart items=[3, None]>",
        "oldest frame",
        "",
        "newest frame",
        "",
    ]
    assert reply["index"] == 0


def test_locals_arguments_and_types(start: Start) -> None:
    driver = start(*PYTEST)
    reply = driver.do("b cart.py:16", "c", "locals", "a", "whatis total", "whatis self", "pp self", "p nothing", "p")
    assert [each["output"] for each in reply["results"][2:]] == [
        "self = <Cart items=[3, None]>\ntotal = 0",
        "self = <Cart items=[3, None]>",
        "total: int",
        "self: cart.Cart",
        "self = <cart.Cart object>",
        "NameError: name 'nothing' is not defined",
        "give an expression",
    ]
    assert reply["frames"][-1]["local_values"] == {"self": "<Cart items=[3, None]>", "total": "0"}


def test_source_commands(start: Start) -> None:
    driver = start(*PYTEST)
    outputs = driver.outputs("b cart.py:11", "c", "ll", "l 1, 2", "source Cart.total", "source 3", "l")
    assert outputs[2].splitlines()[-2:] == ["->11         value = item * 2", "  12         return value"]
    assert outputs[3] == '  1 """A cart."""\n  2 '
    assert outputs[4].startswith("    def total(self):")
    assert "module, class, method" in outputs[5]
    assert len(outputs[6].splitlines()) == 11


def test_comprehensions_see_local_variables(start: Start) -> None:
    (output,) = start(*PYTEST).outputs("b cart.py:17", "c", "p [total + item for item in self.items if item]")[2:]
    assert output == "[total + item for item in self.items if item] = [3]"


def test_statements_run_in_the_frame(start: Start) -> None:
    driver = start(*PYTEST)
    outputs = driver.outputs(
        "b cart.py:17",
        "c",
        "total = 40",
        "!item = 1",
        "total + item",
        'print("said")',
        "for each in range(2):\n    print(each)",
        "del item",
        "1 +",
        "n",
        "p total",
    )
    assert outputs[4:7] == ["41", "said", "0\n1"]
    assert "SyntaxError" in outputs[8]
    driver = start(*PYTEST)
    assert driver.outputs("b cart.py:17", "c", "item = 20", "n", "p total")[-1] == "total = 40"


def test_names_of_commands_can_be_assigned(start: Start) -> None:
    assert start(*PYTEST).outputs("b cart.py:17", "c", "c = 5", "p c", "n == 3")[2:] == [
        "",
        "c = 5",
        "NameError: name 'n' is not defined",
    ]


def test_exception_and_help(start: Start) -> None:
    driver = start(*PYTEST)
    outputs = driver.outputs("b cart.py:17", "c", "exception", "help", "display x", "retval")
    assert outputs[2] == "no exception has been seen yet"
    assert outputs[3].startswith("commands: b FILE:LINE")
    assert outputs[4].startswith("no command display. commands: ")
    assert outputs[5] == "not at a return"


def test_values_have_no_addresses_but_texts_keep_theirs(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        class Plain:
            pass
        plain, text = Plain(), "<lamp at 0x12ab>"
        plain.other, plain.text, pair = Plain(), text, [Plain(), len, __import__("threading").Event()]
        x = 1
        """,
    )
    plain, pair, text = start(name).outputs("b script.py:5", "c", "p plain", "p pair", "p text")[2:]
    assert plain == "plain = <Plain other=<Plain> text='<lamp at 0x12ab>'>"
    assert pair.startswith("pair = [<__main__.Plain object>, <built-in function len>, <threading.Event")
    assert " at 0x" not in pair
    assert text == "text = '<lamp at 0x12ab>'"


def test_values_that_cannot_be_printed(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
        class Bad:
            def __repr__(self):
                raise RuntimeError("no")
        bad = Bad()
        big = "x" * 50000000
        print()
        """,
    )
    outputs = start(name).outputs("b script.py:6", "c", "p bad", "locals", "p big")
    assert outputs[2] == "bad cannot be printed: RuntimeError: no"
    assert "bad = <Bad instance>" in outputs[3]
    assert len(outputs[3]) < 500
    assert len(outputs[4]) < 7000
    assert "characters cut" in outputs[4]


def test_a_value_that_is_slow_to_print_does_not_cost_the_others(start: Start, project: Path) -> None:
    name = script(
        project,
        """\
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
        """,
    )
    commands = ("b script.py:12", "c", "locals", "args", "p slow", "p last", "p both", "pp slow", "slow", "r", "retval")
    began = time.monotonic()
    shown = start(name).outputs(*commands, "cl", "c", "exception", "p 1 + 1")
    assert time.monotonic() - began < 20
    unknown = "<Slow, not shown: too slow>"
    assert shown[2] == f"first = 1\nslow = {unknown}\nlast = 2\nboth = [{unknown}, 2]"
    assert shown[3] == f"first = 1\nslow = {unknown}\nlast = 2"
    assert shown[4:9] == [f"slow = {unknown}", "last = 2", f"both = [{unknown}, 2]", f"slow = {unknown}", unknown]
    assert shown[10] == f"returns {unknown}"
    assert shown[-2:] == ["Bad", "1 + 1 = 2"]
