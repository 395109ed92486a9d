"""The loss curve as a picture."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["draw_losses"]


def draw_losses(log: Path, out: Path) -> list[Path]:
    """Draws the losses of a log (see `LossLog`) to `out` as loss.svg and loss.png; returns the paths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for key, label, style in (("loss", "training", "-"), ("eval_loss", "held out", "o--")):
        points = [(entry["step"], entry[key]) for entry in entries if key in entry]
        if points:
            axes.plot(*zip(*points, strict=True), style, label=label, markersize=4)
    axes.set_xlabel("step")
    axes.set_ylabel("loss of what the assistant writes")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False)
    paths = [out / "loss.svg", out / "loss.png"]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths
