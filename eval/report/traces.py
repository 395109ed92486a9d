"""A trajectory as the report shows it: steps, the pack, and which step each finding quotes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from gumshoe.collect.grounding import is_grounded, observation_texts
from gumshoe.eval.scorers.localisation import clean_path
from gumshoe.eval.scorers.valid_calls import is_valid
from gumshoe.records import ContextPack, Finding, Step, ToolCall, Trajectory

__all__ = [
    "Link",
    "MapFinding",
    "MapStep",
    "Piece",
    "ShownFinding",
    "ShownLocation",
    "ShownStep",
    "Trace",
    "TraceMap",
    "show_trace",
    "trace_map",
]

OBSERVATION_CHARS = 4000
"""Longer observations are cut in the page; the run folder holds them whole."""


@dataclass(frozen=True)
class Piece:
    """A part of an observation; `finding` is the number of the finding that quotes it, None for the rest."""

    text: str
    finding: int | None = None


@dataclass(frozen=True)
class ShownStep:
    """One turn: what was decided, why, what was called, what came back."""

    anchor: str
    index: int
    kind: str
    confidence: float | None
    rationale: str
    calls: tuple[str, ...]
    tools: str
    pieces: tuple[Piece, ...]
    left_out: int
    valid: bool
    quoted: bool


@dataclass(frozen=True)
class ShownFinding:
    """A claim with its quote, and where the quote is said to stand."""

    anchor: str
    claim: str
    quote: str
    step: int
    target: str | None
    grounded: bool


@dataclass(frozen=True)
class ShownLocation:
    """A handed-over place; `right` where it holds a line that the gold patch touches."""

    place: str
    symbol: str
    why: str
    right: bool


@dataclass(frozen=True)
class Trace:
    """One episode on the page."""

    anchor: str
    steps: tuple[ShownStep, ...]
    findings: tuple[ShownFinding, ...]
    locations: tuple[ShownLocation, ...]
    hypothesis: str
    ruled_out: tuple[tuple[str, str], ...]
    failing_frame: str
    handed_over: bool
    stop: str
    tokens: int


def show_trace(trajectory: Trajectory, anchor: str, gold: Mapping[str, Set[int]]) -> Trace:
    """The trajectory for the page; `anchor` begins all its ids, `gold` marks the right locations."""
    pack = trajectory.context_pack or ContextPack()
    texts = observation_texts(trajectory.steps)
    known = {step.index for step in trajectory.steps}
    findings = tuple(
        ShownFinding(
            anchor=f"{anchor}-finding-{number}",
            claim=finding.claim,
            quote=finding.quote,
            step=finding.step,
            target=f"{anchor}-step-{finding.step}" if finding.step in known else None,
            grounded=is_grounded(finding, texts),
        )
        for number, finding in enumerate(pack.findings, start=1)
    )
    frame = pack.failing_frame
    return Trace(
        anchor=anchor,
        steps=tuple(_step(step, anchor, pack.findings) for step in trajectory.steps),
        findings=findings,
        locations=tuple(
            ShownLocation(
                place=f"{place.path}:{place.start}" + (f"-{place.end}" if place.end != place.start else ""),
                symbol=place.symbol or "",
                why=place.why,
                right=any(line in place.lines for line in gold.get(clean_path(place.path), ())),
            )
            for place in pack.locations
        ),
        hypothesis=pack.hypothesis,
        ruled_out=tuple((item.what, item.why) for item in pack.ruled_out),
        failing_frame=f"{frame.path}:{frame.line} in {frame.function}" if frame is not None else "",
        handed_over=trajectory.context_pack is not None,
        stop=trajectory.stop.value.replace("_", " "),
        tokens=trajectory.usage.prompt_tokens + trajectory.usage.completion_tokens,
    )


def _step(step: Step, anchor: str, findings: Sequence[Finding]) -> ShownStep:
    text = "\n".join(observation.text for observation in step.observations)
    shown = text[:OBSERVATION_CHARS]
    quotes = [(number, finding.quote) for number, finding in enumerate(findings, start=1) if finding.step == step.index]
    pieces = mark_quotes(shown, quotes)
    decision = step.decision or step.stated
    return ShownStep(
        anchor=f"{anchor}-step-{step.index}",
        index=step.index,
        kind=decision.value if decision is not None else "none",
        confidence=step.confidence,
        rationale=step.rationale or "",
        calls=tuple(show_call(call) for call in step.tool_calls),
        tools=", ".join(call.name or "?" for call in step.tool_calls) or "no call",
        pieces=pieces,
        left_out=len(text) - len(shown),
        valid=is_valid(step),
        quoted=any(piece.finding is not None for piece in pieces),
    )


def show_call(call: ToolCall) -> str:
    """The call as one would write it in Python; what could not be read stands as it came."""
    if call.parse_error is not None:
        return f"{call.raw or call.name}\n({call.parse_error})"
    arguments = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items())
    return f"{call.name}({arguments})"


def mark_quotes(text: str, quotes: Sequence[tuple[int, str]]) -> tuple[Piece, ...]:
    """`text` in pieces, the first place of each quote marked. White space counts as one space; overlaps give way."""
    spans: list[tuple[int, int, int]] = []
    for number, quote in quotes:
        words = quote.split()
        match = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
        if match is not None and all(match.end() <= start or end <= match.start() for start, end, _ in spans):
            spans.append((match.start(), match.end(), number))
    pieces: list[Piece] = []
    reached = 0
    for start, end, number in sorted(spans):
        pieces += [Piece(text[reached:start]), Piece(text[start:end], number)]
        reached = end
    pieces.append(Piece(text[reached:]))
    return tuple(piece for piece in pieces if piece.text)


@dataclass(frozen=True)
class MapStep:
    """A step's box in the picture of a trace."""

    x: float
    step: ShownStep
    label: str


