"""Small projects with a bug, by path and content, for tests in several folders."""

from __future__ import annotations

__all__ = ["ADDING", "BULK_PRICES"]

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
