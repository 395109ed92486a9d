r"""The picture of docs/results.md, from the folders of evaluations.

    python -m benchmarks.results.results_picture runs/results/eval --solver runs/results/solve \
        --scaling 20=runs/results/eval20 79=runs/results/eval --out docs/images/results.png

Its panels: function Acc@1 of each seeker with 95% intervals, over all bugs and over the hard ones; with `--solver`, the
share of bugs that the solver fixed with the packs of each arm; with `--scaling`, function Acc@1 of the arm `trained`,
or of the only one, by the number of traces, over the bugs that all of these evaluations have, and that of the first
suspect; where a seeker states its confidence, how often its first place was right; and function Acc@1 by the seconds
that an episode took.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.results.results_table import (
    ALL,
    HARD,
    Rows,
    grouped,
    is_fixed,
    is_right,
    read_evaluations,
    seekers_of,
    solved_by_arm,
)
from gumshoe.eval.score.measures import wilson

BLUE, ORANGE, GREEN, PINK, GRAY = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#888888"

Panel = Callable[[Axes], None]


def main() -> None:
    """Draws the panels that there is something for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of an evaluation of seekers")
    parser.add_argument("--solver", type=Path, nargs="+", metavar="RUN", help="folder of an evaluation of packs")
    parser.add_argument(
        "--scaling", nargs="*", type=_point, default=[], metavar="TRACES=RUN", help="evaluations by number of traces"
    )
    parser.add_argument("--out", type=Path, required=True, help="file of the picture (.svg or .png)")
    options = parser.parse_args()
    summaries, rows = read_evaluations(options.runs)
    labels = {name: arm["title"] for name, arm in summaries.items()}
    arms = seekers_of(summaries, rows)
    panels: list[Panel] = [lambda axes: seekers_panel(axes, arms, labels)]
    if options.solver:
        panels.append(lambda axes: solver_panel(axes, options.solver))
    if options.scaling:
        panels.append(lambda axes: scaling_panel(axes, sorted(options.scaling), arms.get("suspect")))
    calibrated = [arm for arm in summaries.values() if arm["calibration"]]
    if calibrated:
        panels.append(lambda axes: calibration_panel(axes, calibrated))
    panels.append(lambda axes: cost_panel(axes, arms, labels))
    save(panels, options.out)


def _point(text: str) -> tuple[int, Path]:
    """Reads TRACES=RUN."""
    traces, _, run = text.partition("=")
    if not traces.isdigit() or not (Path(run) / "summary.json").is_file():
        raise argparse.ArgumentTypeError(f"{text} is not TRACES=RUN, a number and the folder of an evaluation")
    return int(traces), Path(run)


