"""The geometry of the report's pictures: plain numbers, in the units of each picture's view box."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gumshoe.collect.charts import nice_ticks
from gumshoe.eval.results import Measured

__all__ = ["DotChart", "LineChart", "Mark", "Row", "Series", "Tick", "dot_chart", "line_chart"]


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A mean with its interval: centre, both ends and height, in the picture's units."""

    x: float
    low: float
    high: float
    y: float
    shape: str
    title: str


@dataclass(frozen=True)
class Row:
    """One arm's line in a dot chart. `colour` is the number of the arm's colour."""

    label: str
    y: float
    colour: int
    marks: tuple[Mark, ...]
    note: str = ""


@dataclass(frozen=True)
class DotChart:
    """Means as dots with their intervals, one row an arm."""

    title: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    rows: tuple[Row, ...]
    ticks: tuple[Tick, ...]
    zero: float | None = None


@dataclass(frozen=True)
class Series:
    """One line of a line chart as an SVG path, with its last value."""

    label: str
    path: str
    kind: str
    last: str
    end: tuple[float, float]


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    series: tuple[Series, ...]


SHAPES = ("dot", "diamond", "square")


def dot_chart(
    title: str,
    rows: Sequence[tuple[str, int, Sequence[tuple[str, Measured]]]],
    *,
    low: float = 0.0,
    high: float = 1.0,
) -> DotChart:
    """A chart of shares. `rows` holds each arm's label, its colour, and its measures by group, in the shapes' order."""
    width, left, right, top, pitch = 388.0, 140.0, 14.0, 8.0, 38.0
    span = width - left - right

    def place(value: float) -> float:
        return round(left + span * (min(max(value, low), high) - low) / (high - low), 2)

    drawn: list[Row] = []
    for number, (label, colour, measured) in enumerate(rows):
        y = top + pitch * (number + 0.5)
        drawn.append(Row(label, y, colour, tuple(_marks(measured, y, place)), "" if _any(measured) else "not measured"))
    steps = (low, low + (high - low) / 4, (low + high) / 2, high - (high - low) / 4, high)
    ticks = tuple(
        Tick(place(step), f"{step * 100:+.0f}" if low < 0 < high and step else f"{step * 100:.0f}") for step in steps
    )
    bottom = top + pitch * len(rows)
    zero = place(0.0) if low < 0 < high else None
    return DotChart(title, width, bottom + 24, left, width - right, top, bottom, tuple(drawn), ticks, zero)


def _any(measured: Sequence[tuple[str, Measured]]) -> bool:
    return any(one.value is not None for _, one in measured)


def _marks(measured: Sequence[tuple[str, Measured]], y: float, place: Callable[[float], float]) -> list[Mark]:
    """The marks of one row, spread a little so that intervals do not lie on each other."""
    known = [(index, group, one) for index, (group, one) in enumerate(measured) if one.value is not None]
    marks: list[Mark] = []
    for order, (index, group, one) in enumerate(known):
        assert one.value is not None
        low = one.value if one.low is None else one.low
        high = one.value if one.high is None else one.high
        offset = (order - (len(known) - 1) / 2) * 11
        title = f"{group}: {one.value * 100:.1f} [{low * 100:.1f} to {high * 100:.1f}], {one.count} tasks"
        marks.append(Mark(place(one.value), place(low), place(high), y + offset, SHAPES[index % len(SHAPES)], title))
    return marks


def line_chart(lines: Sequence[tuple[str, str, Sequence[tuple[float, float]]]]) -> LineChart | None:
    """A chart of (label, kind, points) lines; None where there is no line with two points to draw."""
    drawable = [(label, kind, points) for label, kind, points in lines if len(points) > 1]
    if not drawable:
        return None
    width, height, left, right, top, bottom = 720.0, 260.0, 46.0, 64.0, 14.0, 30.0
    xs = [x for _, _, points in drawable for x, _ in points]
    ys = [y for _, _, points in drawable for _, y in points]
    x_low, x_high = min(xs), max(max(xs), min(xs) + 1e-9)
    y_ticks = nice_ticks(min(0.0, min(ys)), max(ys))
    y_low, y_high = y_ticks[0], max(y_ticks[-1], max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            round(left + (width - left - right) * (x - x_low) / (x_high - x_low), 2),
            round(height - bottom - (height - top - bottom) * (y - y_low) / (y_high - y_low), 2),
        )

    series: list[Series] = []
    for label, kind, points in drawable:
        placed = [place(x, y) for x, y in points]
        path = "M" + " L".join(f"{x} {y}" for x, y in placed)
        series.append(Series(label, path, kind, f"{points[-1][1]:.2f}", placed[-1]))
    return LineChart(
        width=width,
        height=height,
        left=left,
        right=width - right,
        top=top,
        bottom=height - bottom,
        x_ticks=tuple(Tick(place(x, 0)[0], f"{x:g}") for x in nice_ticks(x_low, x_high) if x_low <= x <= x_high),
        y_ticks=tuple(Tick(place(x_low, y)[1], f"{y:g}") for y in y_ticks),
        series=tuple(series),
    )
