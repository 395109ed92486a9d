"""Small projects with a bug, by path and content, for tests in several folders."""

ADDING = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
}
"""add(2, 3) is -1."""

BULK_PRICES = {
    "shop.py": """\
def is_large(count):
    return count >= 10


def price(count):
    cost = count * 3
    if is_large(count):
        cost = cost - 5
    return cost


def unused(count):
    return count + 1
""",
    "test_shop.py": """\
from shop import price


def test_small():
    assert price(2) == 6


def test_ten_is_small():
    assert price(10) == 30


def test_large():
    assert price(11) == 28
""",
}
"""test_ten_is_small fails: the bound is off by one."""

DOCTESTED_CART = '''\
"""A cart."""


def total(prices, discount=0):
    """The sum.

    >>> total([1, 2])
    3
    >>> total([5], discount=2)
    3
    """
    result = 0
    for price in prices:
        result = result + price
    if discount > 0:
        result = result - discount
    return result


def cheapest(prices):
    """The lowest.

    >>> cheapest([3, 1, 2])
    1
    """
    best = None
    for price in prices:
        if best is None or price < best:
            best = price
    return best
'''
"""A module whose functions have doctests, without a bug."""
