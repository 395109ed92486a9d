"""A small program with tests of which two fail, and the names of the tests."""

SHOP = """\
LIMIT = 3
RATE = 2


def price(count):
    total = count * RATE
    if count > LIMIT:
        total = total - 2
    return total


def counter():
    seen = 0

    def step():
        nonlocal seen
        seen += 1
        return seen

    return step


class Cart:
    def sizes(self, numbers):
        found = []
        for number in numbers:
            found.append(
                number,
            )
        return found
"""
TESTS = """\
from shop import Cart, counter, price


def test_small():
    assert price(2) == 4


def test_large():
    assert price(4) == 7


def test_steps():
    step = counter()
    step()
    assert step() == 3


def test_sizes():
    assert Cart().sizes([1, 2, 3]) == [1, 3]
"""
SMALL, LARGE, STEPS, SIZES = (f"test_shop.py::test_{name}" for name in ("small", "large", "steps", "sizes"))
