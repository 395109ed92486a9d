"""A module whose functions have doctests."""

from __future__ import annotations

CART = '''\
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
