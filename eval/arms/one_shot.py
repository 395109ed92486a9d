"""The solver that answers once: it is shown the places of its pack, and answers with code or with calls.

Small models write code well and JSON badly. They are also careless with line numbers, so a block of code is laid over
the shown code by its lines; what its first line says only decides where nothing matches.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.tool_output import shown_code, tool_outputs
from gumshoe.collect.packs import clean_path
from gumshoe.collect.prompts import read_template, render
from gumshoe.protocols import Policy, close_policy
from gumshoe.records import Completion, ContextPack, Message, Task, ToolCall, ToolSchema, WhatIfProbe
from gumshoe.text import FENCE, indentation
from gumshoe.tools.code.statements import with_change

PROMPTS = Path(__file__).parent / "prompts"
PROMPT = PROMPTS / "one_shot.jinja"
PLACES = PROMPTS / "places.jinja"
AGENT = AgentConfig(kind="rewrite", tools=("view", "rewrite"), prompt=str(PROMPT), nudges=1)
MARGIN = 3
"""Lines that are shown around a place."""
MOST_LINES = 120
MOST_PLACES = 8
SIMILAR = 0.6
"""How much a single line has to be like the line that it replaces."""
_PLACE = re.compile(r"\s*#\s*(?:lines? )?(?P<path>[^\s:]+\.\w+):(?P<start>\d+)(?:-(?P<end>\d+))?\s*")
_NUMBER = re.compile(r"[> ]*\d+(?: |$)")


def view_calls(pack: ContextPack | None) -> tuple[ToolCall, ...]:
    """The calls that show the best places of a pack, none of them twice."""
    found: dict[tuple[str, int, int], None] = {}
    for place in (pack.locations if pack is not None else ())[:MOST_PLACES]:
        start = max(1, place.start - MARGIN)
        found[clean_path(place.path), start, min(place.end + MARGIN, start + MOST_LINES - 1)] = None
    return tuple(
        ToolCall(id=f"look-{number}", name="view", arguments={"path": path, "start": start, "end": end})
        for number, (path, start, end) in enumerate(found)
    )


def limit_turns(task: Task, pack: ContextPack | None) -> Task:
    """The task with as many turns as one answer takes: one, and one before it where there is something to show."""
    return task.model_copy(update={"limits": task.limits.model_copy(update={"steps": 2 if view_calls(pack) else 1})})


def confirmed_changes(pack: ContextPack | None) -> tuple[WhatIfProbe, ...]:
    """The changes that let failing tests pass each time that a line is reached, as far as new runs confirmed it."""
    grounded = [finding.probe for finding in (pack.findings if pack is not None else ()) if finding.grounded]
    return tuple(
        probe for probe in grounded if isinstance(probe, WhatIfProbe) and probe.time is None and probe.when is None
    )


@dataclass(frozen=True)
class Place:
    """Code that the model is shown: as it is, and as a trial changed it, with what the trial did to the tests."""

    code: ShownCode
    trial: str = ""
    effect: str = ""


class OneShotPolicy:
    """A policy that is shown something before its first turn, and then answers with blocks of code, which become edits.

    A policy that calls `rewrite` itself may do that. The calls `shown` are made first. `tried` are changes that helped;
    those in the code that is shown are shown as code.
    """

    def __init__(self, policy: Policy, shown: Sequence[ToolCall], tried: Sequence[WhatIfProbe] = ()) -> None:
        self.kind = policy.kind
        self.model = policy.model
        self.trusted = policy.trusted
        self._policy = policy
        self._shown = tuple(shown)
        self._tried = tuple(tried)

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The calls that show the places, then the policy's own answer. Raises PolicyError."""
        if self._shown and not any(message.role == "assistant" for message in messages):
            return Completion(text="I look at the places.", tool_calls=self._shown, finish_reason="tool_calls")
        shown = _shown(messages)
        places = [_place(code, self._tried) for code in shown]
        answer = self._policy.complete(_one_question(messages, places), ())
        if answer.tool_calls:
            return answer
        edits = read_edits(answer.text, shown)
        calls = tuple(
            ToolCall(id=f"edit-{number}", name="rewrite", arguments=asdict(edit)) for number, edit in enumerate(edits)
        )
        return answer.model_copy(update={"tool_calls": calls, "finish_reason": "tool_calls"}) if calls else answer

    def close(self) -> None:
        """Closes the policy."""
        close_policy(self._policy)


def _shown(messages: Sequence[Message]) -> list[ShownCode]:
    """The code that was shown so far."""
    found: list[ShownCode] = []
    for output in tool_outputs(messages):
        code = shown_code(output)
        if code:
            found.append(ShownCode(clean_path(output.data["path"]), min(code), tuple(code.values())))
    return found


def _place(code: ShownCode, tried: Sequence[WhatIfProbe]) -> Place:
    """The code with the first of the changes that can be made in it."""
    lines = dict(enumerate(code.lines, start=code.start))
    for probe in tried:
        new = with_change(code.path, lines, probe.line, probe.do) if clean_path(probe.path) == code.path else None
        if new is not None:
            return Place(code, "\n".join(new), probe.effect)
    return Place(code)


