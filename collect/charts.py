"""Small pictures of distributions, as SVG text: the same counts always give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Panel", "categories", "draw", "histogram", "nice_ticks"]

WIDTH, HEIGHT = 380.0, 210.0
"""Size of one panel. Two panels stand side by side."""
LEFT, RIGHT, TOP, BOTTOM = 44.0, 14.0, 34.0, 26.0
NAMES = 110.0
"""Room for the names of categories, in place of LEFT."""
MOST_BARS = 24
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}"
    ".axis{stroke:#d0d7de;stroke-width:1}.bar{fill:#0969da}.end{text-anchor:end}.middle{text-anchor:middle}"
)


@dataclass(frozen=True)
class Panel:
    """One distribution, drawn as the inside of an SVG group."""

    body: str


def histogram(title: str, counts: Mapping[int, int], *, unit: int = 1) -> Panel:
    """How often each number occurs, in at most about two dozen bars of equal width.

    Args:
        title: what is counted.
        counts: how often each number occurs.
        unit: what a number of 1 stands for, such as 100 if lengths were counted in hundreds.
    """
    if not counts:
        return Panel(_text(LEFT, TOP - 16, title, "title") + _text(LEFT, TOP + 20, "none"))
    low, high = min(counts), max(counts)
    width = max(1, math.ceil((high - low + 1) / MOST_BARS))
    bars = [0] * math.ceil((high - low + 1) / width)
    for number, count in counts.items():
        bars[(number - low) // width] += count
    ticks = nice_ticks(0, max(bars), 4)
    floor, room, across = HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP, WIDTH - LEFT - RIGHT
    parts = [_text(LEFT, TOP - 16, title, "title")]
    for tick in ticks:
        y = floor - room * tick / ticks[-1]
        parts.append(_line(LEFT, y, WIDTH - RIGHT, y) + _text(LEFT - 6, y + 4, f"{tick:g}", "end"))
    pitch = across / len(bars)
    for index, count in enumerate(bars):
        first = (low + index * width) * unit
        last = (low + (index + 1) * width) * unit - 1
        told = f"{first}: {count}" if first == last else f"{first} to {last}: {count}"
        height = room * count / ticks[-1]
        parts.append(_bar(LEFT + index * pitch + pitch * 0.06, floor - height, pitch * 0.88, height, told))
    every = max(1, math.ceil(len(bars) / 6))
    for index in range(0, len(bars), every):
        where = LEFT + (index + 0.5) * pitch
        parts.append(_text(where, floor + 17, str((low + index * width) * unit), "middle"))
    return Panel("".join(parts))


def categories(title: str, counts: Mapping[str, int]) -> Panel:
    """How often each name occurs, the most frequent first; those that do not fit are combined."""
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    room = 8
    if len(ranked) > room:
        ranked = [*ranked[: room - 1], ("others", sum(count for _, count in ranked[room - 1 :]))]
    parts = [_text(LEFT, TOP - 16, title, "title")]
    if not ranked:
        return Panel(parts[0] + _text(LEFT, TOP + 20, "none"))
    pitch = (HEIGHT - TOP - 10) / room
    most = max(count for _, count in ranked)
    across = WIDTH - NAMES - RIGHT - 50
    for row, (name, count) in enumerate(ranked):
        y = TOP + row * pitch
        length = across * count / most if most else 0.0
        parts.append(_text(NAMES - 6, y + pitch * 0.62, name, "end"))
        parts.append(_bar(NAMES, y + pitch * 0.14, length, pitch * 0.72, f"{name}: {count}"))
        parts.append(_text(NAMES + length + 6, y + pitch * 0.62, str(count)))
    return Panel("".join(parts))


def draw(panels: Sequence[Panel], label: str) -> str:
    """The panels in two columns, as one SVG file. `label` says what it shows, for readers who cannot see it."""
    rows = math.ceil(len(panels) / 2)
    width, height = 2 * WIDTH, rows * HEIGHT
    groups = "".join(
        f'<g transform="translate({index % 2 * WIDTH:g} {index // 2 * HEIGHT:g})">{panel.body}</g>\n'
        for index, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(label)}">\n<style>{STYLE}</style>\n'
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>\n{groups}</svg>\n'
    )


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers from at most `low` to at least `high`."""
    span = max(high - low, 1e-9)
    raw = span / max(count - 1, 1)
    magnitude = 10 ** math.floor(math.log10(raw))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{styled}>{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="axis" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _bar(x: float, y: float, width: float, height: float, told: str) -> str:
    return (
        f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
        f"<title>{escape(told)}</title></rect>"
    )
