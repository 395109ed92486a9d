"""A server with scripted models of known quality: seekers that find the place always, sometimes or never, and a
solver that mends what it is shown, and nothing else. And tasks for them.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.text import FENCE
from support.provider_server import Handler, chat, provider

Said = tuple[str, list[tuple[str, dict[str, Any]]]]

PROMPT_TOKENS, ANSWER_TOKENS = 100, 10
WRONG = ("README.md", 1)
SHOWN = re.compile(r"^(?P<path>\S+) \d+-\d+ of \d+ lines?$")
NUMBERED = re.compile(r"^[* ] *(?P<number>\d+) (?P<code>.*) \+ 1$")


class Models:
    """Answers by the model's name; `places` tells where the bug of a problem statement is."""

    def __init__(self, places: Mapping[str, tuple[str, int]], found_by_middling: Sequence[str]) -> None:
        self._places = places
        self._found = found_by_middling
        self.asked: list[dict[str, Any]] = []

    def answer(self, request: Mapping[str, Any]) -> Said:
        self.asked.append(dict(request))
        return self._solve(request) if request["model"] == "solver" else self._seek(request)

    def _seek(self, request: Mapping[str, Any]) -> Said:
        messages = request["messages"]
        statement = messages[1]["content"]
        right = {"perfect": True, "useless": False}.get(request["model"], statement in self._found)
        path, line = self._places[statement] if right else WRONG
        shown = next((message["content"] for message in messages if message["role"] == "tool"), None)
        if shown is None:
            return "[seek 0.5] I look there.", [("view", {"path": path, "start": line, "end": line})]
        return f"[report {0.9 if right else 0.6}] There it is.", [
            (
                "report",
                {
                    "locations": [{"path": path, "start": line, "end": line}],
                    "hypothesis": "One is added too much.",
                },
            )
        ]

    def _solve(self, request: Mapping[str, Any]) -> Said:
        """Takes ` + 1` off the lines that it was shown; looks where the pack says if it has to look itself."""
        if "tools" not in request:
            return _code_answer(request["messages"][-1]["content"]), []
        done = [call["function"]["name"] for message in request["messages"] for call in message.get("tool_calls", ())]
        names = {tool["function"]["name"] for tool in request["tools"]}
        found = list(_shown_bugs(request["messages"])) if "rewrite" not in done else []
        if found:
            return "[edit 0.8] One too much.", [("rewrite", change) for change in found]
        places = re.findall(r"^- (\S+):(\d+)-(\d+)", request["messages"][1]["content"], re.MULTILINE)
        if places and "view" in names and "view" not in done:
            path, start, end = places[0]
            return "[seek 0.5] I look.", [("view", {"path": path, "start": int(start), "end": int(end)})]
        return ("[submit 0.5] Done.", [("submit", {})]) if "submit" in names else ("I do not know.", [])


def _code_answer(question: str) -> str:
    """The lines of the question's code that have ` + 1`, without it, each in a block."""
    code = "\n".join(fence["body"] for fence in FENCE.finditer(question))
    mended = [line.removesuffix(" + 1") for line in code.splitlines() if line.endswith(" + 1")]
    return "\n".join(f"```python\n{line}\n```" for line in mended) or "I do not know."


def _shown_bugs(messages: Sequence[Mapping[str, Any]]) -> Generator[dict[str, Any]]:
    for message in messages:
        if message["role"] != "tool":
            continue
        title, *lines = re.sub(r"^\[step \d+\] ", "", message["content"]).splitlines()
        path = SHOWN.match(title)
        for line in lines if path else ():
            match = NUMBERED.match(line)
            if path and match:
                number = int(match["number"])
                yield {"path": path["path"], "code": f"{match['code']}\n", "start": number, "end": number}


@contextmanager
def serving(models: Models) -> Generator[str]:
    """The address of a chat server with these models."""

    def answer(handler: Handler, request: dict[str, Any]) -> None:
        chat(*models.answer(request))(handler, request)

    with provider(answer) as server:
        yield server.url


# --- tasks for solvers --------------------------------------------------------------------------------------------

CHECK = "from parts import twice\n\n\ndef test_twice():\n    assert twice(2) == 4\n"
LUCK = """\
import pathlib


def test_luck():
    with pathlib.Path('{runs}').open('a+') as runs:
        runs.write('.')
        runs.seek(0)
        assert len(runs.read()) <= 2
"""
"""Passes in the two runs of the first verdict."""


def write_tasks(folder: Path, count: int) -> Path:
    """Tasks that differ in their statement; the last one's tests pass in the first verdict only."""
    wrong, right = b"def twice(n):\n    return n * 2 + 1\n", b"def twice(n):\n    return n * 2\n"
    repo, lucky = folder / "repo", folder / "lucky"
    for place in (repo, lucky):
        place.mkdir(parents=True)
        (place / "parts.py").write_bytes(wrong)
        (place / "test_parts.py").write_text(CHECK)
    (lucky / "test_luck.py").write_text(LUCK.format(runs=folder / "runs"))
    pairs: list[tuple[Task, Oracle]] = []
    for number in range(count):
        is_last = number == count - 1
        task = Task(
            id=f"parts/{number}",
            source="synth",
            problem_statement=f"twice() of customer {number} gives too much.",
            workspace=WorkspaceSpec(path=str(lucky if is_last else repo)),
            entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            readonly=("test_*.py",),
            limits=Limits(steps=6, command_timeout_s=60),
        )
        oracle = Oracle(
            task_id=task.id,
            gold_patch=make_patch({"parts.py": (wrong, right)}),
            fail_to_pass=("test_parts.py::test_twice",),
            pass_to_pass=("test_luck.py::test_luck",) if is_last else (),
        )
        pairs.append((task, oracle))
    write_taskset(folder, pairs)
    return folder
