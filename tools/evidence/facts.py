"""What observations show, as numbered facts: each with the probe that shows it again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError

from gumshoe.records import DebugFrame, Fact, Observation, Probe, StopProbe, WhatIfProbe
from gumshoe.tools.eval import SHOW_OUTCOMES
from gumshoe.tools.runs.forked_runs import Variant
from gumshoe.tools.runs.tracebacks import describe_frame, doctest_place, telling_line
from gumshoe.tools.suspects import describe_suspect
from gumshoe.tools.tracing.calls import is_hidden
from gumshoe.tools.whatif import SHOW_CHANGES, describe_effect

__all__ = [
    "EXCEPTION",
    "RETURNED",
    "FactReader",
    "all_facts",
    "normal",
    "numbered_text",
    "variant_of",
    "without_numbers",
]

EXCEPTION = "__exception__"
RETURNED = "__return__"
_HINT = '\nTo cite the last: {{"fact": {}}}'
_LABELS = "FAILED |ERROR |> "
"""What may stand between the number of a fact and the fact."""
_BEGINNING = 20
"""Characters of a long value by which it is found in a text that cuts it."""
_WORDS = 150
"""The most characters of an exception that are quoted: `eval` cuts longer lines."""
_EVENTS = {"return": "return", "post-mortem": "failure"}
_LENGTH = re.compile(r" \(len \d+\)$")


class FactReader:
    """Numbers the facts of an episode, from 1, as its observations come in."""

    def __init__(self) -> None:
        self._count = 0
        self._stopped = _Stopped()

    def read(self, step: int, observation: Observation) -> list[Fact]:
        """The facts of the next observation, in order; some may be missing in its text."""
        facts: list[Fact] = []
        try:
            for shown in self._shown_by(observation):
                facts.append(Fact(number=self._count + 1, step=step, **shown._asdict()))
                self._count += 1
        except (ValidationError, LookupError, TypeError):
            pass  # A record from elsewhere, or of a program that answered in the debugger's place.
        return facts

    def _shown_by(self, observation: Observation) -> Iterator[_Shown]:
        if observation.failure is not None:
            return
        if observation.tool == "pdb":
            yield from _of_debugger(observation.data, self._stopped)
        elif observation.tool in SHOW_OUTCOMES:
            yield from _of_tests(observation.data)
        elif observation.tool in SHOW_CHANGES:
            yield from _of_changes(observation.data)
        elif observation.tool == "suspects":
            yield from _of_suspects(observation.data)
        elif observation.tool == "trace":
            yield from _of_calls(observation.data)


class _Shown(NamedTuple):
    """A fact without its number and step."""

    shown: str
    quote: str
    probe: Probe
    beginning: str = ""


def _value(lead: str, value: str, probe: Probe) -> _Shown:
    return _Shown(f"{lead}{value}", normal(f"{lead}{value}"), probe, f"{lead}{value[:_BEGINNING]}")


def _place(text: str, probe: Probe) -> _Shown:
    return _Shown(text, text, probe)


def _failure(test: str, message: str, probe: StopProbe) -> _Shown:
    """A test that fails, or a program without tests; quoted is the line that says most."""
    line = normal(telling_line(test, message))
    whole_words = re.match(rf".{{0,{_WORDS}}}(?!\w)", line)
    words = whole_words[0].strip() if whole_words else line[:_WORDS]
    return _Shown(test or words, words, probe.model_copy(update={"expression": EXCEPTION, "value": words}))


def variant_of(probe: WhatIfProbe) -> Variant:
    """The change that a probe makes again."""
    return Variant(path=probe.path, line=probe.line, do=probe.do, time=probe.time, when=probe.when)


def normal(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())


def all_facts(observations: Sequence[Observation]) -> list[Fact]:
    """All that the observations of an episode show, in order."""
    reader = FactReader()
    return [fact for step, observation in enumerate(observations) for fact in reader.read(step, observation)]


def numbered_text(observation: Observation, facts: Sequence[Fact]) -> tuple[str, tuple[Fact, ...]]:
    """The text of an observation with the number in front of each fact that it shows, as in `[f12] total = 5`.

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


@dataclass
class _Stopped:
    """Where the debugged program stands between two calls: the probe of the place, without an expression."""

    place: StopProbe | None = None

    def take(self, stop: Mapping[str, Any]) -> None:
        """Takes in a stop; one at another frame of the same stop says how far up that is."""
        if stop["reason"] == "frame":
            self.place = self.place and self.place.model_copy(update={"up": stop.get("up", 0)})
            return
        if stop["reason"] == "exception":
            self.place = None  # In the midst of a line.
            return
        event = _EVENTS.get(stop["reason"], "line")
        outside = None if event == "failure" else ""  # Files that cannot be collected fail under their own names.
        self.place = StopProbe.model_validate(
            {
                "event": event,
                "path": stop["path"],
                "line": stop["line"],
                "time": stop.get("time"),
                "test": stop.get("test") or outside,
            }
        )