def _one_question(messages: Sequence[Message], places: Sequence[Place]) -> list[Message]:
    """The beginning of a conversation, with the code that was shown as part of the question.

    Small models answer a question that ends with the code, and repeat the pack after calls that they did not make. They
    also repeat an example, so the form of an answer is given only where nothing was shown. And they repeat code: a
    change that helped is worth nothing to them in words, and is taken as code.
    """
    *before, question = itertools.takewhile(lambda message: message.role != "assistant", messages)
    text = render(read_template(PLACES), problem=question.content.strip(), places=places)
    return [*before, question.model_copy(update={"content": text})]


@dataclass(frozen=True)
class ShownCode:
    """Consecutive lines of a file that the model has seen."""

    path: str
    start: int
    lines: tuple[str, ...]

    @property
    def end(self) -> int:
        """The last line's number."""
        return self.start + len(self.lines) - 1


@dataclass(frozen=True)
class CodeEdit:
    """Lines start to end of a file, and the code that takes their place: the arguments of `rewrite`."""

    path: str
    start: int
    end: int
    code: str


def read_edits(text: str, shown: Sequence[ShownCode]) -> tuple[CodeEdit, ...]:
    """The edits that an answer's blocks make, from the end of each file to its beginning.

    Blocks that change nothing, that go nowhere, or that overlap with an earlier one are left out.
    """
    found: list[CodeEdit] = []
    for fence in FENCE.finditer(text):
        edit = _edit(fence["body"].splitlines(), shown)
        if edit is not None and not any(_overlap(edit, other) for other in found):
            found.append(edit)
    return tuple(sorted(found, key=lambda edit: (edit.path, -edit.start)))


def _edit(block: Sequence[str], shown: Sequence[ShownCode]) -> CodeEdit | None:
    stated = _PLACE.fullmatch(block[0]) if block else None
    lines = _without_numbers(block[1:] if stated else block)
    if not any(line.strip() for line in lines):
        return None
    path = clean_path(stated["path"]) if stated else None
    matches = (_match_block(lines, code) for code in shown if path in (None, code.path))
    score, edit = max(matches, key=lambda match: match[0], default=(0.0, None))
    if edit is not None and score > 0:
        return edit if _changes(edit, shown) else None
    if stated is None:
        return None
    start = int(stated["start"])
    return CodeEdit(clean_path(stated["path"]), start, max(start, int(stated["end"] or start)), "\n".join(lines))


def _without_numbers(block: Sequence[str]) -> list[str]:
    """The lines without numbers that were copied, if all of them have one."""
    solid = [line for line in block if line.strip()]
    if solid and all(_NUMBER.match(line) for line in solid):
        return [_NUMBER.sub("", line, count=1) for line in block]
    return [line.rstrip() for line in block]


def _match_block(block: Sequence[str], shown: ShownCode) -> tuple[float, CodeEdit | None]:
    """The block over the lines of `shown` that it matches best, and how much it matches; None where nothing does.

    What stands before its first common line and after its last one replaces as many lines there:

        shown               block           after the edit of lines 11 to 12
        10 def inc(x):                      10 def inc(x):
        11     y = x        y = x + 1       11     y = x + 1
        12     return y     return y        12     return y         matches by 0.5: one of two lines
    """
    old, new = [line.strip() for line in shown.lines], [line.strip() for line in block]
    matches = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    common = [match for match in matches if any(old[match.a : match.a + match.size])]
    if not common:
        return _most_similar(block, shown)
    first, last = common[0], common[-1]
    start = max(0, first.a - first.b)
    end = min(len(old), last.a + len(new) - last.b)
    moved = indentation(shown.lines[first.a]) - indentation(block[first.b])
    code = "\n".join(_indented(line, moved) for line in block)
    score = sum(match.size for match in common) / len(new)
    return score, CodeEdit(shown.path, shown.start + start, shown.start + end - 1, code)


def _most_similar(block: Sequence[str], shown: ShownCode) -> tuple[float, CodeEdit | None]:
    """A block of one line over the line that it is most like."""
    (line, *more) = [line for line in block if line.strip()]
    if more:
        return 0.0, None
    likeness = [difflib.SequenceMatcher(None, old.strip(), line.strip()).ratio() for old in shown.lines]
    best = max(range(len(likeness)), key=likeness.__getitem__, default=None)
    if best is None or likeness[best] < SIMILAR:
        return 0.0, None
    code = _indented(line, indentation(shown.lines[best]) - indentation(line))
    return likeness[best] / 2, CodeEdit(shown.path, shown.start + best, shown.start + best, code)


def _indented(line: str, by: int) -> str:
    if not line.strip():
        return ""
    return " " * by + line if by > 0 else line[min(-by, indentation(line)) :]


def _changes(edit: CodeEdit, shown: Sequence[ShownCode]) -> bool:
    before = next(each for each in shown if each.path == edit.path and each.start <= edit.start <= each.end)
    return edit.code.splitlines() != [*before.lines[edit.start - before.start : edit.end - before.start + 1]]


def _overlap(one: CodeEdit, other: CodeEdit) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end
