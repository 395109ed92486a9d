"""The leak check: what a trajectory's turns say that nothing before them has shown.

    messages and answers before a turn ──> _Seen     text, words, numbers, lines of files, spans of suspects
                                             │ asked by
    the turn ──> _of_step ──> _in_prose, _in_report, _in_call, _in_code ──> Mention ──> Unseen, with step and part

`unseen` goes through the steps in order. For each one it

1. adds to `_Seen` what the agent was shown since the last one: messages that are not its own as text, and the data of
   the answers, of which `_shown_lines` reads the lines of files;
2. looks up what the turn says. Prose is taken apart in this order: quoted texts that were shown, places (`PLACE`) and
   paths (`PATH`), each of which is cut out before the next pattern reads the rest; then the other quoted texts, names
   (`WORD`, `CODE_WORD`) and numbers, of which nothing is cut out: a name in a quoted text is looked up, too. Reports,
   calls and code have readers of their own, because their parts say what they are;
3. marks each mention that was not shown with the step and the part of the turn (`Where`).

At the end, `_at_the_end` reads the stored report, and what was said after the last step. An example: a test that fails
in `shop.py:3` was shown, then

| the turn says                           | found                                        |
|-----------------------------------------|----------------------------------------------|
| `I look at shop.py:3.`                  | nothing: the place was shown                 |
| `The bug is in cart.py:12.`             | place `cart.py:12`                           |
| `add_item() drops 'gift'.`              | string `gift`, name `add_item`               |
| `rewrite` with `if count > 41:`         | names and the number `41`, marked `edit`     |

Places, names, numbers and strings in rationales, reports and edits, and the places that calls go to, are looked up in
what the agent was shown before: system prompt, problem statement, answers of tools and the tools' own descriptions.
What the agent itself said before does not count. Lines of a function that `suspects` has named may be visited. Of lines
that are said to be the cause, the first and the last must themselves have been shown; of lines that are edited, any one
is enough, or the line before them. New code in an edit may hold what nobody has
seen; it is marked `edit`. The numbers 0, 1 and 2 are not checked, and plain words only if they name a function or
class that the episode shows later, or are written in capitals: no sentence could be written without the others. So a
name that is also a plain word, and that is never shown, is not found.

A turn is read in both forms in which a trajectory holds it, as a step and as a message.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, NamedTuple

from gumshoe.collect.episode.conversation import parse_decision
from gumshoe.collect.episode.tool_output import ToolOutput, shown_code
from gumshoe.records import Completion, Decision, Message, Step, Trajectory
from gumshoe.storage import parse_json
from gumshoe.tools.evidence.facts import normal, without_numbers
from gumshoe.tools.suspects import shown_suspects
from gumshoe.tools.toolbox import decisions_of

Kind = Literal["place", "name", "number", "string"]
Where = Literal["rationale", "call", "report", "edit"]

PLACE = re.compile(r"(?<![\w./-])(?P<path>[\w./-]*\w\.\w+):(?P<line>\d+)")
PATH = re.compile(
    r"(?<![\w./-])(?:[\w.-]+/)*[\w.-]*\w\.(?:py|pyi|pyx|cfg|toml|txt|json|ya?ml|ini|rst|md|c|h|cpp|go|rs|js|ts|html|xml|csv)\b"
)
QUOTED = re.compile(
    r"`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)|\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d|\u2018([^\u2019\n]+)\u2019"
)
STRING = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?=(?:ms|s|th|x|px|%)?(?!\w))")
WORD = re.compile(r"[A-Za-z_]\w*")
CODE_WORD = re.compile(
    r"(?<![\w.])(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?=\()|(?<![\w.])(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w+|\b\w+_\w+\b|"
    r"\b_+[A-Za-z]\w*(?<!_)\b|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z]{2,}[a-z]\w*"
)
"""What is taken for the name of something in a program: a call, words with `_` or capitals inside, and dotted names."""
CAPITALS = re.compile(r"\b[A-Z][A-Z0-9]{3,}\b")
DEFINED = re.compile(r"\b(?:def|class)\s+([A-Za-z_]\w{3,})\s*[(:\[]")
PLAIN_CAPITALS = re.compile(
    "ALSO|ALWAYS|BEFORE|AFTER|BOTH|CANNOT|DOES|EVERY|EXACTLY?|FIRST|HERE|INSTEAD|MUST|NEVER|NONE|NOTE|ONLY|SAME|SOME|SHOULD|"
    "STILL|THAT|THEN|THIS|TODO|WHEN|WHERE|WITH|WITHOUT|WRONG|ASCII|HTML|HTTPS?|JSON|TOML|UNIX|UTF8|YAML"
)
"""Words that prose writes in capitals without naming anything in the code."""
SMALL = {"0", "1", "2"}
OTHERS = {*sys.stdlib_module_names, *dir(builtins)}
"""What dotted names of the standard library begin with; everyone knows these."""
KNOWN = {*keyword.kwlist, *dir(builtins), "self", "cls"}
FUNCTION = re.compile(r"(?:^|\n)\s*(?:b|break|tbreak)\s+([A-Za-z_][\w.]*)\s*(?=,|\n|$)")
"""A breakpoint at a function."""
MOST_OF_CODE = 30
MOST_OF_A_TEXT = 200
"""The most that is listed for one rationale, call or edit, so that a long edit does not hide what comes after it."""


@dataclass(frozen=True)
class Unseen:
    """Something that a turn says and nothing before it has shown."""

    step: int
    where: Where
    kind: Kind
    text: str


class Mention(NamedTuple):
    """Something that a text says and nothing has shown."""

    kind: Kind
    text: str


class _Seen:
    """What was shown so far; `later` are names of functions and classes that the episode shows at some point."""

    def __init__(self, later: frozenset[str]) -> None:
        self.later = later
        self.text = ""
        self.words: set[str] = set()
        self.numbers = set(SMALL)
        self.lines: dict[str, set[int]] = {}
        self.spans: dict[str, list[range]] = {}

    def add(self, texts: Iterable[str], outputs: Iterable[ToolOutput]) -> None:
        """Takes in messages, and the answers of tools that they hold."""
        new = normal(without_numbers("\n".join(texts)))
        self.text = f"{self.text} {new}"
        self.words.update(WORD.findall(new))
        self.numbers.update(re.findall(r"\d+(?:\.\d+)?", new))
        for match in PLACE.finditer(new):
            self.lines.setdefault(match["path"], set()).add(int(match["line"]))
        for output in outputs:
            for path, numbers in _shown_lines(output):
                self.lines.setdefault(path, set()).update(numbers)
            for suspect in shown_suspects(output.data):
                span = range(suspect["start"], suspect["end"] + 1)
                self.lines.setdefault(suspect["path"], set()).update((suspect["start"], suspect["end"]))
                self.spans.setdefault(suspect["path"], []).append(span)

    def has(self, text: str) -> bool:
        """Whether a text occurs, white space counting as one space."""
        return normal(text) in self.text

    def has_lines(self, path: str, numbers: Iterable[int]) -> bool:
        """Whether one of the lines of a file was shown, or named."""
        return not self.lines.get(path.removeprefix("./"), set()).isdisjoint(numbers)

    def may_go_to(self, path: str, numbers: Sequence[int]) -> bool:
        """Whether one of the lines was shown or named, or is in a function that was named with its lines."""
        spans = self.spans.get(path.removeprefix("./"), ())
        return self.has_lines(path, numbers) or any(number in span for number in numbers for span in spans)


def unseen(trajectory: Trajectory) -> list[Unseen]:
    """All that the turns of a trajectory say and nothing before them has shown, each listed once per turn."""
    descriptions = [f"{tool.name} {tool.description} {tool.parameters}" for tool in trajectory.tools]
    roles = decisions_of(trajectory.tools)
    seen = _Seen(_defined(trajectory))
    seen.add(descriptions, ())
    found: list[Unseen] = []
    read = 0
    answers: list[ToolOutput] = []
    for step in trajectory.steps:
        before = trajectory.messages[read : step.message_index]
        shown = [message.content for message in before if message.role != "assistant"]
        seen.add(shown, answers)
        turn = [message for message in before if message.role == "assistant"]
        turn += trajectory.messages[step.message_index : step.message_index + 1]
        found += dict.fromkeys(_of_step(step, turn, roles, seen))
        read = step.message_index + 1
        answers = [ToolOutput(step.index, observation) for observation in step.observations]
    return list(dict.fromkeys([*found, *_at_the_end(trajectory, read, seen)]))


def _at_the_end(trajectory: Trajectory, read: int, seen: _Seen) -> Iterator[Unseen]:
    """What the stored report says, and messages after the last step; both are data that a model may learn from."""
    if not trajectory.steps:
        return
    last = trajectory.steps[-1].index
    said = [message for message in trajectory.messages[read:] if message.role == "assistant"]
    for one in said:
        yield from _marked(last, "rationale", _in_prose(one.content, seen))
    if trajectory.context_pack is not None:
        # The tool itself finds the symbols of locations, so a model need not have seen their names.
        pack = trajectory.context_pack.model_dump(mode="json", exclude={"locations": {"__all__": {"symbol"}}})
        yield from _marked(last, "report", _in_report(pack, seen))


def _defined(trajectory: Trajectory) -> frozenset[str]:
    """The functions and classes that the answers of tools show, and those that the report names."""
    answers = [observation for step in trajectory.steps for observation in step.observations]
    shown = {name for answer in answers for name in DEFINED.findall(answer.text)}
    for answer in answers:
        for suspect in shown_suspects(answer.data):
            shown.update(WORD.findall(suspect["function"]))
    for place in trajectory.context_pack.locations if trajectory.context_pack else ():
        shown.update(WORD.findall(place.symbol or ""))
    return frozenset(name for name in shown if len(name) > 3)


def _of_step(step: Step, turn: Sequence[Message], roles: Mapping[str, Decision], seen: _Seen) -> Iterator[Unseen]:
    """What a turn mentions, in its words and in its calls.

    `turn` is the same as messages, with turns before it that are no steps; `roles` says what the tools are for.
    """
    said = [step.completion, *(Completion(text=one.content, reasoning=one.reasoning) for one in turn)]
    prose = [step.rationale, *(text for one in said for text in (parse_decision(one.text).rationale, one.reasoning))]
    for text in dict.fromkeys(text for text in prose if text):
        yield from _marked(step.index, "rationale", _in_prose(text, seen))
    calls = list(step.tool_calls)
    calls += [call for message in turn for call in message.tool_calls if call not in calls]
    for call in calls:
        arguments: Any = call.arguments
        if roles.get(call.name) is Decision.REPORT:
            yield from _marked(step.index, "report", _in_report(arguments, seen))
            continue
        yield from _marked(step.index, "call", _in_call(arguments, seen))
        if roles.get(call.name) is Decision.EDIT:
            code = str(arguments.get("code") or "")
            yield from _marked(step.index, "edit", _in_code(code, seen))


def _marked(step: int, where: Where, found: Iterator[Mention]) -> Iterator[Unseen]:
    """The first of what was found in one text, each with its step and the part of it."""
    return (Unseen(step, where, mention.kind, mention.text) for mention in islice(found, MOST_OF_A_TEXT))


def _in_prose(text: str, seen: _Seen) -> Iterator[Mention]:
    """What a text in words mentions. Quotes that were shown, places and paths are cut out before the rest is read."""
    unshown: list[str] = []

    def unquote(match: re.Match[str]) -> str:
        quoted = next(filter(None, match.groups()))
        if seen.has(quoted):  # What it holds may look like a place: f"{self.hour:02d}".
            return " "
        unshown.append(quoted)
        return match[0]

    text = QUOTED.sub(unquote, text)
    for match in PLACE.finditer(text):
        if not seen.has_lines(match["path"], [int(match["line"])]):
            yield Mention("place", match[0])
    rest = PLACE.sub(" ", text)
    for match in PATH.finditer(rest):
        if not seen.has(match[0]):
            yield Mention("place", match[0])
    rest = PATH.sub(" ", rest)
    for quoted in unshown:
        left = PATH.sub(" ", PLACE.sub(" ", quoted))
        if len(left.strip()) > 1 and not seen.has(left):
            yield Mention("string", left)
    for word in dict.fromkeys(WORD.findall(rest)):
        if word not in seen.words and (word in seen.later or _is_in_capitals(word, seen)):
            yield Mention("name", word)
    for match in CODE_WORD.finditer(rest):
        words = match[0].split(".")
        missing = [word for word in words if word not in seen.words and word not in KNOWN]
        if missing and not (len(words) > 1 and words[0] in OTHERS):
            yield Mention("name", match[0])
    for number in NUMBER.findall(rest):
        if number not in seen.numbers:
            yield Mention("number", number)


def _is_in_capitals(word: str, seen: _Seen) -> bool:
    """Whether a word is written the way constants are and was not shown in lowercase either."""
    capitals = CAPITALS.fullmatch(word) is not None and PLAIN_CAPITALS.fullmatch(word) is None
    return capitals and seen.words.isdisjoint((word.lower(), word.capitalize()))


def _in_report(arguments: dict[str, Any], seen: _Seen) -> Iterator[Mention]:
    """What a report mentions: the arguments of the call, or a `ContextPack` as data."""
    for place in [*_items(arguments.get("locations")), *_items([arguments.get("failing_frame")])]:
        yield from _in_location(place, seen)
        code = str(place.get("code") or "")
        # The text of a frame shows only the beginning of long lines, and no colon at the end.
        if not seen.has(code[:MOST_OF_CODE].rstrip(" :")):
            yield Mention("string", code)
    for finding in _items(arguments.get("findings")):
        yield from _in_prose(str(finding.get("claim") or ""), seen)
    for item in _items(arguments.get("ruled_out")):
        yield from _in_prose(f"{item.get('what') or ''}\n{item.get('why') or ''}", seen)
    yield from _in_prose(str(arguments.get("hypothesis") or ""), seen)


def _in_location(place: dict[str, Any], seen: _Seen) -> Iterator[Mention]:
    path = str(place.get("path") or "")
    start = _number(place.get("start") or place.get("line"))
    if start is not None:
        ends = {start, _number(place.get("end")) or start}
        if not all(seen.has_lines(path, [line]) for line in ends):
            yield Mention("place", f"{path}:{start}")
    elif path and not seen.has(path):
        yield Mention("place", path)
    symbol = str(place.get("symbol") or place.get("function") or "")
    if any(word not in seen.words for word in WORD.findall(symbol)):
        yield Mention("name", symbol)
    yield from _in_prose(str(place.get("why") or ""), seen)


def _in_call(arguments: dict[str, Any], seen: _Seen) -> Iterator[Mention]:
    """Files that nothing has named, and lines of breakpoints and edits that nothing has shown."""
    path, start = str(arguments.get("path") or ""), arguments.get("start")
    is_new_file = "code" in arguments and start is None
    if path.strip("./") and not seen.has(path.removeprefix("./")) and not is_new_file:
        yield Mention("place", path)
    elif "code" in arguments and isinstance(start, int):
        end = arguments.get("end") if isinstance(arguments.get("end"), int) else start
        if not seen.has_lines(path, range(start - 1, max(start, end or start) + 1)):
            yield Mention("place", f"{path}:{start}")
    for name in _functions_of(arguments):
        if any(word not in seen.words for word in WORD.findall(name)):
            yield Mention("place", name)
    items = [*_items(arguments.get("variants")), *_items(arguments.get("probes"))]
    places = (f"{item.get('path')}:{item.get('line')}" for item in items)
    for text in (arguments.get("command"), arguments.get("function"), *places):
        for match in PLACE.finditer(str(text or "")):
            if not seen.may_go_to(match["path"], [int(match["line"])]):
                yield Mention("place", match[0])


def _functions_of(arguments: dict[str, Any]) -> list[str]:
    """The functions that a call goes to by name."""
    named = str(arguments.get("function") or "")
    return [*FUNCTION.findall(str(arguments.get("command") or "")), *([named] if named and ":" not in named else [])]


def _in_code(code: str, seen: _Seen) -> Iterator[Mention]:
    """The strings, names and numbers in new code."""
    for match in STRING.finditer(code):
        text = match[1] or match[2] or ""
        if text and not seen.has(text):
            yield Mention("string", text)
    rest = STRING.sub(" ", code)
    for word in WORD.findall(rest):
        if word not in seen.words and word not in KNOWN:
            yield Mention("name", word)
    for number in NUMBER.findall(rest):
        if number not in seen.numbers:
            yield Mention("number", number)


def _shown_lines(output: ToolOutput) -> Iterator[tuple[str, Iterable[int]]]:
    """The lines of files that an observation shows or names, from its data."""
    data = output.data
    lines = shown_code(output)
    if lines:
        yield data["path"], lines
    for match in _items(data.get("matches")):
        yield match["path"], [match["line"]]
    for result in _items(data.get("results")):
        stop = result.get("stop")
        if isinstance(stop, dict) and "path" in stop and "line" in stop:
            yield str(stop["path"]), range(int(stop["line"]) - 2, int(stop["line"]) + 3)


def _items(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; some models write lists as JSON text."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return []
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdecimal()) else None
