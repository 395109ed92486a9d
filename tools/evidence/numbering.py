"""Writes the numbers of facts into the texts that show them, as in `[f12] total = 5`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gumshoe.records import Fact, Observation

__all__ = ["numbered_text", "without_numbers"]

_HINT = '\nTo cite the last: {{"fact": {}}}'
_LABELS = "FAILED |ERROR |CRASHED |TIMED OUT |> "
"""What may stand between the number of a fact and the fact."""


def numbered_text(observation: Observation, facts: Sequence[Fact]) -> tuple[str, tuple[Fact, ...]]:
    """The text of an observation with the number in front of each fact that it shows.

    After a look with the debugger, a last line spells out how to cite, for small models that learn to copy it.

    Args:
        observation: the one whose text is wanted.
        facts: its facts.

    Returns:
        The text, and the facts that have a number there, in the order of the text.
    """
    text = observation.text
    marks: dict[int, Fact] = {}
    for fact in facts:
        places = (match.start() for match in _places_of(fact, text))
        place = next((place for place in places if place not in marks), None)
        if place is not None:
            marks[place] = fact
    marked = sorted(marks.items())
    for place, fact in reversed(marked):
        text = f"{text[:place]}[f{fact.number}] {text[place:]}"
    if marked and observation.tool == "pdb":
        text += _HINT.format(marked[-1][1].number)
    return text, tuple(fact for _, fact in marked)


def without_numbers(text: str) -> str:
    """The text as it was before `numbered_text` wrote numbers into it."""
    return re.sub(rf"\[f\d+\] |{re.escape(_HINT.format('N')).replace('N', r'[0-9]+')}", "", text)


def _places_of(fact: Fact, text: str) -> Iterator[re.Match[str]]:
    """Where a text shows a fact, or the beginning of one that was cut."""
    if not fact.shown:
        return
    for head in (rf"(?:{_LABELS}|^\d+ )", r"(?<![\w.])"):
        yield from re.finditer(rf"{head}{re.escape(fact.shown)}(?![\w.]*\w)", text, re.MULTILINE)
    if fact.beginning:
        yield from re.finditer(rf"(?<![\w.]){re.escape(fact.beginning)}", text)
