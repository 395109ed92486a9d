"""The scripted teacher: it knows the answer, and works through the real environment as a good debugger would.

It runs the tests, reads the failure, asks which functions are suspicious, reads the one with the cause, stops there,
looks at the values and decides. As debug agent it then makes exactly the gold change, runs the tests again and
submits; as seeker it reports. What it says is drawn from what it has seen. Everything it sees is real tool output.
"""

from __future__ import annotations

import builtins
import keyword
import random
import re
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from gumshoe.collect.decisions import format_decision
from gumshoe.collect.evidence import (
    Region,
    build_pack,
    failures,
    functions_around,
    pack_arguments,
    region_of,
    seen_code,
    stop_at,
    telling_values,
)
from gumshoe.collect.policies.gold import Change, read_gold
from gumshoe.collect.policies.phrases import Phrases
from gumshoe.collect.tool_output import ToolOutput, tool_outputs
from gumshoe.errors import PolicyError, ScriptExhausted
from gumshoe.records import Completion, Decision, Message, Oracle, Task, ToolCall, ToolSchema, WorkspaceSpec
from gumshoe.tools.suspects import shown_suspects

__all__ = ["TeacherPolicy"]

WINDOW = 60
"""Lines of code that one look takes in at most."""
OUTLINE = r"def (?!test_)"
"""Finds where functions begin, tests left out."""

Turn = tuple[Decision, float, str, str, Mapping[str, object]]
Plan = Generator[Turn, list[ToolOutput], list[ToolOutput]]