def _of_debugger(data: Mapping[str, Any], stopped: _Stopped) -> Iterator[_Shown]:
    for result in data.get("results", ()):
        stop = result.get("stop")
        if stop:
            stopped.take(stop)
        place = stopped.place
        if place is None:
            continue
        if stop:
            yield from _of_stop(stop, place)
        for expression, value in result.get("values", ()):
            if "\n" not in value and _is_expression(expression):
                probe = place.model_copy(update={"expression": expression, "value": value})
                yield _value(f"{expression} = ", value, probe)
    if data.get("state") == "exited":
        stopped.place = None


def _of_stop(stop: Mapping[str, Any], place: StopProbe) -> Iterator[_Shown]:
    yield _place(f"{stop['path']}:{stop['line']}", place)
    if stop["reason"] == "return" and "value" in stop:
        probe = place.model_copy(update={"expression": RETURNED, "value": stop["value"]})
        yield _value("returns ", stop["value"], probe)
    if stop["reason"] == "post-mortem" and stop.get("exception"):
        yield _failure(stop.get("test") or "", stop["exception"], place)


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def _of_tests(data: Mapping[str, Any]) -> Iterator[_Shown]:
    """The failures of a run of the tests, with the frames that each went through."""
    for outcome in data.get("outcomes", ()):
        place = _failing_place(outcome) if outcome["outcome"] in ("failed", "error") else None
        if place is not None:
            path, line = place
            probe = StopProbe(event="failure", path=path, line=line, test=outcome["id"])
            yield _failure(outcome["id"], outcome["message"], probe)
            frames = outcome.get("frames", ())
            for frame in frames:
                event = "failure" if frame is frames[-1] else "line"
                there = {"event": event, "path": frame["path"], "line": frame["line"], "test": outcome["id"]}
                shown = describe_frame(DebugFrame.model_validate(frame))
                yield _place(normal(shown), StopProbe.model_validate(there))
    frames = data.get("frames", ())
    if not data.get("outcomes") and not data.get("passed", True) and frames:
        probe = StopProbe(event="failure", path=frames[-1]["path"], line=frames[-1]["line"])
        yield _failure("", data.get("output", ""), probe)


def _failing_place(outcome: Mapping[str, Any]) -> tuple[str, int] | None:
    """The innermost frame of a failure; the example of a doctest whose output differs; None where neither is known."""
    frames = outcome.get("frames", ())
    if frames:
        return frames[-1]["path"], frames[-1]["line"]
    return doctest_place(outcome["id"], outcome["message"])


def _of_suspects(data: Mapping[str, Any]) -> Iterator[_Shown]:
    """The functions that failing tests run, each with the first of its most suspicious lines."""
    for suspect in data.get("suspects", ()):
        yield _place(normal(describe_suspect(suspect)), StopProbe(path=suspect["path"], line=suspect["lines"][0]))


def _of_changes(data: Mapping[str, Any]) -> Iterator[_Shown]:
    for result in data.get("variants", ()):
        if not (result.get("whole", True) or result["passes"]):
            continue  # Only failing tests were run, and it does nothing for them.
        variant = Variant.model_validate({name: result.get(name) for name in Variant.model_fields})
        effect = describe_effect(result)
        yield _value(f"{variant.describe()}: ", effect, WhatIfProbe(**variant.model_dump(), effect=effect))


def _of_calls(data: Mapping[str, Any]) -> Iterator[_Shown]:
    """The arguments, the values that lines set, and the results of the calls of a function, those that failed first."""
    path = data["function"]["path"]
    for call in [*data["failing"], *data["passing"]]:
        lines = [line for line, _, _ in call["steps"]]
        if not lines:
            continue
        for line, values in _settled(call, lines):
            for name, value in values.items():
                if is_hidden(value):
                    continue
                plain = _LENGTH.sub("", value)
                probe = StopProbe(path=path, line=line, test=call["test"], expression=name, value=plain)
                yield _value(f"{name}=", value, probe)
        if call["outcome"] == "returned" and not call["yielded"] and not is_hidden(call["value"]):
            place = {"event": "return", "path": path, "line": lines[-1], "test": call["test"]}
            probe = StopProbe.model_validate({**place, "expression": RETURNED, "value": call["value"]})
            yield _value("returned ", call["value"], probe)


def _settled(call: Mapping[str, Any], lines: Sequence[int]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Lines at which values are set: arguments at the first line, what a line sets at the one after it."""
    yield lines[0], call["arguments"]
    if not call["skipped"]:
        for (_, values, _), after in zip(call["steps"], lines[1:], strict=False):
            yield after, values
