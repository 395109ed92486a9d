"""What the teacher says. Every sentence is filled with what it has seen; the wording varies with the seed."""

from __future__ import annotations

import random

from gumshoe.records import Location
from gumshoe.tools.text import plural

__all__ = ["Phrases"]


class Phrases:
    """Picks among a few wordings."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def layout(self) -> str:
        """Before a look at the folder."""
        return self._pick("I look at what is there.", "First the layout.", "Which files are there?")

    def run_tests(self) -> str:
        """Before the first run of the tests."""
        return self._pick("I run the tests to see what fails.", "What fails?", "The tests first.")

    def outline(self) -> str:
        """Before a search for all functions."""
        return self._pick("Which functions are there?", "I list the functions.")

    def suspects(self) -> str:
        """Before asking which functions the failing tests run."""
        return self._pick("Which functions do the failing tests run?", "What do only the failing tests run?")

    def read(self) -> str:
        """Before reading code."""
        return self._pick("I read the function.", "What does it do?")

    def stop(self) -> str:
        """Before the debugger."""
        return self._pick("Which values are there?", "I stop there to see the values.")

    def hypothesis(self, path: str, line: int, symbol: str | None, value: str | None) -> str:
        """What is wrong, as the reason of the edit or in the report."""
        where = f"{symbol} ({path}:{line})" if symbol else f"{path}:{line}"
        return f"{where} is wrong." if value is None else f"{where} is wrong: there {value}."

    def report(self, place: Location) -> str:
        """Before the report."""
        where = f"{place.symbol} in {place.path}" if place.symbol else place.path
        return f"The cause is in {where}; I hand it over."

    def verify(self) -> str:
        """Before running the tests after an edit."""
        return self._pick("Do the tests pass now?", "I run the tests again.")

    def submit(self, failing: int) -> str:
        """Before submitting."""
        if failing:
            return f"{plural(failing, 'test')} still {'fails' if failing == 1 else 'fail'}."
        return self._pick("All tests pass.", "The tests pass: done.")

    def _pick(self, *wordings: str) -> str:
        return self._rng.choice(wordings)
