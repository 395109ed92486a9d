"""Losses and rewards as pictures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gumshoe.storage import read_jsonl

__all__ = ["draw_losses", "draw_rewards"]


def draw_losses(log: Path, out: Path) -> list[Path]:
    """Draws the losses of a log (see `LossLog`) to `out` as loss.svg and loss.png; returns the paths."""
    curves = [("loss", "training", "-"), ("eval_loss", "held out", "o--"), ("eval_seeker_score", "live reward", "s:")]
    return _draw(log, out, "loss", "loss of what the assistant writes", curves)


def draw_rewards(log: Path, out: Path, scores: Iterable[str]) -> list[Path]:
    """Draws the rewards of a log to `out` as reward.svg and reward.png, and each score that they are made of."""
    parts = [(f"rewards/{name}/mean", name, ":") for name in scores]
    return _draw(log, out, "reward", "reward of an episode", [("reward", "reward", "-"), *parts])


def _draw(log: Path, out: Path, name: str, label: str, curves: list[tuple[str, str, str]]) -> list[Path]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    entries = [entry for _, entry in read_jsonl(log)]
    figure = Figure(figsize=(7, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for key, title, style in curves:
        points = [(entry["step"], entry[key]) for entry in entries if key in entry]
        if points:
            axes.plot(*zip(*points, strict=True), style, label=title, markersize=4)
    axes.set_xlabel("step")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False)
    paths = [out / f"{name}.svg", out / f"{name}.png"]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths
