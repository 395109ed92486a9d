"""Frames of the project in the tracebacks that Python programs print, and where doctests fail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gumshoe.env.inside.programs.project import holds_tests, project_path
from gumshoe.protocols import Workspace
from gumshoe.records import DebugFrame, TestOutcome, TestRun
from gumshoe.text import cut_line

_FRAME = re.compile(r'^\s*File "(?P<path>[^"\n]+)", line (?P<line>[1-9]\d{0,8})(?!\d)(?:, in (?P<function>\S+))?')
_DOCTEST = re.compile(r":(?P<line>[1-9]\d{0,8}): DocTestFailure$", re.MULTILINE)
_TELLING = re.compile(r"\b\w*(?:Error|Exception|Warning)\b|\bassert\b")
_LINE_LIMIT = 160


def with_frames(run: TestRun, workspace: Workspace) -> TestRun:
    """The run, with the frames of each failure that a runner printed apart from the exception."""
    root = workspace.sandbox.root
    return run.model_copy(update={"outcomes": tuple(_split_message(outcome, root) for outcome in run.outcomes)})


def _split_message(outcome: TestOutcome, root: str) -> TestOutcome:
    frames = () if outcome.frames else printed_frames(outcome.message, root)
    if not frames:
        return outcome
    return outcome.model_copy(update={"message": exception_text(outcome.message), "frames": frames})


def printed_frames(printed: str, root: str) -> tuple[DebugFrame, ...]:
    """The frames in printed tracebacks whose files are below `root` and not installed there, in order."""
    return tuple(_frames(printed.splitlines(), root))


def _frames(lines: list[str], root: str) -> Iterator[DebugFrame]:
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        match = _FRAME.match(line)
        path = project_path(match["path"], root) if match else None
        if match and path:
            code = "" if _FRAME.match(following) or not following.startswith("    ") else following.strip()
            yield DebugFrame(path=path, line=int(match["line"]), function=match["function"] or "<module>", code=code)


def own_frames(frames: Iterable[DebugFrame]) -> list[DebugFrame]:
    """The frames that are not in tests: a test's own frame is where a failure is seen, not where it could be mended."""
    return [frame for frame in frames if not holds_tests(frame.path)]


def exception_text(printed: str) -> str:
    """What a printed traceback says below its last frame; the whole text where there is none."""
    lines = printed.splitlines()
    last = max((number for number, line in enumerate(lines) if _FRAME.match(line)), default=None)
    if last is None:
        return printed.strip()
    rest = lines[last + 1 :]
    code = (number for number, line in enumerate(rest) if line.strip() and not line.startswith("    "))
    return "\n".join(rest[next(code, len(rest)) :]).strip() or printed.strip()


def describe_frame(frame: DebugFrame) -> str:
    """`path:line in function: code`, on one line."""
    return cut_line(f"{frame.path}:{frame.line} in {frame.function}: {frame.code}".rstrip(" :"), _LINE_LIMIT)


def doctest_place(test: str, message: str) -> tuple[str, int] | None:
    """The file and line of the example whose output differs, by pytest's id of the test and its message.

    None where the message is not about a doctest.
    """
    match = _DOCTEST.search(message)
    return (test.partition("::")[0], int(match["line"])) if match else None


def telling_line(test: str, message: str) -> str:
    """What is wrong, on one line: a doctest's difference, an error or a comparison, else the first line.

    `test` is pytest's id of the test; empty for a program without tests, whose last words count.
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    if doctest_place(test, lines[-1]) is not None:
        given = [number for number, line in enumerate(lines) if re.match(r"(Expected|Got)( nothing$|:$)", line)]
        return " ".join(lines[given[0] : -1]) if given else lines[-1]
    lines = lines if test else lines[::-1]
    return next((line for line in lines if _TELLING.search(line)), lines[0])