class TeacherPolicy:
    """One episode of the teacher.

    Args:
        task: what is worked on.
        oracle: its answer.
        seed: of the small choices: phrases, order, which extra looks.
        explore: probability of a step that is not strictly needed, 0 to 1.
        whole_functions: report the functions that hold the lines that matter, not these lines alone.

    Raises:
        TaskError: the gold patch cannot be made by edits.
    """

    kind = "teacher"
    model = ""
    trusted = True

    def __init__(
        self,
        task: Task,
        oracle: Oracle,
        *,
        seed: int = 0,
        explore: float = 0.25,
        whole_functions: bool = False,
    ) -> None:
        self._task = task
        self._gold = read_gold(oracle)
        self._rng = random.Random(seed)
        self._phrases = Phrases(self._rng)
        self._explore = explore
        self._whole_functions = whole_functions
        self._tools: frozenset[str] = frozenset()
        self._plan: Plan | None = None
        self._turns = 0
        self._viewed: dict[tuple[str, int], int] = {}

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The next turn. Turns of a replayed journal are gone through first, so that it finds its place.

        Raises:
            ScriptExhausted: the episode goes on after the teacher's last turn.
            PolicyError: the agent lacks a tool that the teacher needs.
        """
        self._tools = frozenset(tool.name for tool in tools)
        past = [index for index, message in enumerate(messages) if message.role == "assistant"]
        turn: Turn | None = None
        for number in range(self._turns, len(past) + 1):
            known = messages[: past[number]] if number < len(past) else messages
            turn = self._advance(tool_outputs(known))
        self._turns = len(past) + 1
        assert turn is not None
        decision, confidence, why, tool, arguments = turn
        call = ToolCall.model_validate({"id": f"call-{len(past)}", "name": tool, "arguments": arguments})
        text = format_decision(decision, confidence, why)
        return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")

    def _advance(self, seen: list[ToolOutput]) -> Turn:
        try:
            if self._plan is None:
                self._plan = self._episode()
                return next(self._plan)
            return self._plan.send(seen)
        except StopIteration:
            raise ScriptExhausted(f"the teacher has finished {self._task.id} but another turn was requested") from None

    def _episode(self) -> Plan:
        if self._likes("listdir"):
            yield Decision.SEEK, 0.2, self._phrases.layout(), "listdir", {}
        seen = yield Decision.SEEK, 0.3, self._phrases.run_tests(), "eval", {}
        for path, line in self._gold.places:
            seen = yield from self._read(seen, path, line)
        if "pdb" in self._tools:
            for path, line in self._gold.places[:2]:
                seen = yield from self._stop_at(path, line)
        why = self._hypothesis(seen)
        if "report" in self._tools:
            return (yield from self._hand_over(seen, why))
        if "rewrite" in self._tools:
            return (yield from self._repair(seen, why))
        raise PolicyError("the teacher needs the tool rewrite, or report, to end an episode")

    def _read(self, seen: list[ToolOutput], path: str, line: int) -> Plan:
        """Looks for the function around the line, among the suspects first, then in an outline, and views it."""
        called = {output.tool for output in seen}
        if "suspects" in self._tools and "suspects" not in called:
            seen = yield Decision.SEEK, 0.4, self._phrases.suspects(), "suspects", {}
        suspect = suspect_around(seen, path, line)
        if suspect is None and path not in outline(seen) and "grep" in self._tools:
            seen = yield Decision.SEEK, 0.4, self._phrases.outline(), "grep", {"pattern": OUTLINE}
        window = suspect or self._window(outline(seen).get(path, []), path, line)
        if window[1] - window[0] <= WINDOW:
            self._viewed[path, line] = window[0]
        else:
            window = max(1, line - WINDOW // 2), line + WINDOW // 2
        start, end = window
        why = self._phrases.read()
        return (yield Decision.SEEK, 0.5, why, "view", {"start": start, "end": end, "path": path})

    def _stop_at(self, path: str, line: int) -> Plan:
        """Stops where the function that was viewed begins, runs to its end, and looks at the values there."""
        start = self._viewed.get((path, line), line)
        commands = [f"b {path}:{start}", "c", "r", "locals"]
        return (yield Decision.SEEK, 0.6, self._phrases.stop(), "pdb", {"command": "\n".join(commands)})

    def _hand_over(self, seen: list[ToolOutput], why: str) -> Plan:
        pack = build_pack(seen, self._gold.lines, why, whole_functions=self._whole_functions)
        if pack is None:
            raise PolicyError(f"the teacher saw none of the code that {self._task.id} is about")
        why = self._phrases.report(pack.locations[0])
        return (yield Decision.REPORT, 0.9, why, "report", pack_arguments(pack))

    def _repair(self, seen: list[ToolOutput], why: str) -> Plan:
        for change in self._gold.changes:
            seen = yield Decision.EDIT, 0.8, why, "rewrite", _rewrite_arguments(change)
        seen = yield Decision.VERIFY, 0.9, self._phrases.verify(), "eval", {}
        left = [failure for failure in failures(seen) if failure.step == seen[-1].step]
        sure = 0.5 if left else 1.0
        return (yield Decision.SUBMIT, sure, self._phrases.submit(len(left)), "submit", {})

    def _hypothesis(self, seen: list[ToolOutput]) -> str:
        path, line = self._gold.places[0] if self._gold.places else (self._gold.changes[0].path, 1)
        code = seen_code(seen).get(path, {})
        value = next(
            (
                shown
                for output in seen
                if stop_at(output, path, functions_around(code, self._gold.lines.get(path, frozenset())))
                for _, shown in telling_values(output, names_in(code.get(line, "")))
            ),
            None,
        )
        symbol = region_of(code, line).symbol if line in code else None
        return self._phrases.hypothesis(path, line, symbol, value)

    def _window(self, defs: Sequence[int], path: str, line: int) -> tuple[int, int]:
        """What to view: from the function's own line to where the next one begins, as the outline has them.

        Without an outline, the lines around.
        """
        region = self._region(path, line)
        start = max((number for number in defs if number <= line), default=line - WINDOW // 2)
        end = min((number for number in defs if number > line), default=None)
        if region and region.symbol and region.start > start:
            start = region.start
        return max(start, 1), end or (region.end if region else line)

    def _region(self, path: str, line: int) -> Region | None:
        source = source_of(self._task.workspace, path)
        if source is None:
            return None
        return region_of(dict(enumerate(source.splitlines(), start=1)), line)

    def _likes(self, tool: str) -> bool:
        """Whether to take a look that is not needed; the tool must be there."""
        return tool in self._tools and self._rng.random() < self._explore


def outline(seen: Sequence[ToolOutput]) -> dict[str, list[int]]:
    """The lines at which functions begin, by path, as `grep` has listed them."""
    found: dict[str, list[int]] = {}
    for output in seen:
        for match in output.data.get("matches", ()) if output.tool == "grep" else ():
            if match["text"].lstrip().startswith(("def ", "async def ")):
                found.setdefault(match["path"], []).append(match["line"])
    return found


def suspect_around(seen: Sequence[ToolOutput], path: str, line: int) -> tuple[int, int] | None:
    """First and last line of the smallest function around a line that `suspects` has shown."""
    found = [
        (suspect["start"], suspect["end"])
        for output in seen
        if output.tool == "suspects"
        for suspect in shown_suspects(output.data)
        if suspect["path"] == path and suspect["start"] <= line <= suspect["end"]
    ]
    return min(found, key=lambda edges: edges[1] - edges[0], default=None)


def names_in(code: str) -> list[str]:
    """The names of variables that a line of code reads: no calls, attributes, keywords or builtins."""
    found = re.findall(r"(?<![\w.\"'])([A-Za-z_]\w*)(?![\w(\"'])", code)
    return [name for name in dict.fromkeys(found) if not keyword.iskeyword(name) and not hasattr(builtins, name)]


def source_of(workspace: WorkspaceSpec, path: str) -> str | None:
    """The text of a file of the buggy repository, where it is on this machine."""
    if path in workspace.overlay:
        return workspace.overlay[path]
    if workspace.path is None:
        return None
    try:
        return (Path(workspace.path) / path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _rewrite_arguments(change: Change) -> dict[str, object]:
    if change.start is None:
        return {"path": change.path, "code": change.code}
    return {"path": change.path, "code": change.code, "start": change.start, "end": change.end}
