"""From a finding's quote to a probe: what has to be run to see again what the quoted step showed.

An observation is a list of facts. A fact has a subject (`total`), a joint (` = `) and a value (`5`), and the probe that
shows it again. A quote that gives a fact's subject with another value leads to a probe for that other value, so that
a claim that was never seen is contradicted rather than passed over.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from gumshoe.records import DebugFrame, Finding, Observation, Probe, StopProbe, WhatIfProbe
from gumshoe.tools.forked_runs import Variant
from gumshoe.tools.outcomes import SHOW_OUTCOMES
from gumshoe.tools.suspects import describe_suspect
from gumshoe.tools.trace_calls import is_hidden
from gumshoe.tools.tracebacks import describe_frame
from gumshoe.tools.whatif import describe_effect

__all__ = ["fits_quote", "with_probes"]

EXCEPTION = "__exception__"
RETURNED = "__return__"
MOST_CHARACTERS = 400
"""Of a value that a probe claims."""
TELLING = 8
"""Characters of a word of a message that can stand for it."""
SIMILAR = 0.6
_EVENTS = {"return": "return", "post-mortem": "failure"}
_STOP = re.compile(r"(?:> )?(?P<place>[^\s:]+:\d+)(?: in .*)?")
_LENGTH = re.compile(r" \(len \d+\)$")
_KIND = re.compile(r"^\w+: ")
"""What an exception is, before its message."""

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
        return _normal(self.subject + self.joint)

    @property
    def text(self) -> str:
        return _normal(f"{self.subject}{self.joint}{self.value}")

    def claiming(self, value: str) -> Fact:
        """The same with another value."""
        field = "effect" if isinstance(self.probe, WhatIfProbe) else "value"
        return replace(self, value=value, probe=self.probe.model_copy(update={field: value[:MOST_CHARACTERS]}))


def with_probes(findings: Sequence[Finding], observations: Sequence[Numbered]) -> tuple[Finding, ...]:
    """The findings with the probes that follow from the observations, which are numbered by step."""
    facts = _all_facts(observations)
    seen = [one for _, one in observations if one.failure is None]
    texts = [_normal(one.text) for one in seen if one.tool != "whatif"]
    tried = [_normal(one.text) for one in seen if one.tool == "whatif"]
    return tuple(finding.model_copy(update={"probe": _derive(finding, facts, texts, tried)}) for finding in findings)


def fits_quote(finding: Finding) -> bool:
    """Whether a line of the finding's quote says what its probe looks for.

    It does in what `with_probes` makes, until somebody edits the quote or the probe.
    """
    assert finding.probe is not None
    facts = list(_facts_of(finding.probe))
    return any(_shown(line, facts) or _states(line, finding.probe) for line in _quoted_lines(finding))


def _facts_of(probe: Probe) -> Iterator[Fact]:
    """What observations may have shown, for such a probe to follow from them."""
    if isinstance(probe, WhatIfProbe):
        variant = Variant(path=probe.path, line=probe.line, do=probe.do, time=probe.time, when=probe.when)
        yield Fact(0, variant.describe(), ": ", probe.effect, probe)
    elif not probe.expression:
        yield Fact(0, f"{probe.path}:{probe.line}", "", "", probe)
    elif probe.expression == EXCEPTION:
        yield Fact(0, probe.test or "", ": ", probe.value, probe, words=True)
    elif probe.expression == RETURNED:
        yield from (Fact(0, word, " ", probe.value, probe) for word in ("returns", "returned"))
    else:
        yield from (Fact(0, probe.expression, joint, probe.value, probe) for joint in (" = ", "="))


def _states(line: str, probe: Probe) -> bool:
    """Whether a line holds a place among other words, as those about suspects and frames do, or a long value."""
    if isinstance(probe, StopProbe) and not probe.expression:
        if probe.up:  # The quote gives the place in the frame above.
            return _STOP.search(line) is not None
        places = re.findall(rf"(?:(\d+)-(\d+) )?(?<![\w/.-]){re.escape(probe.path)}(?::(\d+))?", line)
        return any(
            probe.line == int(at) if at else bool(last) and int(first) <= probe.line <= int(last)
            for first, last, at in places
        )
    value = probe.effect if isinstance(probe, WhatIfProbe) else probe.value
    return len(value) == MOST_CHARACTERS and _normal(value) in line


def _derive(finding: Finding, facts: Sequence[Fact], texts: Sequence[str], tried: Sequence[str]) -> Probe | None:
    """The probe of a finding; None where its quote is about nothing that can be run.

    Of several lines, the first that was never shown decides; there is no probe if it is about nothing that was shown.
    """
    failing = {fact.probe.test for fact in facts if fact.words and isinstance(fact.probe, StopProbe)}
    nearest = sorted(facts, key=lambda fact: (abs(fact.step - finding.step), _test_of(fact) not in failing))

    def is_new(line: str) -> bool:
        if any(_holds(text, line) for text in texts):
            return False
        # The code of a change was not seen as a value: only what it did counts as shown.
        changes = [fact for fact in nearest if isinstance(fact.probe, WhatIfProbe)]
        return not (any(_holds(text, line) for text in tried) and _shown(line, changes))

    lines = _quoted_lines(finding)
    new = next(filter(is_new, lines), None)
    if new is not None:
        chosen = _like(new, nearest)
    else:
        chosen = next((fact for line in lines for fact in [_shown(line, nearest)] if fact), None)
    return chosen.probe if chosen else None


def _quoted_lines(finding: Finding) -> list[str]:
    return [_normal(line).removeprefix("raised ") for line in finding.quote.splitlines() if line.strip()]


def _shown(line: str, facts: Sequence[Fact]) -> Fact | None:
    """The fact that a quoted line gives as it was."""
    for look in (_whole, _alone, _cut, _part):
        found = look(line, facts)
        if found is not None:
            return found
    return None


def _like(line: str, facts: Sequence[Fact]) -> Fact | None:
    """The fact that a line is about, with the value that the line gives instead; None where all that it gives is so."""
    known = _whole(line, facts)
    rest = line.replace(known.text, "", 1) if known else line
    given = [(fact, value) for fact in facts for value in [_value_given(rest, fact)] if value is not None]
    wrong = [
        (fact, value)
        for fact, value in given
        if not any(_gives(rest, other) for other in facts if other.lead == fact.lead)
    ]
    if wrong:
        fact, value = max(wrong, key=lambda found: len(found[0].lead))
        return fact.claiming(value)
    if _shown(line, facts):
        return None
    said = _KIND.sub("", line)
    for fact in facts:
        for message in fact.value.splitlines() if fact.words else ():
            if difflib.SequenceMatcher(None, _KIND.sub("", _normal(message)), said, autojunk=False).ratio() >= SIMILAR:
                return fact.claiming(line)
    return None


def _test_of(fact: Fact) -> str | None:
    return fact.probe.test if isinstance(fact.probe, StopProbe) else None


def _whole(line: str, facts: Sequence[Fact]) -> Fact | None:
    """A line that is a fact, or holds a whole one."""
    held = [fact for fact in facts if not fact.words and fact.joint and _holds(line, fact.text)]
    return max(held, key=lambda fact: len(fact.text)) if held else None


def _alone(line: str, facts: Sequence[Fact]) -> Fact | None:
    """A line that is a value without its subject."""
    return next((fact for fact in facts if not fact.words and fact.joint and _normal(fact.value) == line), None)


def _cut(line: str, facts: Sequence[Fact]) -> Fact | None:
    """A line that gives the beginning of a value."""
    return next((fact for fact in facts if _gives(line, fact) and not _holds(line, fact.text)), None)


def _gives(line: str, fact: Fact) -> bool:
    """Whether a line gives the value of a fact, or the beginning of it."""
    value, whole = _value_given(line, fact), _normal(fact.value)
    if value is None:
        return False
    cut = _is_cut(value) and re.match(re.escape(value) + r"(?!\w)", whole) is not None
    return cut or _holds(line, fact.text)


def _part(line: str, facts: Sequence[Fact]) -> Fact | None:
    """A line that is part of a message, the name of a test that fails, or where the program stopped."""
    stop = _STOP.fullmatch(line)
    for fact in facts:
        if fact.words and _holds(_normal(fact.value), line) and _says_something(line, fact):
            return fact.claiming(line)
        if fact.words and fact.subject and _holds(line, fact.subject):
            return fact.claiming("")
        if not fact.joint and fact.subject in (line, stop and stop["place"]):
            return fact
    return None


def _says_something(part: str, message: Fact) -> bool:
    """Whether part of a message is more than one short word: `assert` and `True` stand in many."""
    return " " in part or len(part) >= TELLING or part == _normal(message.value)


def _value_given(line: str, fact: Fact) -> str | None:
    """What a line says of the subject of a fact; None where it says nothing of it."""
    if fact.words or not fact.joint:
        return None
    end = r"(?=, [\w.]+=|$)" if fact.joint == "=" else "$"
    found = re.search(rf"(?<![\w.]){re.escape(fact.lead)}(?P<value>.+?){end}", line)
    return found["value"].strip().rstrip("`") if found else None


def _holds(text: str, words: str) -> bool:
    """Whether words occur in a text, not as parts of others."""
    return bool(words) and re.search(rf"(?<![\w.]){re.escape(words)}(?![\w.]*\w)", text) is not None


def _is_cut(value: str) -> bool:
    """Whether a value was cut off: it is no whole Python expression."""
    if value.startswith("<"):
        return not value.endswith(">")
    try:
        ast.parse(value, mode="eval")
    except (SyntaxError, ValueError):
        return True
    return False


def _normal(text: str) -> str:
    return " ".join(text.split())


# --- what observations show


def _all_facts(observations: Sequence[Numbered]) -> list[Fact]:
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
            elif observation.tool == "whatif":
                facts += _of_changes(step, observation.data)
            elif observation.tool == "suspects":
                facts += _of_suspects(step, observation.data)
            elif observation.tool == "trace":
                facts += _of_calls(step, observation.data)
        except (ValidationError, KeyError, TypeError):
            continue  # A record from elsewhere, or of a program that answered in the debugger's place.
    return facts


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
        frames = outcome.get("frames", ())
        if outcome["outcome"] in ("failed", "error") and frames:
            probe = StopProbe(
                event="failure",
                path=frames[-1]["path"],
                line=frames[-1]["line"],
                test=outcome["id"],
                expression=EXCEPTION,
            )
            yield Fact(step, outcome["id"], ": ", outcome["message"], probe, words=True)
            for frame in frames:
                event = "failure" if frame is frames[-1] else "line"
                place = {"event": event, "path": frame["path"], "line": frame["line"], "test": outcome["id"]}
                there = describe_frame(DebugFrame.model_validate(frame))
                yield Fact(step, _normal(there), "", "", StopProbe.model_validate(place))
    frames = data.get("frames", ())
    if not data.get("outcomes") and not data.get("passed", True) and frames:
        place = {"event": "failure", "path": frames[-1]["path"], "line": frames[-1]["line"]}
        probe = StopProbe.model_validate({**place, "expression": EXCEPTION})
        yield Fact(step, "", ": ", data.get("output", ""), probe, words=True)


def _of_suspects(step: int, data: Mapping[str, Any]) -> Iterator[Fact]:
    """The functions that failing tests run, each with the first of its most suspicious lines."""
    for suspect in data.get("suspects", ()):
        probe = StopProbe(path=suspect["path"], line=suspect["lines"][0])
        yield Fact(step, _normal(describe_suspect(suspect)), "", "", probe)


def _of_changes(step: int, data: Mapping[str, Any]) -> Iterator[Fact]:
    for result in data.get("variants", ()):
        if not result.get("whole", True):
            continue  # Only failing tests were run: what it does to the others is not known.
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
