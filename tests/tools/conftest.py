"""What the tests of the tools share: the interpreters that the injected modules are tried on, and small projects."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

PYTHONS = [path for path in os.environ.get("GUMSHOE_TEST_PYTHONS", "").split(os.pathsep) if path] or [sys.executable]
"""Interpreters with pytest that run the injected modules; more can be named in GUMSHOE_TEST_PYTHONS."""

CART = '''\
"""A cart."""


class Cart:
    def __init__(self):
        self.items = []

    @staticmethod
    def price(item):
        """What one item costs."""
        value = item * 2
        return value

    def total(self):
        total = 0
        for item in self.items:
            total += self.price(item)
        return total


def numbers(count):
    for number in range(count):
        yield number


def collect():
    found = []
    for number in numbers(2):
        found.append(number)
    return found
'''

TESTS = """\
from cart import Cart, collect


def test_total():
    cart = Cart()
    cart.items.append(3)
    cart.items.append(None)
    assert cart.total() == 6


def test_collect():
    assert collect() == [0, 1]
"""


@pytest.fixture(params=PYTHONS, ids=lambda path: "python")
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter that has pytest."""
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one failing and one passing test."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "cart.py").write_text(CART)
    (folder / "test_cart.py").write_text(TESTS)
    return folder
