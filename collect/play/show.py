"""What a person sees: observations and patches in color."""

from __future__ import annotations

import re

from rich.text import Text

from gumshoe.records import Observation
from gumshoe.standard_streams import visible

__all__ = ["patch_text", "shown"]

_OBSERVED = [
    (re.compile(r"^(FAILED|ERROR)\b.*"), "red"),
    (re.compile(r"^E .*|\b\w*(Error|Exception)\b: .*"), "red"),
    (re.compile(r"\b\d+ (failed|errors?)\b"), "bold red"),
    (re.compile(r"\b\d+ passed\b"), "bold green"),
    (re.compile(r"^(-> |> ).*"), "bold"),
    (re.compile(r"^(stopped|breakpoint)\b.*", re.IGNORECASE), "cyan"),
    (re.compile(r"^\*.*"), "yellow"),
    (re.compile(r"^\[\.\.\. .* \.\.\.\]$"), "dim"),
]
_CHANGED = [
    (re.compile(r"^(diff --git|index|---|\+\+\+|new file|deleted file) ?.*"), "bold"),
    (re.compile(r"^@@.*"), "cyan"),
    (re.compile(r"^\+.*"), "green"),
    (re.compile(r"^-.*"), "red"),
]


def shown(observation: Observation) -> Text:
    """An observation as a person reads it."""
    if observation.failure is not None:
        return Text(visible(observation.text), style="yellow")
    return _styled(observation.text, _CHANGED if observation.tool == "rewrite" else _OBSERVED)


def patch_text(patch: str) -> Text:
    """A unified diff in color."""
    return _styled(patch.rstrip("\n"), _CHANGED)


def _styled(text: str, styles: list[tuple[re.Pattern[str], str]]) -> Text:
    lines = [Text(line) for line in visible(text).split("\n")]
    for line in lines:
        for pattern, style in styles:
            found = pattern.search(line.plain)
            if found:
                line.stylize(style, found.start(), found.end())
                break
    return Text("\n").join(lines)
