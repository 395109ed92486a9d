"""Pictures with two axes: what an arm costs against what it repairs, and confidence against truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from gumshoe.eval.report.charts import Tick, nice_ticks
from gumshoe.eval.report.metrics import measured
from gumshoe.eval.results import ALL, ArmSummary, Summary

__all__ = ["Curve", "Plot", "Point", "calibration_plot", "cost_plot"]

WIDTH, HEIGHT = 560.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 18.0, 22.0, 44.0
LETTER, LINE = 6.6, 13.0
"""About what a letter and a line of a label take."""


@dataclass(frozen=True)
class Point:
    """A dot with its interval upwards and downwards, in the picture's units."""

    x: float
    y: float
    low: float
    high: float
    size: float
    label: str
    anchor: str
    title: str
    label_y: float = 0.0


@dataclass(frozen=True)
class Curve:
    """An arm's dots; `path` joins them, and is empty where they are not joined."""

    label: str
    colour: int
    points: tuple[Point, ...]
    path: str = ""


@dataclass(frozen=True)
class Plot:
    """A picture with two axes."""

    title: str
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_title: str
    y_title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    curves: tuple[Curve, ...]
    diagonal: str = ""


def cost_plot(summary: Summary) -> Plot | None:
    """What a task takes in dollars, else in tokens, seeker and solver together, against the share of bugs that are
    repaired; None where fewer than two arms have both.
    """
    for name, title in (("cost", "dollars a task"), ("tokens", "tokens a task")):
        spent = [(number, arm, value) for number, arm in enumerate(summary.arms) if (value := _spent(arm, name))]
        if len(spent) > 1:
            return _cost_plot(spent, f"{title}, seeker and solver")
    return None


def _spent(arm: ArmSummary, name: str) -> float | None:
    """What a task takes on average in all; None where that is unknown, or nothing was repaired or graded."""
    both = [measured(arm, ALL, metric).value for metric in (name, f"solver_{name}")]
    if measured(arm, ALL, "solved").value is None or both == [None, None]:
        return None
    return sum(value or 0.0 for value in both)


def _cost_plot(spent: Sequence[tuple[int, ArmSummary, float]], title: str) -> Plot:
    ticks = nice_ticks(0.0, max(value for _, _, value in spent))
    largest = ticks[-1]
    points = [_cost_point(arm, value, value / largest, title) for _, arm, value in spent]
    curves = [Curve(arm.title, number, (point,)) for (number, arm, _), point in zip(spent, _apart(points), strict=True)]
    return _plot(
        "What it costs, and what it repairs",
        title,
        "repaired",
        tuple(Tick(_x(tick / largest), f"{tick:,g}") for tick in ticks),
        curves,
    )


def _cost_point(arm: ArmSummary, value: float, share: float, title: str) -> Point:
    solved = measured(arm, ALL, "solved")
    right = solved.value or 0.0
    low, high = solved.low or 0.0, solved.high if solved.high is not None else right
    said = f"{arm.title}: {right * 100:.0f}% [{low * 100:.0f} to {high * 100:.0f}] at {value:,.4g} {title}"
    x = _x(share)
    anchor = "end" if x > WIDTH * 0.7 else "start"
    return Point(x, _y(right), _y(low), _y(high), 6.0, arm.title, anchor, said)


def _apart(points: Sequence[Point]) -> list[Point]:
    """The points with their labels beside them, moved down as far as it takes not to write over another."""
    taken: list[tuple[float, float, float]] = []
    placed: dict[int, Point] = {}
    for number, point in sorted(enumerate(points), key=lambda pair: (pair[1].y, pair[1].x)):
        width = LETTER * min(len(point.label), 24)
        left = point.x + 10 if point.anchor == "start" else point.x - 10 - width
        y = point.y - 8
        while any(abs(y - other) < LINE and left < end and start < left + width for start, end, other in taken):
            y += 3
        taken.append((left, left + width, y))
        placed[number] = dataclasses.replace(point, label_y=round(y, 2))
    return [placed[number] for number in range(len(points))]


def calibration_plot(summary: Summary) -> Plot | None:
    """How sure each arm said it was when it reported, against how often its first place was right."""
    curves: list[Curve] = []
    for number, arm in enumerate(summary.arms):
        if not arm.calibration:
            continue
        most = max(point.count for point in arm.calibration)
        points = tuple(
            Point(
                x=_x(point.confidence),
                y=_y(point.right),
                low=_y(point.right),
                high=_y(point.right),
                size=round(4.0 + 4.0 * (point.count / most) ** 0.5, 2),
                label="",
                anchor="start",
                title=f"{arm.title}: said {point.confidence * 100:.0f}%, right in {point.right * 100:.0f}% "
                f"of {point.count}",
            )
            for point in arm.calibration
        )
        path = "M" + " L".join(f"{point.x} {point.y}" for point in points)
        curves.append(Curve(arm.title, number, points, path))
    if not curves:
        return None
    ticks = tuple(Tick(_x(share / 4), f"{share * 25}%") for share in range(5))
    plot = _plot("How sure it says it is, and how often it is right", "stated confidence", "right", ticks, curves)
    return dataclasses.replace(plot, diagonal=f"M{_x(0)} {_y(0)} L{_x(1)} {_y(1)}")


def _plot(title: str, x_title: str, y_title: str, x_ticks: tuple[Tick, ...], curves: Sequence[Curve]) -> Plot:
    return Plot(
        title=title,
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=WIDTH - RIGHT,
        top=TOP,
        bottom=HEIGHT - BOTTOM,
        x_title=x_title,
        y_title=y_title,
        x_ticks=x_ticks,
        y_ticks=tuple(Tick(_y(share / 4), f"{share * 25}%") for share in range(5)),
        curves=tuple(curves),
    )


def _x(share: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(max(share, 0.0), 1.0), 2)


def _y(share: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(max(share, 0.0), 1.0), 2)
