"""What observations show, as numbered facts: each with the probe that shows it again.

Facts are read from an observation's data. Their numbers are then written into its text (`numbered_text`), in which
`_places_of` finds each fact by its words, with what may stand before it (`_LABELS`). A fact that it does not find there
is shown without a number and cannot be cited, and nothing warns of it. So whoever changes how a tool words its text
must see that its facts keep their numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from gumshoe.records import Fact, Observation, Probe, StopProbe, TestOutcome, WhatIfProbe
from gumshoe.tools.eval import SHOW_OUTCOMES, failing_outcomes
from gumshoe.tools.runs.forked_runs import read_changes
from gumshoe.tools.runs.tracebacks import describe_frame, doctest_place, telling_line
from gumshoe.tools.runs.traced_calls import is_hidden
from gumshoe.tools.suspects import describe_suspect
from gumshoe.tools.whatif import SHOW_CHANGES

EXCEPTION = "__exception__"
RETURNED = "__return__"
_BEGINNING = 20
"""Characters of a long value by which it is found in a text that cuts it."""
_WORDS = 150
"""The most characters of an exception that are quoted: `eval` cuts longer lines."""
_EVENTS = {"return": "return", "post-mortem": "failure"}
_LENGTH = re.compile(r" \(len \d+\)$")
_HINT = '\nTo cite the last: {{"fact": {}}}'
_LABELS = "FAILED |ERROR |CRASHED |TIMED OUT |> "
"""What may stand between the number of a fact and the fact."""


class FactReader:
    """Numbers the facts of an episode, from 1, as its observations come in."""

    def __init__(self) -> None:
        self._count = 0
        self._stopped_at: StopProbe | None = None
        """Where the debugged program stands between two calls: the probe of the place, without an expression."""
        self._readers: dict[str, Callable[[Mapping[str, Any]], Iterator[_Shown]]] = {
            "pdb": self._of_debugger,
            "suspects": _of_suspects,
            "trace": _of_calls,
            **dict.fromkeys(SHOW_OUTCOMES, _of_tests),
            **dict.fromkeys(SHOW_CHANGES, _of_changes),
        }

    def read(self, step: int, observation: Observation) -> list[Fact]:
        """The facts of the next observation, in order; some may be missing in its text."""
        read = self._readers.get(observation.tool)
        if read is None or observation.failure is not None:
            return []
        facts: list[Fact] = []
        try:
            for shown in read(observation.data):
                facts.append(Fact(number=self._count + 1, step=step, **shown._asdict()))
                self._count += 1
        except (ValidationError, LookupError, TypeError):
            pass  # A record from elsewhere, or of a program that answered in the debugger's place.
        return facts

    def _of_debugger(self, data: Mapping[str, Any]) -> Iterator[_Shown]:
        """Where the program stopped, what it returned or raised there, and the values of expressions."""
        for result in data.get("results", ()):
            stop = result.get("stop")
            if stop:
                self._stopped_at = _place_of(stop, self._stopped_at)
            place = self._stopped_at
            if place is None:
                continue
            if stop:
                yield from _of_stop(stop, place)
            for expression, value in result.get("values", ()):
                if "\n" not in value and _is_expression(expression):
                    yield _value(f"{expression} = ", value, _about(place, expression, value))
        if data.get("state") == "exited":
            self._stopped_at = None


def all_facts(observations: Sequence[Observation]) -> list[Fact]:
    """All that the observations of an episode show, in order."""
    reader = FactReader()
    return [fact for step, observation in enumerate(observations) for fact in reader.read(step, observation)]


def normal(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())


# - facts without their numbers


class _Shown(NamedTuple):
    """A fact without its number and step."""

    shown: str
    quote: str
    probe: Probe
    beginning: str = ""


def _place(text: str, probe: Probe) -> _Shown:
    """That the program gets to a place."""
    return _Shown(text, text, probe)


def _value(lead: str, value: str, probe: Probe) -> _Shown:
    """What something is."""
    return _Shown(f"{lead}{value}", normal(f"{lead}{value}"), probe, f"{lead}{value[:_BEGINNING]}")


def _failure(test: str, message: str, place: StopProbe) -> _Shown:
    """That a test fails, or a program without tests; quoted is the line that says most."""
    line = normal(telling_line(test, message))
    whole_words = re.match(rf".{{0,{_WORDS}}}(?!\w)", line)
    words = whole_words[0].strip() if whole_words else line[:_WORDS]
    return _Shown(test or words, words, _about(place, EXCEPTION, words))


def _about(place: StopProbe, expression: str, value: str) -> StopProbe:
    """The probe of a place, for the value of an expression there."""
    return place.model_copy(update={"expression": expression, "value": value})


# - the debugger


def _place_of(stop: Mapping[str, Any], before: StopProbe | None) -> StopProbe | None:
    """The probe that stops where the program has stopped; None if there is none.

    The stop may be another frame of the one `before`, and then says how far up that is.
    """
    if stop["reason"] == "frame":
        return before and before.model_copy(update={"up": stop.get("up", 0)})
    if stop["reason"] == "exception":
        return None  # In the midst of a line.
    event = _EVENTS.get(stop["reason"], "line")
    outside = None if event == "failure" else ""  # Files that cannot be collected fail under their own names.
    facts = {"path": stop["path"], "line": stop["line"], "time": stop.get("time"), "test": stop.get("test") or outside}
    return StopProbe.model_validate({"event": event, **facts})


def _of_stop(stop: Mapping[str, Any], place: StopProbe) -> Iterator[_Shown]:
    yield _place(f"{stop['path']}:{stop['line']}", place)
    if stop["reason"] == "return" and "value" in stop:
        yield _value("returns ", stop["value"], _about(place, RETURNED, stop["value"]))
    if stop["reason"] == "post-mortem" and stop.get("exception"):
        yield _failure(stop.get("test") or "", stop["exception"], place)


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


# - the other tools


def _of_tests(data: Mapping[str, Any]) -> Iterator[_Shown]:
    """The failures of a run of the tests, with the frames that each went through."""
    for outcome in failing_outcomes(data):
        place = _failing_place(outcome)
        if place is not None:
            failure = StopProbe(event="failure", path=place[0], line=place[1], test=outcome.id)
            yield _failure(outcome.id, outcome.message, failure)
            for frame in outcome.frames:
                passed = StopProbe(path=frame.path, line=frame.line, test=outcome.id)
                yield _place(normal(describe_frame(frame)), failure if frame is outcome.frames[-1] else passed)
    frames = data.get("frames", ())
    if not data.get("outcomes") and not data.get("passed", True) and frames:
        place = StopProbe(event="failure", path=frames[-1]["path"], line=frames[-1]["line"])
        yield _failure("", data.get("output", ""), place)


def _failing_place(outcome: TestOutcome) -> tuple[str, int] | None:
    """The innermost frame of a failure; the example of a doctest whose output differs; None if neither is known."""
    if outcome.frames:
        return outcome.frames[-1].path, outcome.frames[-1].line
    return doctest_place(outcome.id, outcome.message)


def _of_suspects(data: Mapping[str, Any]) -> Iterator[_Shown]:
    """The functions that failing tests run, each with the first of its most suspicious lines."""
    for suspect in data.get("suspects", ()):
        if suspect["lines"]:
            yield _place(normal(describe_suspect(suspect)), StopProbe(path=suspect["path"], line=suspect["lines"][0]))


def _of_changes(data: Mapping[str, Any]) -> Iterator[_Shown]:
    """What changes do to the tests."""
    for result in read_changes(data):
        if not (result.whole or result.passes):
            continue  # Only failing tests were run, and it does nothing for them.
        effect = result.describe_effect()
        probe = WhatIfProbe(**result.change.model_dump(), effect=effect)
        yield _value(f"{result.change.describe()}: ", effect, probe)


def _of_calls(data: Mapping[str, Any]) -> Iterator[_Shown]:
    """The arguments, the values that lines set, and the results of the calls of a function, those that failed first."""
    path = data["function"]["path"]
    for call in [*data["failing"], *data["passing"]]:
        lines = [line for line, _, _ in call["steps"]]
        if not lines:
            continue
        for line, values in _settled(call, lines):
            place = StopProbe(path=path, line=line, test=call["test"])
            for name, value in values.items():
                if not is_hidden(value):
                    yield _value(f"{name}=", value, _about(place, name, _LENGTH.sub("", value)))
        if call["outcome"] == "returned" and not call["yielded"] and not is_hidden(call["value"]):
            place = StopProbe(event="return", path=path, line=lines[-1], test=call["test"])
            yield _value("returned ", call["value"], _about(place, RETURNED, call["value"]))


def _settled(call: Mapping[str, Any], lines: Sequence[int]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Lines at which values are set: arguments at the first line, what a line sets at the one after it."""
    yield lines[0], call["arguments"]
    if not call["skipped"]:
        for (_, values, _), after in zip(call["steps"], lines[1:], strict=False):
            yield after, values


def numbered_text(observation: Observation, facts: Sequence[Fact]) -> tuple[str, tuple[Fact, ...]]:
    """The text of an observation with the number in front of each of its facts that it shows, and these, in order.

    After a look with the debugger, a last line spells out how to cite, for small models that learn to copy it.
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
