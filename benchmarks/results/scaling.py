r"""How the seeker's line recall grows with the number of training traces: trains, evaluates, draws the curve.

    gumshoe synth configs/demo/synth.yaml --out runs/scaling/tasks --per-project 60 -p heldout_bugs=0.1
    gumshoe collect configs/collect/demo.yaml -p tasks.source=runs/scaling/tasks -p out=runs/scaling/traces
    gumshoe export runs/scaling/traces --out runs/scaling/dataset --view seeker --test-share 0
    python -m benchmarks.results.scaling configs/train/smollm2.yaml configs/eval/scaling.yaml

For each count, `gumshoe train` runs with `limit: COUNT` and `gumshoe eval` on the result. A count whose summary already
exists is not run again. The curve (scaling.svg, scaling.png) shows line recall by split, with the intervals that the
evaluation gives, and the other arms of the evaluation, such as the heuristics, as horizontal lines; these arms are
played with the largest count only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from gumshoe.eval.score.tables import named

METRIC = "line_recall"


def main() -> None:
    """Runs what is missing, then draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path, help="config of the training runs")
    parser.add_argument("eval", type=Path, help="config of the evaluations; {train} in it is the training run's folder")
    parser.add_argument("--counts", type=int, nargs="+", default=[40, 80, 160, 320], help="numbers of traces")
    parser.add_argument("--out", type=Path, default=Path("runs/scaling"), help="folder of everything (runs/scaling)")
    parser.add_argument("--arm", default="trained", help="arm of the evaluation that is the model (trained)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="for training")
    parser.add_argument("-e", "--eval-param", action="append", default=[], metavar="KEY=VALUE", help="for evaluating")
    arguments = parser.parse_args()
    summaries: dict[int, dict[str, Any]] = {}
    for count in arguments.counts:
        folder = arguments.out / str(count)
        summary = folder / "eval" / "summary.json"
        if not summary.is_file():
            run("train", arguments.train, f"out={folder / 'train'}", f"limit={count}", *arguments.param)
            into = [f"out={folder / 'eval'}", f"vars.train={folder / 'train'}"]
            alone = [] if count == max(arguments.counts) else [only(arguments.eval, arguments.arm)]
            run("eval", arguments.eval, *into, *alone, *arguments.eval_param)
        summaries[count] = json.loads(summary.read_text(encoding="utf-8"))
    for path in draw(summaries, arguments.arm, arguments.out):
        print(path)


def run(command: str, config: Path, *params: str) -> None:
    """Runs one `gumshoe` command; ends everything if it fails."""
    flags = [word for param in params for word in ("-p", param)]
    subprocess.run([sys.executable, "-m", "gumshoe", command, str(config), *flags], check=True)


def only(config: Path, name: str) -> str:
    """The override that keeps only one arm of an evaluation."""
    arms = yaml.safe_load(config.read_text(encoding="utf-8"))["arms"]
    return f"arms={json.dumps([arm for arm in arms if arm['name'] == name])}"


def values(summary: dict[str, Any]) -> dict[tuple[str, str], dict[str, float]]:
    """Value and interval of the metric by (arm, split)."""
    return {
        (arm["name"], split): found[METRIC]
        for arm in summary["arms"]
        for split, found in arm["groups"].items()
        if split != "all" and found[METRIC]["value"] is not None
    }


def draw(summaries: dict[int, dict[str, Any]], arm: str, out: Path) -> list[Path]:
    """A panel for each split: the model's curve, and the other arms at their level in the largest run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    by_count = {count: values(summary) for count, summary in sorted(summaries.items())}
    largest = by_count[max(by_count)]
    splits = sorted({split for _, split in largest})
    figure = Figure(figsize=(5 * len(splits), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(splits), sharey=True, squeeze=False)[0]
    for axes, split in zip(panels, splits, strict=True):
        axes.set_title(named(split))
        draw_curve(axes, {count: found[arm, split] for count, found in by_count.items() if (arm, split) in found})
        draw_levels(
            axes, {name: found["value"] for (name, where), found in largest.items() if (where == split) and name != arm}
        )
        axes.set_xscale("log", base=2)
        axes.set_xticks(list(by_count), [str(count) for count in by_count])
        axes.set_xlabel("training traces")
        axes.margins(x=0.15)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("line recall")
    panels[0].set_ylim(-0.06, 1.08)
    paths = [out / "scaling.svg", out / "scaling.png"]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def draw_curve(axes: Any, found: dict[int, dict[str, float]]) -> None:
    """The model's values over the counts, with their intervals."""
    means = [point["value"] for point in found.values()]
    low = [point["value"] - point["low"] for point in found.values()]
    high = [point["high"] - point["value"] for point in found.values()]
    axes.errorbar(list(found), means, yerr=[low, high], marker="o", capsize=3, color="#0072b2")
    for count, mean in zip(found, means, strict=True):
        axes.annotate(f"{mean:.0%}", (count, mean), xytext=(7, -12), textcoords="offset points", fontsize=9)


def draw_levels(axes: Any, levels: dict[str, float]) -> None:
    """A dotted line for each other arm, with its name."""
    for name, value in levels.items():
        axes.axhline(value, color="#555555", linestyle=":", linewidth=1)
        axes.annotate(
            f"{name} {value:.0%}",
            (0.01, value),
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, 2),
            textcoords="offset points",
            fontsize=8,
            color="#555555",
        )


if __name__ == "__main__":
    main()
