"""What observations show, as facts: each with the probe that shows it again.

A fact has a subject (`total`), a joint (` = `) and a value (`5`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from gumshoe.records import DebugFrame, Observation, Probe, StopProbe, WhatIfProbe
from gumshoe.tools.eval import SHOW_OUTCOMES
from gumshoe.tools.runs.forked_runs import Variant
from gumshoe.tools.runs.tracebacks import describe_frame, doctest_place
from gumshoe.tools.suspects import describe_suspect
from gumshoe.tools.tracing.calls import is_hidden
from gumshoe.tools.whatif import SHOW_CHANGES, describe_effect

__all__ = [
    "EXCEPTION",
    "MOST_CHARACTERS",
    "RETURNED",
    "Fact",
    "Numbered",
    "all_facts",
    "cited_fact",
    "normal",
    "numbered_text",
    "variant_of",
    "without_numbers",
]

EXCEPTION = "__exception__"
RETURNED = "__return__"
MOST_CHARACTERS = 400
"""Of a value that a probe claims."""
_HINT = '\nTo cite the last: {{"fact": {}}}'
_LABELS = "FAILED |ERROR |> "
"""What may stand between the number of a fact and the fact."""
_BEGINNING = 20
"""Characters of a long value by which it is found in a text that cuts it."""
_EVENTS = {"return": "return", "post-mortem": "failure"}
_LENGTH = re.compile(r" \(len \d+\)$")

Numbered = tuple[int, Observation]


@dataclass(frozen=True)
class Fact:
    """One thing that an observation shows. `words` is true where the value is text of which any part may be quoted."""

    step: int
    subject: str
    joint: str
    value: str
    probe: Probe
    words: bool = False

    @property
    def lead(self) -> str:
        """What stands before the value."""
        return normal(self.subject + self.joint)

    @property
    def text(self) -> str:
        """The whole fact."""
        return normal(f"{self.subject}{self.joint}{self.value}")

    def claiming(self, value: str) -> Fact:
        """The same with another value."""
        field = "effect" if isinstance(self.probe, WhatIfProbe) else "value"
        return replace(self, value=value, probe=self.probe.model_copy(update={field: value[:MOST_CHARACTERS]}))


def variant_of(probe: WhatIfProbe) -> Variant:
    """The change that a probe makes again."""
    return Variant(path=probe.path, line=probe.line, do=probe.do, time=probe.time, when=probe.when)


def normal(text: str) -> str:
    """The text with each run of white space as one space."""
    return " ".join(text.split())


def all_facts(observations: Sequence[Numbered]) -> list[Fact]:
    """All that the observations show, in order."""
    stopped = _Stopped()
    facts: list[Fact] = []
    for step, observation in observations:
        if observation.failure is not None:
            continue
        try:
            if observation.tool == "pdb":
                facts += _of_debugger(step, observation.data, stopped)
            elif observation.tool in SHOW_OUTCOMES:
                facts += _of_tests(step, observation.data)
            elif observation.tool in SHOW_CHANGES:
                facts += _of_changes(step, observation.data)
            elif observation.tool == "suspects":
                facts += _of_suspects(step, observation.data)
            elif observation.tool == "trace":
                facts += _of_calls(step, observation.data)
        except (ValidationError, LookupError, TypeError):
            continue  # A record from elsewhere, or of a program that answered in the debugger's place.
    return facts


def numbered_text(before: Sequence[Observation], observation: Observation) -> str:
    """The text of an observation with a number in front of each fact that it shows: `[f12] total = 5`.

    Facts are numbered from 1 through all observations of an episode, so that a report can cite them. After a look
    with the debugger, a last line spells out how, for small models that learn to copy it.

    Args:
        before: the earlier observations of the episode, in order.
        observation: the one whose text is wanted.
    """
    text = observation.text
    marks: dict[int, str] = {}
    for number, fact in enumerate(all_facts(list(enumerate([*before, observation]))), start=1):
        if fact.step == len(before):
            places = (match.start() for match in _places_of(fact, text))
            place = next((place for place in places if place not in marks), None)
            if place is not None:
                marks[place] = f"[f{number}] "
    for place in sorted(marks, reverse=True):
        text = text[:place] + marks[place] + text[place:]
    if marks and observation.tool == "pdb":
        text += _HINT.format(marks[max(marks)].strip("[f] "))
    return text


def cited_fact(text: str, words: str, *, whole: bool) -> int | None:
    """The number of the last fact in a numbered text that begins with some words; None if there is none.

    Args:
        text: with the numbers that `numbered_text` gives.
        words: what the fact begins with.
        whole: whether the last of the words has to end there.
    """
    end = r"(?!\w)" if whole else ""
    facts = re.findall(rf"\[f(\d+)\] (?:{_LABELS})?{re.escape(words)}{end}", text) if words else []
    return int(facts[-1]) if facts else None


def without_numbers(text: str) -> str:
    """The text as it was before `numbered_text` wrote numbers into it."""
    return re.sub(rf"\[f\d+\] |{re.escape(_HINT.format('N')).replace('N', r'[0-9]+')}", "", text)


def _places_of(fact: Fact, text: str) -> Iterator[re.Match[str]]:
    """Where a text shows a fact, or the beginning of one that was cut."""
    whole = fact.subject if fact.words or not fact.joint else f"{fact.subject}{fact.joint}{fact.value}"
    if whole:
        for head in (rf"(?:{_LABELS}|^\d+ )", r"(?<![\w.])"):
            yield from re.finditer(rf"{head}{re.escape(whole)}(?![\w.]*\w)", text, re.MULTILINE)
        if fact.joint and not fact.words:
            cut = f"{fact.subject}{fact.joint}{fact.value[:_BEGINNING]}"
            yield from re.finditer(rf"(?<![\w.]){re.escape(cut)}", text)


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


def _of_debugger(step: int, data: Mapping[str, Any], stopped: _Stopped) -> Iterator[Fact]:
    for result in data.get("results", ()):
        stop = result.get("stop")
        if stop:
            stopped.take(stop)
        place = stopped.place
        if place is None:
            continue
        if stop:
            yield from _of_stop(step, stop, place)
        for expression, value in result.get("values", ()):
            if "\n" not in value and _is_expression(expression):
                probe = place.model_copy(update={"expression": expression, "value": value})
                yield Fact(step, expression, " = ", value, probe)
    if data.get("state") == "exited":
        stopped.place = None


def _of_stop(step: int, stop: Mapping[str, Any], place: StopProbe) -> Iterator[Fact]:
    yield Fact(step, f"{stop['path']}:{stop['line']}", "", "", place)
    if stop["reason"] == "return" and "value" in stop:
        probe = place.model_copy(update={"expression": RETURNED, "value": stop["value"]})
        yield Fact(step, "returns", " ", stop["value"], probe)
    if stop["reason"] == "post-mortem" and stop.get("exception"):
        probe = place.model_copy(update={"expression": EXCEPTION})
        yield Fact(step, stop.get("test") or "", ": ", stop["exception"], probe, words=True)


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def _of_tests(step: int, data: Mapping[str, Any]) -> Iterator[Fact]:
    """The failures of a run of the tests, with the frames that each went through."""
    for outcome in data.get("outcomes", ()):
        place = _failing_place(outcome) if outcome["outcome"] in ("failed", "error") else None
        if place is not None:
            path, line = place
            probe = StopProbe(event="failure", path=path, line=line, test=outcome["id"], expression=EXCEPTION)
            yield Fact(step, outcome["id"], ": ", outcome["message"], probe, words=True)
            frames = outcome.get("frames", ())
            for frame in frames:
                event = "failure" if frame is frames[-1] else "line"
                there = {"event": event, "path": frame["path"], "line": frame["line"], "test": outcome["id"]}
                shown = describe_frame(DebugFrame.model_validate(frame))
                yield Fact(step, normal(shown), "", "", StopProbe.model_validate(there))
    frames = data.get("frames", ())
    if not data.get("outcomes") and not data.get("passed", True) and frames:
        probe = StopProbe(event="failure", path=frames[-1]["path"], line=frames[-1]["line"], expression=EXCEPTION)
        yield Fact(step, "", ": ", data.get("output", ""), probe, words=True)


def _failing_place(outcome: Mapping[str, Any]) -> tuple[str, int] | None:
    """The innermost frame of a failure; the example of a doctest whose output differs; None where neither is known."""
    frames = outcome.get("frames", ())
    if frames:
        return frames[-1]["path"], frames[-1]["line"]
    return doctest_place(outcome["id"], outcome["message"])


def _of_suspects(step: int, data: Mapping[str, Any]) -> Iterator[Fact]:
    """The functions that failing tests run, each with the first of its most suspicious lines."""
    for suspect in data.get("suspects", ()):
        probe = StopProbe(path=suspect["path"], line=suspect["lines"][0])
        yield Fact(step, normal(describe_suspect(suspect)), "", "", probe)


def _of_changes(step: int, data: Mapping[str, Any]) -> Iterator[Fact]:
    for result in data.get("variants", ()):
        if not (result.get("whole", True) or result["passes"]):
            continue  # Only failing tests were run, and it does nothing for them.
        variant = Variant.model_validate({name: result.get(name) for name in Variant.model_fields})
        effect = describe_effect(result)
        yield Fact(step, variant.describe(), ": ", effect, WhatIfProbe(**variant.model_dump(), effect=effect))


def _of_calls(step: int, data: Mapping[str, Any]) -> Iterator[Fact]:
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
                yield Fact(step, name, "=", value, probe)
        if call["outcome"] == "returned" and not call["yielded"] and not is_hidden(call["value"]):
            place = {"event": "return", "path": path, "line": lines[-1], "test": call["test"]}
            probe = StopProbe.model_validate({**place, "expression": RETURNED, "value": call["value"]})
            yield Fact(step, "returned", " ", call["value"], probe)


def _settled(call: Mapping[str, Any], lines: Sequence[int]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Lines at which values are set: arguments at the first line, what a line sets at the one after it."""
    yield lines[0], call["arguments"]
    if not call["skipped"]:
        for (_, values, _), after in zip(call["steps"], lines[1:], strict=False):
            yield after, values
