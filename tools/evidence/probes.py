"""From a finding's quote to a probe: what has to be run to see again what the quoted step showed.

An observation is a list of facts (see `facts`), each with the probe that shows it again. A quote that
gives a fact's subject with another value leads to a probe for that other value, so that a claim that was never seen is
contradicted rather than passed over.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence

from gumshoe.records import Finding, Probe, StopProbe, WhatIfProbe
from gumshoe.tools.evidence.facts import (
    EXCEPTION,
    MOST_CHARACTERS,
    RETURNED,
    Fact,
    Numbered,
    all_facts,
    normal,
    variant_of,
)
from gumshoe.tools.whatif import SHOW_CHANGES

__all__ = ["fits_quote", "with_probes"]

TELLING = 8
"""Characters of a word of a message that can stand for it."""
SIMILAR = 0.6
_STOP = re.compile(r"(?:> )?(?P<place>[^\s:]+:\d+)(?: in .*)?")
_KIND = re.compile(r"^\w+: ")
"""What an exception is, before its message."""


def with_probes(findings: Sequence[Finding], observations: Sequence[Numbered]) -> tuple[Finding, ...]:
    """The findings with the probes that follow from the observations, which are numbered by step."""
    facts = all_facts(observations)
    seen = [one for _, one in observations if one.failure is None]
    texts = [normal(one.text) for one in seen if one.tool not in SHOW_CHANGES]
    tried = [normal(one.text) for one in seen if one.tool in SHOW_CHANGES]
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
        yield Fact(0, variant_of(probe).describe(), ": ", probe.effect, probe)
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
    return len(value) == MOST_CHARACTERS and normal(value) in line


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
    return [normal(line).removeprefix("raised ") for line in finding.quote.splitlines() if line.strip()]


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
            if difflib.SequenceMatcher(None, _KIND.sub("", normal(message)), said, autojunk=False).ratio() >= SIMILAR:
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
    return next((fact for fact in facts if not fact.words and fact.joint and normal(fact.value) == line), None)


def _cut(line: str, facts: Sequence[Fact]) -> Fact | None:
    """A line that gives the beginning of a value."""
    return next((fact for fact in facts if _gives(line, fact) and not _holds(line, fact.text)), None)


def _gives(line: str, fact: Fact) -> bool:
    """Whether a line gives the value of a fact, or the beginning of it."""
    value, whole = _value_given(line, fact), normal(fact.value)
    if value is None:
        return False
    cut = _is_cut(value) and re.match(re.escape(value) + r"(?!\w)", whole) is not None
    return cut or _holds(line, fact.text)


def _part(line: str, facts: Sequence[Fact]) -> Fact | None:
    """A line that is part of a message, the name of a failing test, or where the program stopped."""
    stop = _STOP.fullmatch(line)
    for fact in facts:
        if fact.words and _holds(normal(fact.value), line) and _says_something(line, fact):
            return fact.claiming(line)
        if fact.words and fact.subject and (_holds(line, fact.subject) or _shortens(line, fact.subject)):
            return fact.claiming("")
        if not fact.joint and fact.subject in (line, stop and stop["place"]):
            return fact
    return None


def _shortens(line: str, test: str) -> bool:
    """Whether a line names a test without the first folders of its file."""
    (given, _, said), (file, _, name) = line.partition("::"), test.partition("::")
    return said == name != "" and file.endswith(f"/{given}")


def _says_something(part: str, message: Fact) -> bool:
    """Whether part of a message is more than one short word: `assert` and `True` stand in many."""
    return " " in part or len(part) >= TELLING or part == normal(message.value)


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
