"""The heuristic to beat: run the tests, report the last line of the traceback that is in the repository's own code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from gumshoe.collect.decisions import format_decision
from gumshoe.collect.observed import observed
from gumshoe.records import Completion, Decision, Message, ToolCall, ToolSchema

__all__ = ["TracebackPolicy", "last_frame"]

FRAME = re.compile(
    r"""(?:File "(?:[^"]*/workspace/)?(?P<quoted>[^"]+\.py)", line |(?P<path>[\w./-]+\.py):)(?P<line>\d+)"""
)


class TracebackPolicy:
    """Two turns: eval, report."""

    kind = "traceback"
    model = ""
    trusted = True

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """Runs the tests first, then reports."""
        del tools
        seen = observed(messages)
        if not seen:
            text = format_decision(Decision.SEEK, None, "I run the tests.")
            return Completion(text=text, tool_calls=(ToolCall(id="call-0", name="eval"),), finish_reason="tool_calls")
        call = ToolCall(id="call-1", name="report", arguments=_report(seen[-1].step, seen[-1].text))
        text = format_decision(Decision.REPORT, None, "I report the last line of the traceback.")
        return Completion(text=text, tool_calls=(call,), finish_reason="tool_calls")


def last_frame(text: str) -> tuple[str, int, str] | None:
    """Path, line number and whole text line of the last frame that `text` names; frames of tests only if no other."""
    frames = [
        (match["path"] or match["quoted"], int(match["line"]), line.strip())
        for line in text.splitlines()
        for match in FRAME.finditer(line)
        if int(match["line"]) > 0
    ]
    own = [frame for frame in frames if not _is_test(frame[0])]
    chosen = own or frames
    return chosen[-1] if chosen else None


def _is_test(path: str) -> bool:
    name = path.rsplit("/", 1)[-1]
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py" or path.startswith("/")


def _report(step: int, text: str) -> dict[str, JsonValue]:
    frame = last_frame(text)
    if frame is None:
        return {"locations": [], "findings": [], "hypothesis": "The tests show no traceback."}
    path, line, quote = frame
    return {
        "locations": [{"path": path, "start": line, "end": line}],
        "findings": [{"claim": "last line of the traceback", "step": step, "quote": quote}],
        "hypothesis": f"The traceback ends at {path}:{line}.",
    }