def save(panels: Sequence[Panel], out: Path) -> None:
    """One picture with the panels side by side, two in a row."""
    width = min(2, len(panels))
    height = -(-len(panels) // width)
    figure = Figure(figsize=(6.5 * width, 3.2 * height), layout="constrained")
    FigureCanvasAgg(figure)
    grid = list(figure.subplots(height, width, squeeze=False).flat)
    for axes, panel in zip(grid, panels, strict=False):
        panel(axes)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    figure.savefig(out, dpi=130)


def seekers_panel(axes: Axes, arms: dict[str, Rows], labels: dict[str, str]) -> None:
    """Bars of function Acc@1 for all bugs and for the hard ones."""
    groups = grouped(next(iter(arms.values())))
    for offset, group, color in ((-0.2, ALL, BLUE), (0.2, HARD, ORANGE)):
        if group not in groups:
            continue
        tasks = groups[group]
        shares = [[is_right(rows[task]) for task in tasks] for rows in arms.values()]
        _bars(axes, shares, offset, color, f"{group} ({len(tasks)})", height=0.36)
    _name_bars(axes, [labels[name] for name in arms], "function Acc@1")
    _legend_above(axes)


def solver_panel(axes: Axes, runs: Sequence[Path]) -> None:
    """Bars of the share of bugs that the solver fixed."""
    summaries, rows = read_evaluations(runs)
    solved = solved_by_arm(rows, summaries)
    _bars(axes, [[is_fixed(row) for row in rows.values()] for rows in solved.values()], 0, BLUE, None, height=0.6)
    _name_bars(axes, [summaries[name]["title"] for name in solved], "bugs fixed by the solver")


def scaling_panel(axes: Axes, runs: Sequence[tuple[int, Path]], suspect: Rows | None) -> None:
    """A point for each number of traces, and a line for the first suspect, if it is known."""
    seen = [(traces, _model_of(seekers_of(*read_evaluations([run])))) for traces, run in runs]
    common = sorted(set.intersection(*(set(rows) for _, rows in seen)))
    shares = [_share([is_right(rows[task]) for task in common]) for _, rows in seen]
    values = [share.value for share in shares]
    errors = [[share.down for share in shares], [share.up for share in shares]]
    axes.errorbar([traces for traces, _ in seen], values, yerr=errors, color=BLUE, marker="o", capsize=3, label="model")
    if suspect is not None:
        right = _share([is_right(suspect[task]) for task in common if task in suspect])
        axes.axhline(right.value, color=GRAY, linestyle="--", label="first suspect")
    axes.set_ylim(0, 1)
    axes.set_xlim(left=0)
    axes.set_xlabel(f"traces; {len(common)} bugs, 95% intervals")
    axes.set_ylabel("function Acc@1")
    axes.legend(loc="lower right", fontsize=8)
    axes.grid(alpha=0.3)


def _model_of(arms: dict[str, Rows]) -> Rows:
    return arms["trained"] if "trained" in arms else next(iter(arms.values()))


def calibration_panel(axes: Axes, arms: Sequence[dict[str, Any]]) -> None:
    """How often the first place held a line of the fix, by stated confidence; a point's area is the number of bugs."""
    axes.plot([0, 1], [0, 1], color=GRAY, linestyle="--", linewidth=1)
    for arm, color in zip(arms, cycle((ORANGE, BLUE, GREEN)), strict=False):
        bins = arm["calibration"]
        sizes = [6 * one["count"] for one in bins]
        axes.scatter(
            [one["confidence"] for one in bins],
            [one["right"] for one in bins],
            s=sizes,
            color=color,
            alpha=0.6,
            label=arm["title"],
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("stated confidence")
    axes.set_ylabel("first place right")
    _legend_above(axes, columns=1, markerscale=0.4)
    axes.grid(alpha=0.3)


def cost_panel(axes: Axes, arms: dict[str, Rows], labels: dict[str, str]) -> None:
    """A point for each seeker: what an episode cost, and how often it was right."""
    for (name, rows), color in zip(arms.items(), cycle((GRAY, ORANGE, BLUE, GREEN, PINK)), strict=False):
        seconds = [row["scores"]["seconds"] for row in rows.values() if row["scores"].get("seconds") is not None]
        if seconds:
            share = _share([is_right(row) for row in rows.values()])
            error = [[share.down], [share.up]]
            axes.errorbar(
                fmean(seconds), share.value, yerr=error, color=color, marker="o", capsize=3, label=labels[name]
            )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0, 1)
    axes.set_xlabel("seconds per episode, mean")
    axes.set_ylabel("function Acc@1")
    _legend_above(axes, columns=1)
    axes.grid(alpha=0.3)


class _Share(NamedTuple):
    """A share, and how far its 95% interval reaches down and up."""

    value: float
    down: float
    up: float


def _share(right: Sequence[bool]) -> _Share:
    interval = wilson(sum(right), len(right))
    value = interval.value or 0.0
    return _Share(value, value - (interval.low or 0.0), (interval.high or 0.0) - value)


def _bars(
    axes: Axes, outcomes: Sequence[Sequence[bool]], offset: float, color: str, label: str | None, *, height: float
) -> None:
    """A bar with its 95% interval for each list of outcomes."""
    for place, right in enumerate(outcomes):
        share = _share(right)
        error = [[share.down], [share.up]]
        shown = label if place == 0 else None
        axes.barh(place + offset, share.value, height=height, color=color, label=shown, xerr=error, capsize=3)
        is_short = share.value < 0.2
        start, ink = (share.value + share.up + 0.02, "black") if is_short else (0.01, "white")
        axes.annotate(f"{share.value:.0%}", (start, place + offset), va="center", color=ink, fontsize=9)


def _legend_above(axes: Axes, *, columns: int = 2, markerscale: float = 1.0) -> None:
    place = (0.5, 1.0)
    axes.legend(
        loc="lower center", bbox_to_anchor=place, ncols=columns, fontsize=8, frameon=False, markerscale=markerscale
    )


def _name_bars(axes: Axes, names: Sequence[str], measure: str) -> None:
    axes.set_yticks(range(len(names)), list(names))
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"{measure}, 95% intervals")
    axes.grid(axis="x", alpha=0.3)


if __name__ == "__main__":
    main()