@dataclass(frozen=True)
class MapFinding:
    """A finding's box below the steps."""

    x: float
    finding: ShownFinding
    label: str


@dataclass(frozen=True)
class Link:
    """A curve from a finding to the step that it quotes."""

    path: str
    grounded: bool


@dataclass(frozen=True)
class TraceMap:
    """The picture of a trace: steps in a row, findings below, a curve from each to the step it quotes."""

    width: float
    height: float
    steps: tuple[MapStep, ...]
    findings: tuple[MapFinding, ...]
    links: tuple[Link, ...]


STEP_W, STEP_GAP, STEP_H = 104.0, 14.0, 58.0
FINDING_W, FINDING_GAP, FINDING_H, FINDING_Y = 176.0, 14.0, 46.0, 132.0


def trace_map(trace: Trace) -> TraceMap:
    """Places the boxes and curves."""
    steps_width = len(trace.steps) * (STEP_W + STEP_GAP) - STEP_GAP
    findings_width = len(trace.findings) * (FINDING_W + FINDING_GAP) - FINDING_GAP
    width = max(steps_width, findings_width, STEP_W)
    steps = tuple(
        MapStep(round((width - steps_width) / 2 + number * (STEP_W + STEP_GAP), 1), step, _short(step.tools, 13))
        for number, step in enumerate(trace.steps)
    )
    findings = tuple(
        MapFinding(
            round((width - findings_width) / 2 + number * (FINDING_W + FINDING_GAP), 1),
            finding,
            _short(finding.claim, 27),
        )
        for number, finding in enumerate(trace.findings)
    )
    middles = {placed.step.index: placed.x + STEP_W / 2 for placed in steps}
    links: list[Link] = []
    for placed in findings:
        target = middles.get(placed.finding.step)
        if target is not None:
            start, half = placed.x + FINDING_W / 2, (FINDING_Y + STEP_H) / 2
            path = f"M{start} {FINDING_Y} C{start} {half} {target} {half} {target} {STEP_H + 2}"
            links.append(Link(path, placed.finding.grounded))
    height = FINDING_Y + FINDING_H if findings else STEP_H
    return TraceMap(width, height, steps, findings, tuple(links))


def _short(text: str, longest: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"
