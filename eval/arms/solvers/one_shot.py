"""The solver that answers once: it is shown the places of its pack, and answers with code or with calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.tool_output import shown_code, tool_outputs
from gumshoe.collect.packs import clean_path
from gumshoe.collect.policies import close_policy
from gumshoe.collect.prompts import read_template, render
from gumshoe.eval.arms.solvers.code_answers import Shown, edits_in
from gumshoe.protocols import Policy
from gumshoe.records import Completion, ContextPack, Message, Task, ToolCall, ToolSchema, WhatIfProbe
from gumshoe.tools.code.statements import with_change

__all__ = ["AGENT", "ShownFirst", "limited", "looks", "trials"]

PROMPTS = Path(__file__).parent / "prompts"
PROMPT = PROMPTS / "one_shot.jinja"
PLACES = PROMPTS / "places.jinja"
AGENT = AgentConfig(kind="rewrite", tools=("view", "rewrite"), prompt=str(PROMPT), nudges=1)
MARGIN = 3
"""Lines that are shown around a place."""
MOST_LINES = 120
MOST_PLACES = 8


def looks(pack: ContextPack | None) -> tuple[ToolCall, ...]:
    """The calls that show the best places of a pack, none of them twice."""
    found: dict[tuple[str, int, int], None] = {}
    for place in (pack.locations if pack is not None else ())[:MOST_PLACES]:
        start = max(1, place.start - MARGIN)
        found[clean_path(place.path), start, min(place.end + MARGIN, start + MOST_LINES - 1)] = None
    return tuple(
        ToolCall(id=f"look-{number}", name="view", arguments={"path": path, "start": start, "end": end})
        for number, (path, start, end) in enumerate(found)
    )


def limited(task: Task, pack: ContextPack | None) -> Task:
    """The task with as many turns as one answer takes: one, and one before it where there is something to show."""
    return task.model_copy(update={"limits": task.limits.model_copy(update={"steps": 2 if looks(pack) else 1})})


def trials(pack: ContextPack | None) -> tuple[WhatIfProbe, ...]:
    """The changes that let failing tests pass each time that a line is reached, as far as new runs confirmed it."""
    grounded = [finding.probe for finding in (pack.findings if pack is not None else ()) if finding.grounded]
    return tuple(
        probe for probe in grounded if isinstance(probe, WhatIfProbe) and probe.time is None and probe.when is None
    )


@dataclass(frozen=True)
class Place:
    """Code that the model is shown: as it is, and as a trial changed it, with what the trial did to the tests."""

    code: Shown
    trial: str = ""
    effect: str = ""


class ShownFirst:
    """A policy that is shown something before its first turn, and then answers with blocks of code, which become edits.

    A policy that calls `rewrite` itself may do that.

    Args:
        policy: who answers.
        shown: the calls that are made first.
        tried: changes that helped; those in the code that is shown are shown as code.
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
        edits = edits_in(answer.text, shown)
        calls = tuple(
            ToolCall(id=f"edit-{number}", name="rewrite", arguments=edit.arguments())
            for number, edit in enumerate(edits)
        )
        return answer.model_copy(update={"tool_calls": calls, "finish_reason": "tool_calls"}) if calls else answer

    def close(self) -> None:
        """Closes the policy."""
        close_policy(self._policy)


def _shown(messages: Sequence[Message]) -> list[Shown]:
    """The code that was shown so far."""
    found: list[Shown] = []
    for output in tool_outputs(messages):
        code = shown_code(output)
        if code:
            found.append(Shown(clean_path(output.data["path"]), min(code), tuple(code.values())))
    return found


def _place(code: Shown, tried: Sequence[WhatIfProbe]) -> Place:
    """The code with the first of the changes that can be made in it."""
    return next(_changed(code, tried), Place(code))


def _changed(code: Shown, tried: Sequence[WhatIfProbe]) -> Iterator[Place]:
    lines = dict(enumerate(code.lines, start=code.start))
    for probe in tried:
        new = with_change(code.path, lines, probe.line, probe.do) if clean_path(probe.path) == code.path else None
        if new is not None:
            yield Place(code, "\n".join(new), probe.effect)


def _one_question(messages: Sequence[Message], places: Sequence[Place]) -> list[Message]:
    """The beginning of a conversation, with the code that was shown as part of the question.

    Small models answer a question that ends with the code, and repeat the pack after calls that they did not make. They
    also repeat an example, so the form of an answer is given only where nothing was shown. And they repeat code: a
    change that helped is worth nothing to them in words, and is taken as code.
    """
    *before, question = itertools.takewhile(lambda message: message.role != "assistant", messages)
    text = render(read_template(PLACES), problem=question.content.strip(), places=places)
    return [*before, question.model_copy(update={"content": text})]
